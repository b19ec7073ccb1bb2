"""Reads executions on Temporal: their rows are copied from workflows into a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import RLock
from typing import Final

from temporalio.client import WorkflowExecutionDescription

from asl.core.errors import AslError
from asl.core.values import Json
from asl.effects.clock import WallClock
from asl.engine.pending_callback import PendingCallback
from asl.executions.errors import ExecutionNotFound, RequestNotFound
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.states.approval_request import ApprovalRequest
from asl.stores.deletion import delete_executions
from asl.stores.executions import (
    ENDED,
    StoredExecution,
    find_execution,
    numbers_below,
    top_of,
)
from asl.stores.session import ThreadSessions
from asl.stores.statements import PARAMETER, Update
from asl.stores.tables import EXECUTION
from asl.stores.transfer import import_execution, joined_history
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import Memo, unpack
from asl.temporal.replays import replayed_execution
from asl.temporal.statuses import CLOSED

__all__ = ["TemporalReader"]

REOPEN: Final = Update(
    EXECUTION,
    {"status": "RUNNING", "ended": None, "error": None, "cause": None, "output": None},
    {"name": PARAMETER},
)


class TemporalReader(ExecutionReader):
    """Reads executions that workflows run.

    Args:
        sessions: The store in memory that holds the copies.
        client: The client.
        put_map_runs: Puts the Map Runs of an execution into the store.
    """

    def __init__(
        self,
        sessions: ThreadSessions,
        client: TemporalClient,
        put_map_runs: Callable[[list[Json]], None],
    ) -> None:
        super().__init__(sessions, WallClock().now)
        self.client = client
        self._put_map_runs = put_map_runs
        self._map_runs: dict[str, list[Json]] = {}
        """Rows of the Map Runs of each copy, by name."""
        self._versions: dict[str, tuple[str, int]] = {}
        """Run and length of the history of each copy, by name."""
        self._runs: dict[str, Json] = {}
        """Exports of earlier runs."""
        self._copying = RLock()

    def get(self, name: str) -> StoredExecution:
        """Return an execution by its name or its id; its copy is up to date.

        Raises:
            ExecutionNotFound: There is none.
        """
        if not isinstance(name, str):
            raise AslError(f"the name of an execution must be a string, got {type(name).__name__}")
        known = find_execution(self.session, name)
        if known is not None and known.parent is not None:
            self.refresh(top_of(self.session, name))
            return super().get(name)
        for each in _roots(name):
            with suppress(ExecutionNotFound):
                self.refresh(each)
                return super().get(name)
        raise ExecutionNotFound(f"there is no execution {name!r} in {self.client.address}")

    def root(self, name: str) -> str:
        """Return the name of the root of an execution."""
        return top_of(self.session, self.get(name).name)

    def needs(self, name: str) -> list[str]:
        """Return a sentence about each reason why an execution makes no progress."""
        found = self.client.describe(self.root(name))
        return [] if found.close_time is not None else self.client.waits(found)

    def missing_bindings(self, name: str) -> list[str]:
        """Return why calls wait for a worker, if only this process has any."""
        return self.client.missing_bindings(self.client.describe(self.root(name)))

    def spending(self, stored: StoredExecution) -> Json:
        """Return the recorded usage of a listed execution."""
        return super().spending(self.get(stored.name))

    # Requests

    def all_open_requests(
        self, *, limit: int | None, after: str | None, damaged: list[str]
    ) -> list[ApprovalRequest]:
        """Return the open requests of all executions."""
        self.refresh_waiting()
        return super().all_open_requests(limit=limit, after=after, damaged=damaged)

    def all_pending_callbacks(
        self, *, limit: int | None, after: str | None, damaged: list[str]
    ) -> list[PendingCallback]:
        """Return the tasks of all executions that wait for a callback."""
        self.refresh_waiting()
        return super().all_pending_callbacks(limit=limit, after=after, damaged=damaged)

    def refresh_waiting(self) -> None:
        """Copy the executions that wait for answers."""
        self._refresh_open(lambda memo: bool(memo.get("waits")))

    def refresh_polled(self, activity: str) -> None:
        """Copy the executions that wait for workers of an activity."""
        self._refresh_open(
            lambda memo: bool(memo.get("waits")) and activity in memo.get("activities", ())
        )

    def _refresh_open(self, is_meant: Callable[[Memo], bool]) -> None:
        for each in self.client.list_open():
            if is_meant(each.memo):
                with suppress(ExecutionNotFound):  # it was deleted meanwhile
                    self.refresh(each.found.id)

    def request(self, id: str) -> ApprovalRequest:
        """Return a request, open or closed.

        Raises:
            RequestNotFound: There is none.
        """
        self.execution_of(id)
        return super().request(id)

    def execution_of(self, id: str) -> str:
        """Return the name of the execution of a request or token; its copy is up to date.

        Raises:
            RequestNotFound: There is none.
        """
        with suppress(RequestNotFound):
            return self.get(super().execution_of(id)).name
        with suppress(ExecutionNotFound, RequestNotFound):
            self.get(id.partition(":/")[0])
            return super().execution_of(id)
        for each in self.client.list_open():
            if id in each.memo.get("waits", ()) or each.memo.get("more"):
                self.refresh(each.found.id)
        return super().execution_of(id)

    # Copies

    def refresh(self, name: str) -> WorkflowExecutionDescription:
        """Copy an execution from its workflow, if the history has grown.

        Raises:
            ExecutionNotFound: There is no such workflow.
        """
        found = self.client.describe(name)
        version = found.run_id, found.history_length
        with self._copying:
            if self._versions.get(name) != version:
                earlier = [run for run in self.client.list_runs(name) if run != found.run_id]
                lines = [self._ended_run(name, run) for run in earlier]
                lines.append(self._read(name, found.run_id))
                self._replace(name, lines[0] if len(lines) == 1 else joined_history(lines), found)
                self._put_map_runs(self._map_runs[name])
                self._versions[name] = version
        return found

    def map_runs(self, name: str) -> list[Json]:
        """Return the rows of the Map Runs of a copy, without children."""
        return [
            [*fields, {**body, "children": []}] for *fields, body in self._map_runs.get(name, [])
        ]

    def version(self, name: str) -> tuple[str, int] | None:
        """Return a value that changes with each new copy of an execution."""
        return self._versions.get(name)

    def outdate(self, name: str) -> None:
        """Take another copy of an execution when it is read next."""
        self._versions.pop(name, None)

    def forget(self, name: str) -> None:
        """Drop the copy of an execution."""
        with self._copying:
            self._versions.pop(name, None)
            known = find_execution(self.session, name)
            if known is not None:
                numbers = [known.number, *numbers_below(self.session, known.number)]
                delete_executions(self.session, numbers)
                self.session.flush()

    def _ended_run(self, name: str, run: str) -> Json:
        """Return the export of a run that no longer changes."""
        if run not in self._runs:
            self._runs[run] = self._read(name, run)
        return self._runs[run]

    def _read(self, name: str, run: str) -> Json:
        state = self.client.read_state(name, run)
        if state.packed is not None:
            content = unpack(state.packed)
        else:
            assert state.history is not None
            converter = self.client.raw.data_converter
            content = self.client.run(replayed_execution(state.history, converter))
        self._map_runs[name] = content.pop("mapRuns", [])  # those of the latest run, read last
        return content

    def _replace(self, name: str, content: Json, found: WorkflowExecutionDescription) -> None:
        """Put another copy in the place of the present one."""
        self.forget(name)
        import_execution(self.session, content)
        status = CLOSED.get(found.status) if found.status is not None else None
        has_ended = super().get(name).status in ENDED
        if status is None and has_ended:  # a replay is ahead of the workers
            self.session.write(REOPEN, name)
        elif status is not None and not has_ended:
            how = status if found.status is None else found.status.name
            Executor(self, WallClock()).abort(name, None, f"its workflow is {how} on Temporal")
        self.session.flush()


def _roots(name: str) -> Iterator[str]:
    """Yield the names that the root of an execution may have, given its name or its id.

    A state names the execution that it starts after its own: `NAME.DIGEST`.
    """
    for each in dict.fromkeys((name, name.rpartition(":")[2])):
        while each:
            yield each
            each, _, digest = each.rpartition(".")
            if len(digest) != 12:
                break
