"""Reasoning: the trace that an agent returns with its result (Specification 8.1)."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, is_integer
from asl.expr.frame import ExpressionFrame
from asl.expr.paths import parse_reference_path
from asl.program import Finish
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Destination, Perform, compile_settings

__all__ = [
    "REASONING",
    "demand_reasoning",
    "evaluate_trace_path",
    "store_reasoning",
    "trace_destination",
]

FIELDS: Final = ("Required", "Format", "MinSteps", "MaxSteps")
FORMATS: Final = ("chain_of_thought", "tree_of_thoughts", "reflection", "free_form")


def demand_reasoning(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the request for a trace, and the check of the returned one."""
    wanted, state = compile_settings(compiler, "Reasoning", FIELDS), compiler.name

    async def perform(attempt: Attempt) -> Json:
        block = wanted(attempt.data, attempt.frame)
        block.choice("Format", FORMATS)
        required = block.flag("Required")
        bounds = block.count("MinSteps"), block.count("MaxSteps")
        attempt.set_call_attribute("reasoning", block.values)
        result = await inner(attempt)
        fault = _fault(required, bounds, _steps(result))
        if fault is not None and required:
            raise StateError("Agent.InvalidOutput", f"state '{state}': Reasoning: {fault}")
        if fault is not None:
            attempt.frame.note("ReasoningWarning", {"reason": fault})
        return result

    return perform


def _steps(result: Json) -> list[Json] | None:
    trace = result.get("reasoning") if type(result) is dict else None
    steps = trace.get("steps") if type(trace) is dict else None
    return steps if type(steps) is list else None


def _fault(
    required: bool, bounds: tuple[int | None, int | None], steps: list[Json] | None
) -> str | None:
    """Return the fault of a trace, None for none."""
    if steps is None:
        missing = "the result has no trace: 'reasoning' with a list of 'steps'"
        return missing if required else None
    least, most = bounds
    if least is not None and len(steps) < least:
        return f"{len(steps)} steps are fewer than {least}"
    if most is not None and len(steps) > most:
        return f"{len(steps)} steps are more than {most}"
    return None


def trace_destination(compiler: Compiler) -> Destination:
    """Compile the output path of the trace."""
    return Destination(compiler.compiler_at("Reasoning"), "Store", "Reasoning.")


def evaluate_trace_path(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the evaluation of a computed path of the trace."""
    return trace_destination(compiler).evaluate_before(inner)


def store_reasoning(compiler: Compiler) -> Finish | None:
    """Compile the insertion of the trace: `(output, raw result, frame) -> output`."""
    if {"Store", "Store.$"}.isdisjoint(compiler.compiler_at("Reasoning").state):
        return None
    target = trace_destination(compiler)

    def store(output: Json, result: Json, frame: ExpressionFrame) -> Json:
        trace = result.get("reasoning") if type(result) is dict else None
        return output if trace is None else target.insert(output, trace, frame)

    return store


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Reasoning"]
    least, most = block.get("MinSteps"), block.get("MaxSteps")
    if is_integer(least) and is_integer(most) and least > most:
        message = f"MinSteps {least} is above MaxSteps {most}"
        yield Finding("V-RSN-01", message, node.at("Reasoning", "MinSteps"))
    target = block.get("Store")
    if type(target) is str and not node.is_computed(target):
        yield from _check_store(target, node.at("Reasoning", "Store"))


def _check_store(target: str, pointer: str) -> Iterator[Finding]:
    try:
        path = parse_reference_path(target)
    except ExpressionFault as fault:
        yield Finding("V-RSN-02", fault.message, pointer, fault.hint)
        return
    if path.root != "$" or not path.segments:
        message = f"'Store' must be the path of a member, not {target!r}"
        yield Finding("V-RSN-02", message, pointer, "a path such as $.trace")


REASONING = Block("Reasoning", _check)
