"""What inline and distributed Maps have in common: their items, and which failures they bear."""

from collections.abc import Callable, Mapping

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, constant, identity
from asl.expr.frame import ExpressionFrame as ExpressionFrame
from asl.expr.paths import parse_path
from asl.expr.result_path import report_conflict
from asl.states.base import Compiler
from asl.states.effects import StateFrame
from asl.states.map_data import Tolerance
from asl.states.numbers import Number, compile_number

__all__ = [
    "DISTRIBUTING",
    "TOLERATING",
    "compile_concurrency",
    "compile_items",
    "compile_tolerance",
    "has_distributed_mode",
    "is_distributed",
    "tolerance_error",
]

DISTRIBUTING = frozenset({"ItemReader", "ItemBatcher", "ResultWriter"})
"""The fields that make a Map distributed, whatever its mode; with AWS it fails then."""

TOLERATING = frozenset(
    f"ToleratedFailure{bound}{form}" for bound in ("Count", "Percentage") for form in ("", "Path")
)
"""The fields that say how many failures a Map bears."""

"""`number of items -> tolerated failures`; the number is infinite while it is unknown."""


def is_distributed(state: Mapping[str, Json], processor: str) -> bool:
    """Whether the iterations of a Map are executions of their own."""
    return has_distributed_mode(state, processor) or not DISTRIBUTING.isdisjoint(state)


def has_distributed_mode(state: Mapping[str, Json], processor: str) -> bool:
    """Whether the `Mode` of a Map says so; AWS looks at nothing else."""
    config: Json = state[processor].get("ProcessorConfig", {})
    return bool(config.get("Mode") == "DISTRIBUTED")


def compile_concurrency(compiler: Compiler) -> Number:
    """Compile `MaxConcurrency` or its Path twin; 0 for no limit.

    AWS takes a limit that is written as text, too (recorded).
    """
    limit = compile_number(compiler, "MaxConcurrency", 0, numerals=compiler.profile.aws)
    return constant(0) if limit is None else limit


def compile_items(compiler: Compiler, *, objects: bool = False) -> Evaluate:
    """Compile `ItemsPath` or `Items`: effective input to an array, or one of *objects*.

    Raises StateError("States.Runtime"), in JSONata EvaluationFailed, for anything else.
    """
    if compiler.jsonata:
        return _queried(compiler, objects)
    evaluate: Evaluate = identity
    text = "$"
    if "ItemsPath" in compiler.state:
        evaluate, text = compiler.reference("ItemsPath"), compiler.state["ItemsPath"]
        path = parse_path(text, compiler.profile.aws)
        if compiler.profile.aws and path.root == "$":
            evaluate = report_conflict(evaluate, path)
    elif "ItemsPath.$" in compiler.state:
        text = compiler.state["ItemsPath.$"]
        evaluate = compiler.expression("ItemsPath.$", text)

    def items(data: Json, frame: ExpressionFrame) -> Json:
        value = evaluate(data, frame)
        if _iterable(value, objects):
            return value
        raise StateError("States.Runtime", f'Reference path "{text}" must point to array.')

    return items


def _queried(compiler: Compiler, objects: bool) -> Evaluate:
    evaluate = compiler.template("Items") or identity
    typed = compiler.computed_field("Items", "array")

    def items(data: Json, frame: ExpressionFrame) -> Json:
        value = evaluate(data, frame)
        if _iterable(value, objects):
            return value
        if typed is not None:
            return typed(data, frame)  # it says that this is no array
        raise EvaluationFailed(f"Map state input must be an array but was: {excerpt(value)}")

    return items


def _iterable(value: Json, objects: bool) -> bool:
    return type(value) is list or (objects and type(value) is dict)


def compile_tolerance(compiler: Compiler) -> Callable[[Json, StateFrame], Tolerance] | None:
    """Compile `ToleratedFailureCount`, `ToleratedFailurePercentage`; None where neither is given.

    One failure is too many once it exceeds either bound; an absent bound does not bind.
    """
    aws = compiler.profile.aws
    count = compile_number(compiler, "ToleratedFailureCount", 0, numerals=aws)
    share = compile_number(
        compiler, "ToleratedFailurePercentage", 0, 100, whole=False, numerals=aws
    )
    if count is None and share is None:
        return None

    def tolerance(data: Json, frame: StateFrame) -> Tolerance:
        most = float("inf") if count is None else count(data, frame)
        part = None if share is None else share(data, frame)
        if aws and count is not None and part is not None:  # there a bound of 0 is none
            most, part = (most, part or None) if most else (float("inf"), part)
        return Tolerance(most, part)

    return tolerance


def tolerance_error(last: str = "") -> StateError:
    """Return the error of a Map in which more iterations failed than it bears.

    *last* says what failed last, where the cause may say more than AWS does.
    """
    return StateError(
        "States.ExceedToleratedFailureThreshold",
        f"The specified tolerated failure threshold was exceeded{last}",
    )
