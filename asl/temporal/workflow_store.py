"""The store in the memory of a workflow: one execution with its children, on the workflow's clock.

Workflow code runs in any thread, one at a time, so a single session serves all of them.
"""

from __future__ import annotations

import json
from asyncio import AbstractEventLoop
from datetime import datetime
from typing import Final
from zlib import crc32

from temporalio import workflow

from asl.compiler import compile_workflow
from asl.core.errors import AslError
from asl.core.values import Json
from asl.documents.loading import resolve_profile
from asl.engine.result import Result
from asl.executions.base import StoreBase
from asl.executions.execution_reader import ExecutionReader
from asl.executions.execution_start import ExecutionStart
from asl.executions.executor import Executor
from asl.executions.map_runs import MAP_RUN
from asl.executions.store import Store
from asl.program import Program
from asl.stores.deletion import delete_executions
from asl.stores.executions import ENDED, ExecutionOrigin, StoredExecution, numbers_below
from asl.stores.memory import MemoryBackend, MemoryConnection
from asl.stores.pools import ReleasableBudgets
from asl.stores.resources import Resource, list_resources, put_resource
from asl.stores.session import Session, ThreadSessions
from asl.stores.transfer import with_briefs
from asl.temporal.payloads import StartMessage, unpack

__all__ = ["SHORTEST", "WorkflowClock", "WorkflowStore", "execution_number"]

SHORTEST: Final = 0.001
"""Seconds that a workflow waits at least: only a timer lets its time pass."""


class WorkflowClock:
    """The time of a workflow (protocol `asl.effects.clock.Clock`)."""

    def __init__(self, latest: float = 0.0) -> None:
        self.external_waits: dict[object, float] = {}
        self._latest = latest

    def now(self) -> float:
        """Return the time of the workflow, outside of it the latest one."""
        if workflow.in_workflow():
            self._latest = workflow.time()
        return self._latest

    def real_begins(self) -> None:
        """Do nothing: the clock follows the history."""

    def real_ends(self) -> None:
        """Do nothing: the clock follows the history."""

    def new_event_loop(self) -> AbstractEventLoop:
        """Refuse: the workflow is the event loop.

        Raises:
            AslError: Always.
        """
        raise AslError("an execution in a workflow runs on its event loop")


class _SharedConnection(MemoryConnection):
    """A connection that any thread may use, one after the other."""

    is_usable = True


class _WorkflowBackend(MemoryBackend):
    """Rows in the memory of a workflow."""

    place = "the workflow"

    def connect(self) -> MemoryConnection:
        """Return a connection for all threads."""
        return _SharedConnection(self._shared)


class _SharedSession(ThreadSessions):
    """The only session of a store, for all threads."""

    def __init__(self, backend: MemoryBackend) -> None:
        super().__init__(backend)
        self._only = Session(backend.connect(), backend.place)

    @property
    def session(self) -> Session:
        """The session."""
        return self._only


class _WorkflowReader(ExecutionReader):
    """Reads executions without a thread, which a workflow must not start."""

    async def load_program(self, stored: StoredExecution) -> Program:
        """Return the program of an execution, compiled here."""
        return self.program(stored)


class _WorkflowExecutor(Executor):
    """Runs the execution of a workflow; its numbers are the same in every replay."""

    first_number = 0
    budgets: ReleasableBudgets | None = None
    """Budgets that the execution shares with others; None for none."""

    @property
    def shared_budgets(self) -> ReleasableBudgets:
        """The budgets that the execution shares with others."""
        return super().shared_budgets if self.budgets is None else self.budgets

    def _next_number(self) -> int:
        self._last = max(self._last + 1, self.first_number)
        return self._last


def execution_number(name: str, started: datetime) -> int:
    """Return the number of an execution, which increases with the time of its start."""
    return (int(started.timestamp() * 1_000_000) << 10) + crc32(name.encode()) % 1024


class WorkflowStore(Store):
    """The store of one execution and its children, in the memory of a workflow."""

    def __init__(self, clock: WorkflowClock, budgets: ReleasableBudgets | None = None) -> None:
        sessions = _SharedSession(_WorkflowBackend())
        StoreBase.__init__(self, sessions, clock, {})
        self._reader = _WorkflowReader(sessions, clock.now)
        self._executor = self._numbering = _WorkflowExecutor(self._reader, clock)
        self._numbering.budgets = budgets

    def brief_export(self, name: str) -> Json:
        """Return an execution without its history so far, for another run of the workflow."""
        (line,) = self.export([name])
        journals = [self.reader.journal(each) for each in (self.get(name), *self.descendants(name))]
        return with_briefs(line, {each.number: (each.steps, each.brief()) for each in journals})

    def map_runs_of(self, name: str, children: int) -> list[Json]:
        """Return the rows of the Map Runs of an execution.

        Args:
            name: Name of the execution.
            children: Maximum number of children of each, the latest ones.
        """
        return [
            [*run[:4], {**run.body, "children": run.body["children"][::-1][:children][::-1]}]
            for run in list_resources(self.session, MAP_RUN, name)
        ]

    def independent(self, name: str) -> list[StoredExecution]:
        """Return the executions that are not part of the one of a name."""
        return [each for each in self.executions() if each.name != name]

    def take(self, stored: StoredExecution) -> Json:
        """Remove and return an execution with its descendants."""
        (content,) = self.export([stored.name])
        numbers = numbers_below(self.session, stored.number)
        delete_executions(self.session, [stored.number, *numbers])
        self.session.flush()
        return content

    def seconds_until_due(self, name: str, result: Result) -> float | None:
        """Return the seconds until a paused execution or a child of it has to continue, None for
        no time.
        """
        open_ones = (self.get(name), *self.descendants(name))
        wakes = [each.wake for each in open_ones if each.status not in ENDED]
        times = [each for each in (result.wake, *wakes) if each is not None]
        return max(0.0, min(times) - self.clock.now()) if times else None

    @property
    def executor(self) -> Executor:
        """Runs the execution."""
        return self._executor

    def begin(self, name: str, start: StartMessage, started: datetime) -> None:
        """Create the execution, or take over the one of an earlier run.

        Args:
            name: Name of the execution.
            start: Input of its workflow.
            started: Start of the workflow.

        Raises:
            AslError: The document has errors.
        """
        self._numbering.first_number = execution_number(name, started)
        self._executor.command = start.get("command")
        if "content" in start:
            self.import_execution(unpack(start["content"]))
            for row in unpack(start["map_runs"]) if "map_runs" in start else ():
                put_resource(self.session, Resource(*row))
            return
        program = compile_workflow(
            unpack(start["document"]), resolve_profile(start["profile"]), start["workflow"]
        )
        data = json.loads(start["input"])  # with integers of any size
        origin = ExecutionOrigin(*start.get("origin", ()))
        new = ExecutionStart(name, program, data, start["express"], start["requestor"], origin)
        self._executor.record(new)
        self.session.flush()
