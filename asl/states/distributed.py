"""The distributed Map: items from anywhere, children that are executions, results to anywhere.

Items are drawn one by one as children are free to take them, and results are handed on as children
end, so that neither has to fit into memory (Specification 6.3).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, constant
from asl.program import Machine, Work
from asl.states.base import Compiler
from asl.states.batches import batches
from asl.states.host import ABSENT, Entry, Fan, Frame, Run
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

Begin: TypeAlias = Callable[[Json, Frame], "Source"]
Batched: TypeAlias = Callable[[Iterator[Json]], Iterator[Json]]
"""Inputs of single items to inputs of batches."""


def is_distributed(state: Mapping[str, Json], processor: str) -> bool:
    """Whether the iterations of a Map are executions of their own."""
    config = state[processor].get("ProcessorConfig", {})
    return config.get("Mode") == "DISTRIBUTED" or not FIELDS.isdisjoint(state)


class Source:
    """The items of one run, drawn one by one."""

    def __init__(self, items: Iterator[Json], length: int | None, dataset: Dataset | None) -> None:
        self.items = items
        self.length = length
        """How many there are, None where only the end shows it."""
        self.dataset = dataset

    @property
    def name(self) -> str:
        """Where the item drawn last comes from, in AWS's words."""
        return "STATE_DATA" if self.dataset is None else self.dataset.source

    def close(self) -> None:
        """Read no more."""
        if self.dataset is not None:
            self.dataset.close()


def compile_distributed(compiler: Compiler, machine: Machine) -> Work:
    """Compile what a distributed Map does: effective input to its raw result."""
    state, numerals = compiler.state, compiler.profile.aws
    config = (state.get("ItemProcessor") or state["Iterator"]).get("ProcessorConfig", {})
    express = config.get("ExecutionType") == "EXPRESS"
    label = state.get("Label", compiler.name)
    pure = all(step.work is None for step in machine.steps.values())
    effective_input = compiler.input()
    begin = compile_source(compiler)
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    batcher = compile_batcher(compiler)
    limit = number(compiler, "MaxConcurrency", 0, numerals=numerals)
    tolerance = compile_tolerance(compiler)
    open_results = _writer(compiler)

    async def work(data: Json, frame: Frame) -> Json:
        effective = effective_input(data, frame)
        source = begin(effective, frame)
        batched = None if batcher is None else batcher(effective, frame)
        most = 0 if limit is None else int(limit(effective, frame))
        allowed: Tolerance = _none if tolerance is None else tolerance(effective, frame)
        opened = open_results(effective, frame)
        run = frame.run(machine, label, express, pure)
        frame.note("MapRunStarted", {"mapRunArn": run.arn})
        try:
            results = opened(run)
            iteration = _Iteration(run, source, selector, effective, batched, results, allowed)
            fan = Fan(
                None,
                iteration.child,
                min(most or MOST_CHILDREN, MOST_CHILDREN),
                failed=iteration.failed,
                ended=results.ended,
                aborted=results.aborted,
                pure=pure,
            )
            try:
                await frame.host.fork(frame, fan)
                iteration.check()
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


class _Iteration:
    """One run on its way: makes the children of the items, and counts what failed."""

    def __init__(
        self,
        run: Run,
        source: Source,
        selector: Evaluate | None,
        effective: Json,
        batched: Batched | None,
        results: Results,
        allowed: Tolerance,
    ) -> None:
        self.run = run
        self.source = source
        self.selector = selector
        self.effective = effective
        self.results = results
        self.allowed = allowed
        self.drawn = 0
        self.failures = 0
        self.batch_sizes: dict[int, int] = {}
        self.children = self._single() if batched is None else self._batches(batched)

    def child(self, index: int) -> Frame | None:
        """Return the next child, None after the last one."""
        return next(self.children, None)

    def _single(self) -> Iterator[Frame]:
        run, source = self.run, self.source
        for index, item in enumerate(source.items):
            self.drawn = index + 1
            yield run.child(index, self._input(index, item), item, source.name)

    def _batches(self, batched: Batched) -> Iterator[Frame]:
        for index, batch in enumerate(batched(self._inputs())):
            self.batch_sizes[index] = len(batch["Items"])
            yield self.run.child(index, batch, ABSENT, self.source.name)

    def _inputs(self) -> Iterator[Json]:
        for index, item in enumerate(self.source.items):
            self.drawn = index + 1
            yield self._input(index, item)

    def _input(self, index: int, item: Json) -> Json:
        return input_of(self.selector, self.effective, self.run, index, item, self.source.name)

    def failed(self, child: Frame, error: StateError) -> StateError | None:
        """Count a failure: all items of a batch have failed with it."""
        self.failures += self.batch_sizes.get(child.index, 1)
        self.results.failed(child, error)
        length = self.source.length
        allowed = self.allowed(float("inf") if length is None else length)
        return too_many_failed() if self.failures > allowed else None

    def check(self) -> None:
        """Judge the failures again, now that it is known how many items there are."""
        if self.failures > self.allowed(self.drawn):
            raise too_many_failed()


def input_of(
    selector: Evaluate | None, effective: Json, run: Run, index: int, item: Json, source: str
) -> Json:
    """Return the input of the iteration of one item."""
    if selector is not None:
        return selector(effective, run.selected(index, item, source))
    return {"Key": item.key, "Value": item.value} if type(item) is Entry else item


# Where the items come from


def compile_source(compiler: Compiler) -> Begin:
    """Compile where the items of a run come from: effective input to them."""
    return _reader(compiler) if "ItemReader" in compiler.state else _items(compiler)


def _items(compiler: Compiler) -> Begin:
    evaluate = compile_items(compiler, objects=True)

    def begin(effective: Json, frame: Frame) -> Source:
        items = evaluate(effective, frame)
        drawn = iter(items) if type(items) is list else map(Entry._make, items.items())
        return Source(drawn, len(items), None)

    return begin


def _reader(compiler: Compiler) -> Begin:
    reader, profile = compiler.state["ItemReader"], compiler.profile
    arguments = compiler.within("ItemReader").payload()
    most = number(
        compiler.within("ItemReader", "ReaderConfig"), "MaxItems", 0, numerals=profile.aws
    )

    def begin(effective: Json, frame: Frame) -> Source:
        # Zero is no limit (recorded).
        bound = 0 if most is None else int(most(effective, frame))
        dataset = Dataset(
            reader,
            arguments(effective, frame),
            frame.host.bucket,
            profile.max_payload,
            profile.aws,
        )
        return Source(islice(dataset, bound or None), None, dataset)

    return begin


def compile_batcher(compiler: Compiler) -> Callable[[Json, Frame], Batched] | None:
    """Compile `ItemBatcher`: effective input to what makes batches; None where there is none."""
    if "ItemBatcher" not in compiler.state:
        return None
    inner, numerals = compiler.within("ItemBatcher"), compiler.profile.aws
    most = number(inner, "MaxItemsPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    size = number(inner, "MaxInputBytesPerBatch", 1, numerals=numerals) or constant(NO_BOUND)
    shared = inner.template("BatchInput")

    def batcher(effective: Json, frame: Frame) -> Batched:
        items, width = most(effective, frame), size(effective, frame)
        common = {} if shared is None else {"BatchInput": shared(effective, frame)}
        return lambda drawn: batches(drawn, items, width, common)

    return batcher


# Where the results go


def _writer(compiler: Compiler) -> Callable[[Json, Frame], Callable[[Run], Results]]:
    if "ResultWriter" not in compiler.state:
        return lambda effective, frame: lambda run: Kept()
    writer = compiler.state["ResultWriter"]
    config = writer.get("WriterConfig", {})
    if "Resource" not in writer:
        return lambda effective, frame: lambda run: Shaped(config)
    arguments = compiler.within("ResultWriter").payload()

    def open_results(effective: Json, frame: Frame) -> Callable[[Run], Results]:
        given = arguments(effective, frame)

        def opened(run: Run) -> Results:
            name, prefix = _place(given)
            try:
                bucket = frame.host.bucket(name)
            except ObjectFault as fault:
                raise StateError("States.ResultWriterFailed", str(fault)) from None
            return Written(run, bucket, name, prefix, config)

        return opened

    return open_results


def _place(arguments: Json) -> tuple[str, str]:
    """Return bucket and prefix; raises StateError("States.ResultWriterFailed")."""
    given = arguments if type(arguments) is dict else {}
    name, prefix = given.get("Bucket"), given.get("Prefix", "")
    if type(name) is not str or type(prefix) is not str:
        raise StateError(
            "States.ResultWriterFailed",
            f"ResultWriter needs a 'Bucket' and a 'Prefix', not {excerpt(arguments, 200)}",
        )
    return name, prefix
