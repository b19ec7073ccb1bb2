"""Map: runs one machine for every item of an array (6.3)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Evaluate, constant
from asl.expr.frame import ExpressionFrame as ExpressionFrame
from asl.program import Machine, Step, Work
from asl.states.base import Compiler, StateType, expression_text
from asl.states.blocks import compile_inserts
from asl.states.blocks.progress import compile_following, compile_tracking, record_counts
from asl.states.effects import ABSENT, FanOut, StateFrame
from asl.states.iteration import (
    TOLERATING,
    compile_concurrency,
    compile_items,
    compile_tolerance,
    has_distributed_mode,
    is_distributed,
    tolerance_error,
)
from asl.states.map_checks import check_map


def compile_map(compiler: Compiler, step: Step) -> None:
    """Compile a Map: the result is the array of the iterations' outputs, in item order."""
    processor = "ItemProcessor" if "ItemProcessor" in compiler.state else "Iterator"
    machine = compiler.machine(processor)
    distributed = is_distributed(compiler.state, processor)
    step.items = _items(compiler, distributed)
    step.tolerant = not TOLERATING.isdisjoint(compiler.state)
    if compiler.profile.aws and distributed and not has_distributed_mode(compiler.state, processor):
        step.items = step.work = _refused
    else:
        step.work = (_distributed if distributed else _inline)(compiler, machine)
    step.progress = compile_tracking(compiler)
    step.finish = compiler.finish(inserts=compile_inserts(compiler))


def _refused(data: Json, frame: ExpressionFrame) -> NoReturn:
    """What AWS does with an inline Map that has fields of a distributed one (recorded)."""
    raise StateError(
        "States.Runtime",
        "The ItemReader, ItemBatcher and ResultWriter fields are not supported for INLINE maps",
    )


def _distributed(compiler: Compiler, machine: Machine) -> Work:
    from asl.states.distributed import compile_distributed

    return compile_distributed(compiler, machine)


def _items(compiler: Compiler, distributed: bool) -> Evaluate:
    """Compile the items a Map begins with; none where they are yet to be read (recorded).

    A Map does not begin where its limit is unfit, which is found before its items are (recorded).
    """
    effective_input = compiler.input()
    items_of = (
        constant([])
        if "ItemReader" in compiler.state
        else compile_items(compiler, objects=distributed)
    )
    limit = compile_concurrency(compiler)

    def items(data: Json, frame: ExpressionFrame) -> Json:
        effective = effective_input(data, frame)
        limit(effective, frame)
        return items_of(effective, frame)

    return items


def _inline(compiler: Compiler, machine: Machine) -> Work:
    effective_input, items_of = compiler.input(), compile_items(compiler)
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    limit = compile_concurrency(compiler)
    tolerance = compile_tolerance(compiler)
    most = MOST_AT_ONCE if compiler.profile.aws else 0
    follow = compile_following(compiler)

    async def work(data: Json, frame: StateFrame) -> Json:
        effective = effective_input(data, frame)
        follows = follow(data, frame)
        at_once = int(limit(effective, frame))
        items = items_of(effective, frame)
        frame.execution.count_items(len(items))
        fan = FanOut(
            len(items),
            _children(frame, machine, items, selector, effective),
            _at_once(at_once, most),
        )
        if tolerance is not None:
            fan.on_failure = _tolerating(tolerance(effective, frame)(len(items)))
        joined = await frame.effects.fan_out(frame, fan)
        if follows:
            record_counts(frame, len(items) - joined.failures, joined.failures)
        if not joined.failures:
            return joined.values
        return [value for value in joined.values if value is not ABSENT]

    return work


MOST_AT_ONCE = 40
"""Iterations of an inline Map that AWS runs at the same time (its documentation)."""


def _at_once(limit: int, most: int) -> int:
    """Return the maximum concurrency, 0 for no limit; at most *most*, unless that is 0."""
    return min(limit or most, most) if most else limit


def _children(
    frame: StateFrame,
    machine: Machine,
    items: list[Json],
    selector: Evaluate | None,
    effective: Json,
) -> Callable[[int], StateFrame]:
    if selector is None:
        return lambda index: frame.child(index, machine, items[index], items[index])

    def child(index: int) -> StateFrame:
        made = frame.child(index, machine, None, items[index])
        made.data = selector(effective, made.selector_frame())
        return made

    return child


def _tolerating(allowed: float) -> Callable[[StateFrame, StateError], StateError | None]:
    """Return what counts failed children and fails with too many of them."""
    failures = 0

    def failed(frame: StateFrame, error: StateError) -> StateError | None:
        nonlocal failures
        failures += 1
        return tolerance_error() if failures > allowed else None

    return failed


def describe_map(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the source of the items, and the concurrency."""
    items = state.get("ItemsPath", state.get("Items"))
    if "ItemReader" in state:
        yield "items from a file"
    elif items is not None:
        yield f"items {expression_text(items)}"
    limit = state.get("MaxConcurrency")
    if type(limit) is int and limit > 0:
        yield f"{limit} concurrently" if limit > 1 else "one by one"


MAP = StateType(
    "Map",
    compile_map,
    check_map,
    aws=True,
    effect=True,
    concurrent=True,
    iterates=True,
    machines=("ItemProcessor", "Iterator"),
    forks=True,
    budgeted=True,
    describe=describe_map,
)
