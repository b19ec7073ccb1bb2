"""The distributed Map: items from anywhere, children that are executions, results to anywhere.

Items are drawn one by one as children are free to take them, and results are handed on as children
end, so that neither has to fit into memory (Specification 6.3).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Protocol, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, constant
from asl.program import Machine, Work
from asl.states.base import Compiler
from asl.states.batches import batches
from asl.states.host import ABSENT, Entry, Fan, Frame, Run
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


class Source(Protocol):
    """The items of one run, drawn one by one."""

    source: str
    """Where the item drawn last comes from, in AWS's words."""
    length: int | None
    """How many there are, None where only the end shows it."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None:
        """Read no more."""
        ...


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
            iterations = _Iterations(
                run, source, effective, selector, batched, results, allowed, compiler.profile.aws
            )
            fan = Fan(
                None,
                iterations.child,
                min(most or MOST_CHILDREN, MOST_CHILDREN),
                failed=iterations.failed,
                ended=results.ended,
                aborted=results.aborted,
                series=iterations.children if pure else None,
            )
            try:
                await frame.host.fork(frame, fan)
                iterations.check()
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


class _Iterations:
    """Those of one run: makes the children of the items, and counts what failed."""

    def __init__(
        self,
        run: Run,
        source: Source,
        effective: Json,
        selector: Evaluate | None,
        batched: Batched | None,
        results: Results,
        allowed: Tolerance,
        aws: bool,
    ) -> None:
        self.run = run
        self.source = source
        self.effective = effective
        self.selector = selector
        self.results = results
        self.allowed = allowed
        self.aws = aws
        self.last = ""
        """What failed last, for the cause of the whole; AWS does not tell."""
        self.items = 0
        """How many there have been, known at the end."""
        self.failures = 0
        self.batch_sizes: dict[int, int] = {}
        self.children = self._single() if batched is None else self._in_batches(batched)

    def child(self, index: int) -> Frame | None:
        """Return the next child, None after the last one."""
        return next(self.children, None)

    def _single(self) -> Iterator[Frame]:
        child, source, selector = self.run.child, self.source, self.selector
        index = -1
        for index, item in enumerate(source):
            if selector is None and type(item) is not Entry:
                yield child(index, item, item, source.source)
            else:
                yield child(index, self._input(index, item), item, source.source)
        self.items = index + 1

    def _in_batches(self, batched: Batched) -> Iterator[Frame]:
        for index, batch in enumerate(batched(self._inputs())):
            self.batch_sizes[index] = len(batch["Items"])
            yield self.run.child(index, batch, ABSENT, self.source.source)

    def _inputs(self) -> Iterator[Json]:
        for index, item in enumerate(self.source):
            self.items = index + 1
            yield self._input(index, item)

    def _input(self, index: int, item: Json) -> Json:
        return input_of(self.selector, self.effective, self.run, index, item, self.source.source)

    def failed(self, child: Frame, error: StateError) -> StateError | None:
        """Count a failure: all items of a batch have failed with it."""
        self.failures += self.batch_sizes.get(child.index, 1)
        if not self.aws:
            self.last = f": iteration {child.index} failed with {error}"
        self.results.failed(child, error)
        length = self.source.length
        allowed = self.allowed(inf if length is None else length)
        return too_many_failed(self.last) if self.failures > allowed else None

    def check(self) -> None:
        """Judge the failures again, now that it is known how many items there are."""
        if self.failures > self.allowed(self.items):
            raise too_many_failed(self.last)


def input_of(
    selector: Evaluate | None, effective: Json, run: Run, index: int, item: Json, source: str
) -> Json:
    """Return the input of the iteration of one item."""
    if selector is not None:
        return selector(effective, run.selected(index, item, source))
    return {"Key": item.key, "Value": item.value} if type(item) is Entry else item


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
