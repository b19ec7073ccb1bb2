"""The distributed Map: items from anywhere, children that are executions, results to anywhere.

Items are drawn one by one as children are free to take them, and results are handed on as children
end, so that neither has to fit into memory (Specification 6.3).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, constant
from asl.program import Machine, Work
from asl.states.base import Compiler
from asl.states.batches import batches
from asl.states.host import ABSENT, Entry, Fan, Frame, Run, Source, Target
from asl.states.items import members
from asl.states.items.dataset import Dataset
from asl.states.iteration import Tolerance, compile_items, compile_tolerance, too_many_failed
from asl.states.numbers import NO_BOUND, number
from asl.states.objects import ObjectFault
from asl.states.results import Kept, Results, Shaped, Written

__all__ = [
    "compile_batcher",
    "compile_distributed",
    "compile_source",
    "input_of",
    "is_distributed",
]

FIELDS = frozenset({"ItemReader", "ItemBatcher", "ResultWriter"})
MOST_CHILDREN = 10_000
"""How many children run at once, where `MaxConcurrency` says nothing or more (as with AWS)."""


Batched: TypeAlias = Callable[[Iterator[Json]], Iterator[Json]]
"""Inputs of single items to inputs of batches."""
Opened: TypeAlias = Callable[[Run], Results]
"""Where the results of a run go."""


def is_distributed(state: Mapping[str, Json], processor: str) -> bool:
    """Whether the iterations of a Map are executions of their own."""
    config = state[processor].get("ProcessorConfig", {})
    return config.get("Mode") == "DISTRIBUTED" or not FIELDS.isdisjoint(state)


def compile_distributed(compiler: Compiler, machine: Machine) -> Work:
    """Compile what a distributed Map does: effective input to its raw result."""
    state = compiler.state
    config = (state.get("ItemProcessor") or state["Iterator"]).get("ProcessorConfig", {})
    express = config.get("ExecutionType") == "EXPRESS"
    label = state.get("Label", compiler.name)
    pure = all(step.work is None for step in machine.steps.values())
    effective_input = compiler.input()
    source_of = compile_source(compiler)
    handler = Target("resource", state.get("ItemReader", {}).get("Resource", ""), compiler.name)
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    batched_by = compile_batcher(compiler)
    limit = number(compiler, "MaxConcurrency", 0, numerals=compiler.profile.aws)
    tolerance = compile_tolerance(compiler)
    opened_by = _writer(compiler)

    async def work(data: Json, frame: Frame) -> Json:
        effective = effective_input(data, frame)
        source = source_of(effective, frame)
        batched = batched_by and batched_by(effective, frame)
        most = int(limit(effective, frame)) if limit else 0
        allowed = tolerance(effective, frame) if tolerance else _none
        opened = opened_by(effective, frame)
        run = frame.run(machine, label, express, pure)
        frame.note("MapRunStarted", {"mapRunArn": run.arn})
        try:
            results = opened(run)
            if isinstance(source, Dataset) and not source.is_mapped:
                await _ask(frame, handler, source)
            failures = _Failures(source, allowed, results, tells=not compiler.profile.aws)
            children = _children(run, source, selector, effective, batched, failures.weights)
            fan = Fan(
                None,
                lambda index: next(children, None),
                min(most or MOST_CHILDREN, MOST_CHILDREN),
                failed=failures.failed,
                ended=results.ended,
                aborted=results.aborted,
                series=children if pure else None,
            )
            try:
                await frame.host.fork(frame, fan)
                failures.check()
            except BaseException:
                with suppress(StateError):  # what happened first is what is told
                    results.close()
                raise
            results.close()
            result = results.value()
        except StateError as error:
            told = {"error": error.name, "cause": error.cause}
            frame.note("MapRunFailed", {key: text for key, text in told.items() if text})
            raise
        except BaseException:
            frame.note("MapRunAborted", {})
            raise
        finally:
            source.close()
        frame.note("MapRunSucceeded", {})
        return result

    return work


def _none(items: float) -> float:
    return 0


async def _ask(frame: Frame, handler: Target, dataset: Dataset) -> None:
    """Let a handler of the `Resource` read what lies in no bucket, if there is one."""
    try:
        answer = await frame.host.invoke(frame, handler, dataset.arguments)
    except StateError as error:
        if error.name != "States.AgentNotFound":
            raise StateError("States.ItemReaderFailed", str(error)) from error
    else:
        dataset.answered(answer)


def _children(
    run: Run,
    source: Source,
    selector: Evaluate | None,
    effective: Json,
    batched: Batched | None,
    weights: dict[int, int],
) -> Iterator[Frame]:
    """Yield the children of a run; *weights* learns how many items a batch has."""
    if batched is not None:
        inputs = (data for _, data in _inputs(run, source, selector, effective))
        for index, batch in enumerate(batched(inputs)):
            weights[index] = len(batch["Items"])
            yield run.child(index, batch, ABSENT, source.source)
    elif selector is not None:
        for index, (item, data) in enumerate(_inputs(run, source, selector, effective)):
            yield run.child(index, data, item, source.source)
    else:
        yield from run.children(source)


def _inputs(
    run: Run, source: Source, selector: Evaluate | None, effective: Json
) -> Iterator[tuple[Json, Json]]:
    """Yield each item and the input of its iteration."""
    index = -1
    for index, item in enumerate(source):
        yield item, input_of(selector, effective, run, index, item, source.source)
    source.length = index + 1


def input_of(
    selector: Evaluate | None, effective: Json, run: Run, index: int, item: Json, source: str
) -> Json:
    """Return the input of the iteration of one item."""
    if selector is not None:
        return selector(effective, run.selected(index, item, source))
    return item.input if type(item) is Entry else item


class _Failures:
    """Counts what failed, and says when it is too much."""

    def __init__(
        self, source: Source, allowed: Tolerance, results: Results, *, tells: bool
    ) -> None:
        self.source = source
        self.allowed = allowed
        self.results = results
        self.tells = tells
        """Whether the cause of the whole says what failed last; with AWS it does not."""
        self.count = 0
        self.weights: dict[int, int] = {}
        """How many items a child stands for, where it is not one."""
        self.last = ""

    def failed(self, child: Frame, error: StateError) -> StateError | None:
        """Count a failed child; all items of a batch have failed with it."""
        self.count += self.weights.get(child.index, 1)
        if self.tells:
            self.last = f": iteration {child.index} failed with {error}"
        self.results.failed(child, error)
        length = self.source.length
        allowed = self.allowed(inf if length is None else length)
        return too_many_failed(self.last) if self.count > allowed else None

    def check(self) -> None:
        """Judge again, now that it is known how many items there have been."""
        if self.count > self.allowed(self.source.length or 0):
            raise too_many_failed(self.last)


# Where the items come from


def compile_source(compiler: Compiler) -> Callable[[Json, Frame], Source]:
    """Compile where the items of a run come from, by the effective input."""
    return _reader(compiler) if "ItemReader" in compiler.state else _state_data(compiler)


class StateData:
    """The items that stand in the data of the state: an array or an object."""

    source = "STATE_DATA"

    def __init__(self, items: Json) -> None:
        self.items = items
        self.length: int | None = len(items)

    def __iter__(self) -> Iterator[Json]:
        items = self.items
        return iter(items) if type(items) is list else members(items)

    def close(self) -> None:
        """Nothing is open."""


def _state_data(compiler: Compiler) -> Callable[[Json, Frame], Source]:
    items_of = compile_items(compiler, objects=True)
    return lambda effective, frame: StateData(items_of(effective, frame))


def _reader(compiler: Compiler) -> Callable[[Json, Frame], Source]:
    reader, profile = compiler.state["ItemReader"], compiler.profile
    arguments = compiler.within("ItemReader").payload()
    config = compiler.within("ItemReader", "ReaderConfig")
    most = number(config, "MaxItems", 0, numerals=profile.aws)

    def source(effective: Json, frame: Frame) -> Source:
        return Dataset(
            reader,
            arguments(effective, frame),
            frame.host.bucket,
            int(most(effective, frame)) if most else 0,
            profile.max_payload,
            profile.aws,
        )

    return source


def compile_batcher(compiler: Compiler) -> Callable[[Json, Frame], Batched] | None:
    """Compile `ItemBatcher`: effective input to what makes batches; None where there is none."""
    if "ItemBatcher" not in compiler.state:
        return None
    inner, numerals = compiler.within("ItemBatcher"), compiler.profile.aws
    most = number(inner, "MaxItemsPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    size = number(inner, "MaxInputBytesPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    shared = inner.template("BatchInput")

    def batched(effective: Json, frame: Frame) -> Batched:
        items, width = most(effective, frame), size(effective, frame)
        common = {} if shared is None else {"BatchInput": shared(effective, frame)}
        return lambda inputs: batches(inputs, items, width, common)

    return batched


# Where the results go


def _writer(compiler: Compiler) -> Callable[[Json, Frame], Opened]:
    if "ResultWriter" not in compiler.state:
        return lambda effective, frame: lambda run: Kept()
    writer = compiler.state["ResultWriter"]
    config = writer.get("WriterConfig", {})
    if "Resource" not in writer:
        return lambda effective, frame: lambda run: Shaped(config)
    arguments = compiler.within("ResultWriter").payload()

    def opened_by(effective: Json, frame: Frame) -> Opened:
        place = arguments(effective, frame)
        return lambda run: _written(run, frame, place, config)

    return opened_by


def _written(run: Run, frame: Frame, place: Json, config: Mapping[str, Json]) -> Results:
    given = place if type(place) is dict else {}
    name, prefix = given.get("Bucket"), given.get("Prefix", "")
    if type(name) is not str or type(prefix) is not str:
        raise StateError(
            "States.ResultWriterFailed",
            f"ResultWriter needs 'Bucket' and 'Prefix' as texts, not {excerpt(place, 200)}",
        )
    try:
        bucket = frame.host.bucket(name)
    except ObjectFault as fault:
        raise StateError("States.ResultWriterFailed", str(fault)) from None
    return Written(run, bucket, name, prefix, config)
