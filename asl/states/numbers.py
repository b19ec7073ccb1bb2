"""Numbers that a state has in its definition or, by the field's Path twin, in its input."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import NamedTuple, TypeAlias

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import EvaluationFailed, StateError
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, excerpt, is_integer, is_number
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.states.base import Compiler, Node

__all__ = [
    "AMOUNT",
    "MAX_SECONDS",
    "NO_BOUND",
    "Number",
    "TimeLimits",
    "check_time_limits",
    "compile_number",
    "compile_time_limits",
    "parse_amount",
]

Number = Callable[[Json, ExpressionFrame], float]
"""`(effective input, frame) -> number`; raises StateError("States.Runtime"), or
EvaluationFailed for the value of an expression."""

MAX_SECONDS = 99_999_999
"""Seconds that a definition, or an expression in it, may say."""

NO_BOUND = 2**53
"""What counts as no bound at all, and a float still holds."""

AMOUNT = "[$\u00a2-\u00a5\u20a0-\u20cf]?([0-9]+(?:[.][0-9]+)?)"
"""The pattern of an amount of money; its group is the number."""

_NUMERAL = lazy_pattern(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_WHOLE = lazy_pattern(r"-?[0-9]{1,19}")

_OUT_OF_BOUNDS = {
    "MaxConcurrency": "Expected non-negative integer for MaxConcurrency, got '{value}' instead.",
}
"""Fields that AWS words in a way of their own."""


def compile_number(
    compiler: Compiler,
    field: str,
    least: int,
    most: int = NO_BOUND,
    *,
    whole: bool = True,
    numerals: bool = False,
) -> Number | None:
    """Compile *field* or its Path twin, None where neither is given.

    A number from the input or from an expression lies between *least* and *most*, and is *whole* if
    that is asked for; beyond `NO_BOUND` it counts as that. *numerals* reads it by its text, as AWS
    does. Errors have AWS's words (recorded).
    """
    wanted = _Wanted(field, least, most, whole)
    if field in compiler.state:
        computed = compiler.computed_field(field, "number")
        if computed is not None:
            return _bounded(computed, wanted, wanted.unfit_result)
        fixed = compiler.state[field]
        return lambda data, frame: fixed
    if f"{field}Path" not in compiler.state:
        return None
    path, source = compiler.reference(f"{field}Path"), compiler.state[f"{field}Path"]
    if numerals:
        path = _numeral(path, whole)
    return _bounded(path, wanted, partial(wanted.unfit_reference, source))


class _Wanted(NamedTuple):
    """The allowed numbers of a field, and the errors for other values."""

    field: str
    least: int
    most: int
    whole: bool

    def belongs(self, value: Json) -> bool:
        """Whether the value is a number of the right kind."""
        return is_integer(value) if self.whole else is_number(value)

    def is_within(self, value: float) -> bool:
        """Whether a number of the right kind lies between the bounds."""
        return self.least <= value and (value <= self.most or self.most == NO_BOUND)

    @property
    def bounds(self) -> str:
        if self.most != NO_BOUND:
            return f"must be between {self.least} and {self.most}"
        return "cannot be negative" if self.least == 0 else f"must be at least {self.least}"

    def unfit_result(self, value: Json) -> StateError:
        """Return the error for the value of an expression."""
        cause = (
            f"{self.field} {self.bounds} but was: {value}"
            if self.belongs(value)
            else f"The {self.field} field cannot be parsed as an integer: {value}"
        )
        return EvaluationFailed(cause, self.field)

    def unfit_reference(self, source: str, value: Json) -> StateError:
        """Return the error for what the path *source* leads to."""
        if self.belongs(value):
            words = _OUT_OF_BOUNDS.get(self.field, f"{self.field} {self.bounds}.")
            return StateError("States.Runtime", words.format(value=value))
        shown = value if type(value) is str else excerpt(value, 200)
        return StateError(
            "States.Runtime",
            f'The {self.field}Path field refers to value "{shown[:200]}" '
            f"which is not a valid {'integer' if self.whole else 'float'}: {source}",
        )


def _bounded(evaluate: Evaluate, wanted: _Wanted, unfit: Callable[[Json], StateError]) -> Number:
    def given(data: Json, frame: ExpressionFrame) -> float:
        value = evaluate(data, frame)
        if not (wanted.belongs(value) and wanted.is_within(value)):
            raise unfit(value)
        return float(min(value, wanted.most))

    return given


def _numeral(path: Evaluate, whole: bool) -> Evaluate:
    """Read a number by its text, whether that is a string or not: "2" is whole, 2.0 is not."""

    def numeral(data: Json, frame: ExpressionFrame) -> Json:
        value = path(data, frame)
        text = excerpt(value) if is_number(value) else value
        if type(text) is not str:
            return value
        if whole:
            return int(text) if _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63 else text
        return float(text) if _NUMERAL.fullmatch(text) else value

    return numeral


def parse_amount(value: Json) -> Decimal | None:
    """Return an amount of money (`"$2.50"`, `"3"`, `4`), None for any other value.

    An amount beyond `NO_BOUND` counts as that: a float holds it.
    """
    if is_number(value):
        return min(Decimal(str(value)), Decimal(NO_BOUND)) if value >= 0 else None
    found = re.fullmatch(AMOUNT, value) if type(value) is str else None
    return None if found is None else min(Decimal(found[1]), Decimal(NO_BOUND))


TimeLimits: TypeAlias = tuple[float | None, float | None]
"""Timeout and heartbeat in seconds, None for none."""


def compile_time_limits(compiler: Compiler) -> Callable[[Json, ExpressionFrame], TimeLimits] | None:
    """Compile `(effective input, frame) -> limits`, None where there are none."""
    least = 0 if compiler.jsonata else 1  # AWS (observed)
    timeout = compile_number(compiler, "TimeoutSeconds", least, MAX_SECONDS)
    heartbeat = compile_number(compiler, "HeartbeatSeconds", least, MAX_SECONDS)
    if timeout is None and heartbeat is None:
        return None
    return lambda data, frame: (
        None if timeout is None else timeout(data, frame),
        None if heartbeat is None else heartbeat(data, frame),
    )


def check_time_limits(node: Node) -> Iterator[Finding]:
    """One form of each limit, a heartbeat shorter than the timeout."""
    for field in ("TimeoutSeconds", "HeartbeatSeconds"):
        if field in node.value and f"{field}Path" in node.value:
            yield Finding(
                "V-TASK-04",
                f"'{field}' and '{field}Path' exclude each other",
                node.at(f"{field}Path"),
                at_key=True,
                aws=Wording(aws_messages.at_most_one(field, f"{field}Path"), at=node.pointer),
            )
    timeout, heartbeat = node.value.get("TimeoutSeconds"), node.value.get("HeartbeatSeconds")
    if timeout is None or heartbeat is None:
        return
    if is_integer(timeout) and is_integer(heartbeat) and heartbeat >= timeout:
        yield Finding(
            "V-TASK-07",
            f"the heartbeat must be shorter than the timeout of {timeout} seconds",
            node.at("HeartbeatSeconds"),
        )
