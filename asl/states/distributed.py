"""The distributed Map: items from anywhere, children that are executions, results to anywhere.

Items are drawn one by one as children are free to take them, and results are handed on as children
end, so that neither has to fit into memory (Specification 6.3).
"""

from collections.abc import Iterator
from contextlib import suppress
from math import inf

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Evaluate
from asl.program import Machine, Work
from asl.states.base import Compiler, mentions
from asl.states.blocks.progress import compile_following, record_counts
from asl.states.calls import Invocation, Target
from asl.states.effects import (
    ABSENT,
    DistributedRun,
    FanIn,
    FanOut,
    ServiceCall,
    StateFrame,
)
from asl.states.errors import Suspension
from asl.states.item_sources import MakeBatches, compile_batcher, compile_source, iteration_input
from asl.states.items.dataset import Dataset
from asl.states.items.pages import MAX_PAGES, take_pages
from asl.states.iteration import (
    compile_concurrency,
    compile_tolerance,
    tolerance_error,
)
from asl.states.map_data import ItemSource, Tolerance
from asl.states.map_results import Results, compile_results

__all__ = ["compile_distributed"]

TELLING = ("Audit", "Events", "Feedback", "Progress")
"""The blocks whose effect follows from all that a child does, not from what it notes alone."""
MOST_SHOWN = 10
"""Maximum failed items in the event of the end of a run."""
CAUSE = 1_000
"""Maximum characters of a cause in that event."""
MOST_CHILDREN = 10_000
"""Maximum number of concurrent children (as with AWS)."""


def compile_distributed(compiler: Compiler, machine: Machine) -> Work:
    """Compile what a distributed Map does: effective input to its raw result."""
    state = compiler.state
    processor = state.get("ItemProcessor") or state["Iterator"]
    config = processor.get("ProcessorConfig", {})
    express = config.get("ExecutionType") == "EXPRESS"
    label = state.get("Label", compiler.name)
    pure = all(step.work is None for step in machine.steps.values())
    tells, follow = mentions(processor, *TELLING), compile_following(compiler)
    effective_input = compiler.input()
    source_of = compile_source(compiler)
    reader = state.get("ItemReader", {}).get("Resource", "")
    handler = Target("resource", reader, compiler.name, optional=True)
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    batched_by = compile_batcher(compiler)
    limit = compile_concurrency(compiler)
    tolerance = compile_tolerance(compiler)
    opened_by = compile_results(compiler)

    async def work(data: Json, frame: StateFrame) -> Json:
        effective = effective_input(data, frame)
        follows = follow(data, frame)
        most = int(limit(effective, frame))
        source = source_of(effective, frame)
        batched = batched_by and batched_by(effective, frame)
        allowed = tolerance(effective, frame) if tolerance else Tolerance(0)
        opened = opened_by(effective, frame)
        run = frame.run(machine, label, express, pure, tells)
        frame.note("MapRunStarted", {"mapRunArn": run.arn})
        failures, status = None, ""
        try:
            results = opened(run)
            if isinstance(source, Dataset):
                await _find_items(frame, handler, source)
            failures = _Failures(source, allowed, results, run, tells=not compiler.profile.aws)
            children = _children(run, source, selector, effective, batched, failures.weights)
            fan = FanOut(
                None,
                lambda index: next(children, None),
                min(most or MOST_CHILDREN, MOST_CHILDREN),
                on_failure=failures.count_failure,
                on_end=results.add_output,
                on_abort=results.add_abort,
                series=children if run.is_pure else None,
                held_results=results.held_results,
                has_timeout=express and compiler.profile.quotas.express_seconds is not None,
            )
            fan = run.monitored_fan_out(fan, allowed, failures.weights, source)
            joined = await _run_all(frame, run.with_end_reports(fan, source), failures, results)
        except StateError as error:
            told = {"error": error.name, "cause": error.cause}
            ended = {key: text for key, text in told.items() if text}
            status = "FAILED"
            frame.note("MapRunFailed", ended | (failures.details() if failures else {}))
            raise
        except Suspension:  # it continues later
            run.pause()
            raise
        except BaseException as stop:
            if frame.effects.runtime.ends(stop):
                status = "ABORTED"
                frame.note("MapRunAborted", {})
            raise
        else:
            status = "SUCCEEDED"
        finally:
            source.close()
            run.finish(status)
        frame.note("MapRunSucceeded", failures.details())
        if follows:
            record_counts(frame, run.started_children - joined.failures, joined.failures)
        return results.value()

    return work


async def _run_all(
    frame: StateFrame, fan: FanOut, failures: "_Failures", results: Results
) -> FanIn:
    """Run the children to their end; complete the results in every case."""
    try:
        joined = await frame.effects.fan_out(frame, fan)
        failures.check()
    except BaseException as stop:
        if frame.effects.runtime.ends(stop):  # otherwise all of them are repeated
            with suppress(StateError):  # the first error is reported
                await _complete(frame, results)
        raise
    await _complete(frame, results)
    return joined


async def _complete(frame: StateFrame, results: Results) -> None:
    """Complete the results, with the objects that a service writes."""
    results.close()
    for written in results.unsent_objects():
        await frame.effects.call(frame, ServiceCall("objects", written))


async def _find_items(frame: StateFrame, handler: Target, dataset: Dataset) -> None:
    """Let a service read the items if there is one, or a handler those in no bucket."""
    if frame.effects.runtime.has_service("items"):
        pages: list[dict[str, Json]] = []
        skip, more = 0, True
        while more:
            if len(pages) == MAX_PAGES:
                cause = f"{dataset.resource!r} yields more than {skip} items, which are too many"
                raise StateError("States.ItemReaderFailed", cause)
            request = {**dataset.request, "skip": skip}
            page = await frame.effects.call(frame, ServiceCall("items", request))
            if "unmapped" in page:
                if not await _ask(frame, handler, dataset):
                    take_pages(dataset, [{"groups": [], "fault": page["unmapped"]}])
                return
            pages.append(page)
            skip, more = skip + page["count"], page["more"]
        take_pages(dataset, pages)
    elif not dataset.is_mapped:
        await _ask(frame, handler, dataset)


async def _ask(frame: StateFrame, handler: Target, dataset: Dataset) -> bool:
    """Let a handler of the `Resource` read the items; return whether there is one."""
    try:
        answer = await frame.effects.call(frame, Invocation(handler, dataset.arguments))
    except StateError as error:
        if error.name != "States.AgentNotFound":
            raise StateError("States.ItemReaderFailed", str(error)) from error
        return False
    dataset.take_items(answer)
    return True


def _children(
    run: DistributedRun,
    source: ItemSource,
    selector: Evaluate | None,
    effective: Json,
    batched: MakeBatches | None,
    weights: dict[int, int],
) -> Iterator[StateFrame]:
    """Return the children of a run, lazily; *weights* learns how many items a batch has."""
    if batched is not None:
        inputs = (data for _, data in _inputs(run, source, selector, effective))
        return _in_batches(run, source, batched(inputs), weights)
    if selector is not None:
        return _selected(run, source, _inputs(run, source, selector, effective))
    return run.children(source)


def _in_batches(
    run: DistributedRun, source: ItemSource, batches: Iterator[Json], weights: dict[int, int]
) -> Iterator[StateFrame]:
    for index, batch in enumerate(batches):
        weights[index] = len(batch["Items"])
        yield run.child(index, batch, ABSENT, source.name)


def _selected(
    run: DistributedRun, source: ItemSource, inputs: Iterator[tuple[Json, Json]]
) -> Iterator[StateFrame]:
    for index, (item, data) in enumerate(inputs):
        yield run.child(index, data, item, source.name)


def _inputs(
    run: DistributedRun, source: ItemSource, selector: Evaluate | None, effective: Json
) -> Iterator[tuple[Json, Json]]:
    """Yield each item and the input of its iteration."""
    index = -1
    for index, item in enumerate(source):
        yield item, iteration_input(selector, effective, run, index, item, source.name)
    source.length = index + 1


def _failure(index: int, error: StateError, shown: str) -> Json:
    """Return a failed item for events; *shown* is the error without redacted values."""
    cause = shown.removeprefix(error.name or "").removeprefix(": ")
    told = {"index": index, "error": error.name, "cause": _beginning(cause)}
    return {key: value for key, value in told.items() if value not in (None, "")}


def _beginning(cause: str) -> str:
    return cause if len(cause) <= CAUSE else f"{cause[: CAUSE - 3]}..."


class _Failures:
    """Counts failures and compares them with the tolerated ones."""

    def __init__(
        self,
        source: ItemSource,
        allowed: Tolerance,
        results: Results,
        run: DistributedRun,
        *,
        tells: bool,
    ) -> None:
        self.source = source
        self.allowed = allowed
        self.results = results
        self.run = run
        self.tells = tells
        """Whether the cause of the Map names the latest failure; with AWS it does not."""
        self.count = 0
        self.weights: dict[int, int] = {}
        """Number of items of each child with a batch."""
        self.last = ""
        self.first: list[Json] = []
        """The first failures: index, error and cause."""

    def details(self) -> dict[str, Json]:
        """Return the details on failed items for the end of the run, empty for none."""
        if not self.count:
            return {}
        counts = {"failed": self.count, "total": self.source.length}
        known = {name: count for name, count in counts.items() if count is not None}
        return {"itemCounts": known, "failures": self.first}

    def count_failure(self, child: StateFrame, error: StateError) -> StateError | None:
        """Count a failed child; all items of a batch have failed with it."""
        self.count += self.weights.get(child.index, 1)
        shown = self.run.redacted_cause(child, error)
        if self.tells:
            self.last = f": iteration {child.index} failed with {shown}"
        if len(self.first) < MOST_SHOWN:
            self.first.append(_failure(child.index, error, shown))
        self.results.add_failure(child, error)
        length = self.source.length
        allowed = self.allowed(inf if length is None else length)
        return tolerance_error(self.last) if self.count > allowed else None

    def check(self) -> None:
        """Check the tolerance again with the final number of items.

        Raises:
            StateError: Too many items failed.
        """
        if self.count > self.allowed(self.source.length or 0):
            raise tolerance_error(self.last)
