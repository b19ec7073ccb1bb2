"""Distributed Maps over child workflows: each runs a slice of the items.

The Map itself stays in the workflow of its execution: order, concurrency, tolerated failures and
results. What its children would add to the history there is in the histories of the slices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

from asl.core.errors import StateError
from asl.core.lazy import lazy_pattern
from asl.core.pointers import tokens
from asl.core.values import Json, compact
from asl.effects.services import ChildOutcome, MapItem
from asl.engine.frame import Frame
from asl.engine.journal_values import read_error, read_spent
from asl.engine.usage import UNSPENT
from asl.program import Machine, Program
from asl.states import STATE_TYPES
from asl.states.base import mentions
from asl.states.effects import ABSENT
from asl.states.errors import RaisedError, Suspension
from asl.states.map_data import MapEntry
from asl.temporal.payloads import SLICE, SliceMessage, pack, unpack
from asl.temporal.sizes import check_length

__all__ = ["Slicer", "read_item"]

AT_ONCE: Final = 8
"""Number of slices of an execution at the same time."""
SMALLEST: Final = 250
LARGEST: Final = 1000
"""Number of items of a slice, if there are so many."""
FEW: Final = 20
"""Number of waiting items below which they run in the workflow."""
MAX_BYTES: Final = 1_000_000
"""Size of the inputs of a slice, unless a single one is larger."""
TASK_TIMEOUT: Final = timedelta(seconds=60)
"""Time for all items of a slice to go on together."""
TURNS: Final = 20
"""Turns of the event loop in which the children of a Map begin: their number doubles with each."""
DIVISOR: Final = 4
"""The part of the waiting items that becomes a slice; the next slices share the rest."""
_OUTSIDE: Final = lazy_pattern(
    r":activity:|\.waitForTaskToken$|:states:::states:|:states:::aws-sdk:sfn:"
)
"""Resources that wait for tokens or start executions."""


class _Waiting:
    """A child that waits for a slice and its outcome."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.outcome: asyncio.Future[ChildOutcome | None] = asyncio.Future()
        self.slice: _Slice | None = None


class _Slice:
    """Children that run together in another workflow."""

    def __init__(self, children: list[_Waiting]) -> None:
        self.children = children
        self.task: asyncio.Task[None] | None = None
        for each in children:
            each.slice = self

    async def leave(self) -> None:
        """Cancel the workflow if no child waits for it any more."""
        if self.task is not None and all(each.outcome.done() for each in self.children):
            self.task.cancel()
            await asyncio.wait({self.task})


class Slicer:
    """Runs the children of the distributed Maps of a workflow in slices.

    Args:
        is_long: Returns whether the history of the run is long, so that no further slice begins.
        bindings: Bindings in the workflow, as JSON text.
    """

    def __init__(self, is_long: Callable[[], bool], bindings: str) -> None:
        self._is_long = is_long
        self.bindings = bindings
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._maps: dict[Any, _MapSlices] = {}
        self._documents: dict[str, dict[str, Json] | None] = {}
        """Documents of the children by the pointers of their machines; None for one whose
        children run in the workflow."""
        self.running = 0
        """Number of slices that run."""

    async def run(self, frame: Frame) -> ChildOutcome | None:
        """Return the outcome of a child, None for one that has to run in the workflow."""
        document = self._document(frame)
        if document is None:
            return None
        run: Any = frame.execution
        of = self._maps.setdefault(run.run, _MapSlices(self, document))
        return await of.run(frame)

    def _document(self, frame: Frame) -> dict[str, Json] | None:
        """Return the document of a child, None for one that has to run in the workflow."""
        run: Any = frame.execution
        machine: Machine = run.run.machine
        if run.ledger is not None or run.rights or run.run.observes or frame.scopes:
            return None
        pointer = machine.pointer
        if pointer not in self._documents:
            self._documents[pointer] = _document_of(frame.execution.program, machine)
        return self._documents[pointer]


class _MapSlices:
    """The children of one run of a Map."""

    def __init__(self, slicer: Slicer, document: dict[str, Json]) -> None:
        self._slicer = slicer
        self._document = document
        self._queue: deque[_Waiting] = deque()
        self._dispatcher: asyncio.Task[None] | None = None

    async def run(self, frame: Frame) -> ChildOutcome | None:
        """Return the outcome of a child, None for one of few."""
        waiting = _Waiting(frame)
        self._queue.append(waiting)
        if self._dispatcher is None:
            self._dispatcher = asyncio.create_task(self._dispatch())
        try:
            return await waiting.outcome
        except asyncio.CancelledError:
            if waiting.slice is not None:
                await waiting.slice.leave()
            raise

    async def _dispatch(self) -> None:
        """Start slices until no child waits for one."""
        slicer = self._slicer
        for _ in range(TURNS):
            await asyncio.sleep(0)
        while self._queue:
            await slicer._slots.acquire()
            if slicer._is_long():
                slicer._slots.release()
                await self._suspend()
                break
            children = self._next_children()
            if len(children) < FEW and not self._queue:
                slicer._slots.release()
                for each in children:
                    each.outcome.set_result(None)
            else:
                part = _Slice(children)
                slicer.running += 1
                part.task = asyncio.create_task(self._run_slice(part))
        self._dispatcher = None

    async def _suspend(self) -> None:
        """Let the next run of the workflow start the further slices."""
        await workflow.wait_condition(lambda: self._slicer.running == 0)
        for each in self._waiting():
            each.outcome.set_exception(Suspension())

    def _waiting(self) -> Iterator[_Waiting]:
        """Remove and yield the children that wait for a slice, except cancelled ones."""
        while self._queue:
            each = self._queue.popleft()
            if not each.outcome.done():
                yield each

    def _next_children(self) -> list[_Waiting]:
        """Remove and return the children of the next slice."""
        most = min(LARGEST, max(SMALLEST, len(self._queue) // DIVISOR))
        children, size = list[_Waiting](), 0
        for each in self._waiting():
            size += len(compact(each.frame.data))
            if children and size > MAX_BYTES:
                self._queue.appendleft(each)
                break
            children.append(each)
            if len(children) == most:
                break
        return children

    async def _run_slice(self, part: _Slice) -> None:
        """Run a workflow for some children, and give them their outcomes."""
        try:
            outcomes = await self._outcomes(part.children)
        except asyncio.CancelledError:
            outcomes = []
        finally:
            self._slicer.running -= 1
            self._slicer._slots.release()
        for each, outcome in zip(part.children, outcomes, strict=False):
            if not each.outcome.done():
                each.outcome.set_result(outcome)

    async def _outcomes(self, children: list[_Waiting]) -> list[ChildOutcome]:
        execution: Any = children[0].frame.execution
        run = execution.run
        message = SliceMessage(
            document=pack(self._document),
            profile=execution.program.profile.name,
            workflow=execution.workflow,
            workflow_id=execution.workflow_id,
            express=execution.express,
            run=run.id,
            items=pack([_written_item(each.frame) for each in children]),
            bindings=self._slicer.bindings,
        )
        try:
            check_length(message["items"], f"the input of {len(children)} items")
            packed: str = await workflow.execute_child_workflow(
                SLICE,
                message,
                id=f"{workflow.info().workflow_id}/{run.id}/{children[0].frame.index}",
                memo={"bucket": workflow.memo_value("bucket", False)},
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
                task_timeout=TASK_TIMEOUT,
                result_type=str,
                static_summary=f"{len(children)} items from {children[0].frame.index} on",
            )
        except ChildWorkflowError as error:
            return [_failed(error) for _ in children]
        except StateError as error:
            return [_outcome_of(error.name, error.cause) for _ in children]
        return [_read_outcome(each["outcome"]) for each in unpack(packed)]


def _failed(error: ChildWorkflowError) -> ChildOutcome:
    """Return the outcome of a child of a slice that did not complete."""
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type is not None:
        return _outcome_of(cause.type, cause.message)
    text = f"the workflow of the items did not complete: {cause or error}"
    return _outcome_of("States.TaskFailed", text)


def _outcome_of(error: str | None, cause: str | None) -> ChildOutcome:
    """Return the outcome of a failed child; each raises an exception of its own."""
    return ChildOutcome(None, RaisedError(error, cause), UNSPENT)


def _read_outcome(written: Json) -> ChildOutcome:
    value, error, spent = written
    return ChildOutcome(
        value,
        None if error is None else read_error(error),
        UNSPENT if spent is None else read_spent(spent),
    )


def _written_item(frame: Frame) -> Json:
    """Return the input and the item of a child as JSON."""
    item: Json
    if frame.item is ABSENT:
        item = {}
    elif type(frame.item) is MapEntry:
        item = {"key": frame.item.key, "value": frame.item.value}
    else:
        item = None if frame.item is frame.data else {"value": frame.item}
    return [frame.index, frame.data, item, frame.source]


def read_item(written: Json) -> tuple[Json, MapItem]:
    """Return the input and the item of a child written by a workflow."""
    index, data, item, source = written
    value: Json
    if item is None:
        value = data
    elif "key" in item:
        value = MapEntry(item["key"], item["value"])
    else:
        value = item.get("value", ABSENT)
    return data, MapItem(index, value, source)


def _document_of(program: Program, machine: Machine) -> dict[str, Json] | None:
    """Return the document of the children of a Map, None for children that run in the workflow:
    their states wait for people or tokens, start executions, or affect the whole execution.
    """
    if program.machines.get(machine.pointer) is not machine:  # of an included document
        return None
    if program.budgeted or program.has_channels or program.has_hooks or program.tracks_progress:
        return None
    if mentions(program.document.get("DefaultTools"), *_CONSENT):
        return None
    processor: Json = program.document
    language = processor.get("QueryLanguage", "JSONPath")
    for token in tokens(machine.pointer):
        processor = processor[int(token) if type(processor) is list else token]
        if "States" in processor:
            language = processor.get("QueryLanguage", language)
    if not _is_alone(program, machine) or mentions(processor, "Tools"):
        return None
    around = {key: value for key, value in program.document.items() if key not in _OWN_FIELDS}
    own = {key: processor[key] for key in ("StartAt", "States")}
    return {**around, "QueryLanguage": language, **own}


_CONSENT: Final = ("RequireApproval", "RequireApproval.$")
"""Fields of a tool policy by which calls wait for people."""
_OWN_FIELDS: Final = ("StartAt", "States", "TimeoutSeconds", "Checkpointing")
"""Fields of a document that apply to its own execution."""


def _is_alone(program: Program, machine: Machine) -> bool:
    """Return whether the states of a machine need nothing but calls and time."""
    below = f"{machine.pointer}/"
    steps = [
        step
        for pointer, each in program.machines.items()
        if pointer == machine.pointer or pointer.startswith(below)
        for step in each.steps.values()
    ]
    return all(
        STATE_TYPES[step.type].aws
        and step.feedback is None
        and _OUTSIDE.search(step.resource or "") is None
        for step in steps
    )
