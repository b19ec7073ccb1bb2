"""The store of executions on Temporal: the methods of `asl.Store` over a client.

An execution is read by copying its rows from the workflow into a store in memory. A restart changes
that copy and starts a workflow with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from asl.bindings import NO_INPUT, Bindings, check_input, check_name
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json, copy_foreign, json_equal
from asl.documents.compiling import resolve_program
from asl.effects.clock import WallClock
from asl.executions.base import StoreBase
from asl.executions.errors import ExecutionExists, ExecutionNotFound
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.executions.handle import Handle
from asl.executions.redrive import prepare_redrive
from asl.executions.store import Store
from asl.program import Program
from asl.stores.deletion import delete_executions
from asl.stores.executions import (
    ENDED,
    UNREGISTERED,
    ExecutionOrigin,
    StoredExecution,
    find_execution,
    numbers_below,
)
from asl.stores.memory import MemoryBackend
from asl.stores.session import ThreadSessions
from asl.stores.transfer import (
    export_executions,
    import_execution,
    joined_history,
    with_briefs,
)
from asl.temporal.addresses import parse_address
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import (
    ANSWER,
    CANCEL,
    AnswerMessage,
    CancelMessage,
    StartMessage,
    pack,
    unpack,
)

__all__ = ["TemporalStore"]

LISTED: Final = 1000
"""Maximum number of executions whose requests are listed together."""
_ENDED: Final = {
    WorkflowExecutionStatus.COMPLETED: "SUCCEEDED",
    WorkflowExecutionStatus.FAILED: "FAILED",
    WorkflowExecutionStatus.CANCELED: "ABORTED",
    WorkflowExecutionStatus.TERMINATED: "ABORTED",
    WorkflowExecutionStatus.TIMED_OUT: "TIMED_OUT",
}
"""Status of an execution whose memo is older than its end."""


class TemporalReader(ExecutionReader):
    """Reads executions that workflows run.

    Args:
        sessions: The store in memory that holds the copies.
        client: The client.
    """

    def __init__(self, sessions: ThreadSessions, client: TemporalClient) -> None:
        super().__init__(sessions, WallClock().now)
        self.client = client
        self._versions: dict[str, tuple[str, int]] = {}
        """Run and length of the history of each copy, by name."""
        self._runs: dict[str, Json] = {}
        """Exports of earlier runs."""

    def get(self, name: str) -> StoredExecution:
        """Return an execution by its name or its id; its copy is up to date.

        Raises:
            ExecutionNotFound: There is none.
        """
        if not isinstance(name, str):
            raise AslError(f"the name of an execution must be a string, got {type(name).__name__}")
        known = find_execution(self.session, name)
        if known is not None and known.parent is not None:  # a child: its root was copied
            return known
        for each in dict.fromkeys((name, name.rpartition(":")[2])):
            try:
                self.refresh(each)
            except ExecutionNotFound:
                continue
            return super().get(each)
        raise ExecutionNotFound(f"there is no execution {name!r} in {self.client.address}")

    def refresh(self, name: str) -> None:
        """Copy an execution from its workflow.

        Raises:
            ExecutionNotFound: There is no such workflow.
        """
        found = self.client.describe(name)
        version = found.run_id, found.history_length
        if self._versions.get(name) != version:
            earlier = [run for run in self.client.list_runs(name) if run != found.run_id]
            lines = [self._ended_run(name, run) for run in earlier]
            lines.append(unpack(self.client.read_state(name, found.run_id)))
            self._replace(name, lines[0] if len(lines) == 1 else joined_history(lines))
            self._versions[name] = version

    def _ended_run(self, name: str, run: str) -> Json:
        """Return the export of a run that no longer changes."""
        if run not in self._runs:
            self._runs[run] = unpack(self.client.read_state(name, run))
        return self._runs[run]

    def _replace(self, name: str, line: Json) -> None:
        """Put another copy in the place of the present one."""
        session = self.session
        known = find_execution(session, name)
        if known is not None:
            delete_executions(session, [known.number, *numbers_below(session, known.number)])
        import_execution(session, line)
        session.flush()


class TemporalStore(Store):
    """Executions on Temporal; methods as those of `asl.Store`.

    Args:
        address: `temporal://HOST:PORT/NAMESPACE?queue=NAME`.
        bindings: As for `asl.run`, for runners of this process.

    Raises:
        AslError: The server cannot be reached.
    """

    def __init__(self, address: str, bindings: Bindings) -> None:
        self.address = parse_address(address)
        self.client = TemporalClient(self.address)
        sessions = ThreadSessions(MemoryBackend())
        StoreBase.__init__(self, sessions, WallClock(), bindings)
        self._reader = self._remote = TemporalReader(sessions, self.client)
        self._executor = Executor(self._reader, self.clock)

    @property
    def path(self) -> str | os.PathLike[str]:
        """The address."""
        return str(self.address)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self.client.close()

    # Starts

    def start(
        self,
        workflow: Program | Document | Loadable,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        origin: ExecutionOrigin = UNREGISTERED,
    ) -> Handle:
        """Start an execution and return its handle; see `asl.Store.start`.

        Raises:
            ExecutionExists: The name belongs to an execution with another document or input.
        """
        program = resolve_program(workflow, profile, False)
        check_name(name)
        data = copy_foreign({} if input is NO_INPUT else input)
        check_input(data, program.profile)
        chosen = name or os.urandom(16).hex()
        message = StartMessage(
            document=program.document,
            profile=program.profile.name,
            workflow=program.name,
            input=data,
            express=express,
            requestor=requestor,
        )
        if not self.client.start(chosen, message):
            self._check_same(chosen, program, data)
        return Handle(self, self._placeholder(chosen, program))

    def _check_same(self, name: str, program: Program, data: Json) -> None:
        """Check that the execution of a name has this document and input.

        Raises:
            ExecutionExists: It has another one.
        """
        known = self.get(name)
        document = self._reader.put_program(program)
        if known.document != document or not json_equal(self._reader.input(known), data):
            raise ExecutionExists(
                f"an execution {name!r} with another document or input exists already"
            )

    def _placeholder(self, name: str, program: Program) -> StoredExecution:
        """Return what a handle needs of an execution whose workflow may not have begun."""
        return StoredExecution(
            0, name, program.name, "", program.profile.name, False, None, "RUNNING",
            self.clock.now(), None, None, None, None, 0, None, None,
        )  # fmt: skip

    # Lists

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredExecution]:
        """Return the latest executions; `before` is not supported by this store."""
        query = {
            None: "",
            "RUNNING": "ExecutionStatus = 'Running'",
            "PAUSED": "ExecutionStatus = 'Running'",
            "SUCCEEDED": "ExecutionStatus = 'Completed'",
            "ABORTED": "ExecutionStatus IN ('Canceled', 'Terminated')",
        }.get(status, "ExecutionStatus = 'Failed'")
        found: dict[str, StoredExecution] = {}
        for each in self.client.list_executions(query, limit):
            listed = _listed(*each)
            found.setdefault(listed.name, listed)  # the latest run of an execution comes first
        return [each for each in found.values() if status in (None, each.status)]

    def pending(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the open approval requests; see `asl.Store.pending`."""
        if name is None:
            for each in self.executions(status="PAUSED", limit=LISTED):
                self._remote.refresh(each.name)
        return super().pending(name, limit=limit, after=after, damaged=damaged)

    # Answers and ends

    def answer(
        self,
        request_id: str,
        approval: str | None = None,
        *,
        by: str | None = None,
        comment: str | None = None,
        edited: Mapping[str, Json] | None = None,
        roles: Sequence[str] = (),
        **more: Json,
    ) -> Json:
        """Answer an approval request; see `asl.Store.answer`."""
        given: dict[str, Any] = {
            "approval": approval, "approver": by, "comment": comment, "edited_content": edited,
        }  # fmt: skip
        answer = {**more, **{key: value for key, value in given.items() if value is not None}}
        if roles:
            answer["roles"] = list(roles)
        message = AnswerMessage(request=request_id, answer=answer, given=self.clock.now())
        return self.client.update(self._owner_of(request_id), ANSWER, message)

    def _owner_of(self, request_id: str) -> str:
        """Return the name of the root execution that has made a request."""
        return self.root(self.execution_of(request_id))

    def execution_of(self, request_id: str) -> str:
        """Return the name of the execution that made a request; see `asl.Store.execution_of`."""
        name = request_id.partition(":/")[0].rpartition(":")[2]
        self._remote.refresh(name)
        return super().execution_of(request_id)

    def cancel(self, name: str, cause: str | None = None, *, error: str | None = None) -> None:
        """Abort an execution; see `asl.Store.cancel`.

        Raises:
            AslError: It has ended.
        """
        known = self.get(name)
        if known.status in ENDED:
            raise AslError(f"the execution {known.name!r} has ended already: {known.status}")
        self.client.cancel(known.name, CANCEL, CancelMessage(error=error, cause=cause))

    def delete(self, name: str) -> None:
        """Delete an ended execution; see `asl.Store.delete`.

        Raises:
            AslError: It has not ended.
        """
        known = self.get(name)
        if known.status not in ENDED:
            raise AslError(f"the execution {known.name!r} has not ended: cancel it first")
        self.client.delete(known.name)

    # Restarts

    def request_redrive(
        self, name: str, *, document: Program | Document | Loadable | None = None
    ) -> None:
        """Restart a failed execution from its failed states; see `asl.Store.request_redrive`."""
        known = self.get(name)
        corrected = None if document is None else self._reader.compile_document(document, known)
        before = self._briefs(known)
        self._executor.restart(known.name, prepare_redrive(self._reader, known, corrected))
        self._restart(known, before)

    def _briefs(self, known: StoredExecution) -> dict[int, tuple[int, Json]]:
        """Return what the histories of an execution and its descendants have led to."""
        executions = (known, *self.descendants(known.name))
        journals = [self._reader.journal(each) for each in executions]
        return {each.number: (each.steps, each.brief()) for each in journals}

    def _restart(self, known: StoredExecution, briefs: dict[int, tuple[int, Json]]) -> None:
        """Start a workflow with the changed copy of an execution.

        Raises:
            ExecutionExists: It runs again already.
        """
        name = known.name
        (line,) = export_executions(self.session, [name], [])
        content = pack(with_briefs(line, briefs))
        message = StartMessage(content=content, workflow=known.workflow)
        if not self.client.start(name, message, again=True):
            raise ExecutionExists(f"the execution {name!r} runs again already")


def _listed(found: WorkflowExecution, memo: Mapping[str, Any]) -> StoredExecution:
    """Return the listed form of a workflow."""
    status = memo.get("status", "RUNNING")
    if found.status in _ENDED and status not in ENDED:
        status = _ENDED[found.status]
    ended = None if found.close_time is None else found.close_time.timestamp()
    return StoredExecution(
        0, found.id, memo.get("workflow", ""), "", "", False, None, status,
        found.start_time.timestamp(), ended, None, None, None, 0, None, None,
    )  # fmt: skip
