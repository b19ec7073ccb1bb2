"""Reader of stored executions: documents, inputs, histories and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from typing import Any

from asl.compiler import compile_workflow
from asl.core.document import Document, Loadable
from asl.core.errors import AslError, StateError
from asl.core.values import Json, encode
from asl.documents.compiling import prepare, resolve_program
from asl.documents.loading import resolve_profile
from asl.engine.checkpoints import Checkpoint
from asl.engine.events import ENDINGS, Event
from asl.engine.execution import ROLE, Execution, Identity
from asl.engine.history import HistoryExpander
from asl.engine.journal_values import read_spending
from asl.engine.ledger import Ledger
from asl.engine.pending_callback import PendingCallback
from asl.engine.record_reader import RecordReader
from asl.engine.records import BROKEN, NOTED, RETRIED
from asl.engine.result import OpenRequests, Result
from asl.executions.approvals import execution_of, find_request
from asl.executions.errors import ExecutionNotFound
from asl.program import Program
from asl.states.approval_request import ApprovalRequest
from asl.states.blocks.streaming import CHUNK
from asl.states.effects import Record
from asl.stores.checkpoints import read_checkpoints
from asl.stores.executions import StoredExecution, find_execution, numbers_below, read_value
from asl.stores.journal import StoreJournal
from asl.stores.log import Log, chunks_after
from asl.stores.requests import ANSWERED_OF, OPEN, OPEN_OF, find_requests, find_tasks
from asl.stores.session import Session, ThreadSessions

__all__ = ["REDRIVABLE", "EventFeed", "ExecutionReader", "identity_of"]

REDRIVABLE = ("FAILED", "TIMED_OUT", "ABORTED")


def identity_of(stored: StoredExecution) -> Identity:
    """Return the identity of a stored execution."""
    registered = stored.workflow_id is not None
    return Identity(
        name=stored.name.split(":")[7] if registered else stored.name,
        workflow_id=stored.workflow_id,
        role=stored.role if registered else ROLE,
        express=stored.express,
        asynchronous=stored.express and stored.parent is None,  # a state waits for its child
        requestor=stored.requestor,
        started=stored.started,
        redrives=stored.redrives,
        redriven=stored.redriven,
    )


class ExecutionReader:
    """Reads stored executions, from any thread.

    Args:
        sessions: The store.
        now: Returns the current time, which ends the usage reports of running executions.
    """

    def __init__(self, sessions: ThreadSessions, now: Callable[[], float]) -> None:
        self.sessions = sessions
        self.now = now
        self._programs: dict[tuple[str, str], Program] = {}
        self._latest: tuple[Program | None, str] = None, ""
        """The last stored program and its hash: many executions may share one document."""

    @property
    def session(self) -> Session:
        """The session of this thread."""
        return self.sessions.session

    def get(self, name: str) -> StoredExecution:
        """Return an execution by its name or its id.

        Raises:
            ExecutionNotFound: There is none.
        """
        if not isinstance(name, str):
            raise AslError(f"the name of an execution must be a string, got {type(name).__name__}")
        found = find_execution(self.session, name) or find_execution(
            self.session, name.rpartition(":")[2]
        )
        if found is None:
            raise ExecutionNotFound(f"there is no execution {name!r} in {self.sessions.place}")
        return found

    # Documents

    def put_program(self, program: Program) -> str:
        """Store a document and return its hash."""
        latest, key = self._latest
        if latest is not program or not self.session.values.has_document(key):
            body = encode(program.document)
            key = sha256(body).hexdigest()
            self.session.values.put_document(key, body)
            self._programs[key, program.profile.name] = program
            self._latest = program, key
        return key

    async def load_program(self, stored: StoredExecution) -> Program:
        """Return the program of an execution, from a running event loop."""
        key = stored.document, stored.profile
        if key not in self._programs:
            document = self.session.values.document(stored.document)
            with self._reading(stored):
                self._programs[key] = await prepare(
                    _compiled, document, stored.profile, stored.workflow
                )
        return self.program(stored)

    def program(self, stored: StoredExecution) -> Program:
        """Return the program of an execution."""
        with self._reading(stored):
            return self.stored_program(stored.document, stored.profile, stored.workflow)

    def stored_program(self, document: str, profile: str, name: str) -> Program:
        """Return the program of a stored document.

        Args:
            document: Hash of the document.
            profile: Name of the profile.
            name: Name of the workflow.
        """
        key = document, profile
        program = self._programs.get(key)
        if program is None:
            value = self.session.values.document(document)
            program = _compiled(value, profile, name)
        if program.name != name:  # the same document may have several names
            program = replace(program, name=name)
        self._programs[key] = program
        return program

    def compile_document(
        self, document: Program | Document | Loadable, stored: StoredExecution
    ) -> Program:
        """Return the program of another document for an execution.

        Raises:
            InvalidDocument: The document has errors.
            AslError: A program was compiled with another profile.
        """
        if not isinstance(document, Program):
            document = resolve_program(document, stored.profile, False)
        elif document.profile.name != stored.profile:
            raise AslError(
                f"the program is compiled with the profile {document.profile.name!r}, and the "
                f"execution {stored.name!r} has the profile {stored.profile!r}"
            )
        return replace(document, name=stored.workflow)

    def program_of(self, stored: StoredExecution) -> Callable[[str], Program]:
        """Return a function from the hash of a document of an execution to its program."""
        return lambda document: self.program(replace(stored, document=document))

    def _reading(self, stored: StoredExecution) -> AbstractContextManager[None]:
        """Return a context that raises StoreDamaged for content of an unexpected shape."""
        return self.session.damage_reports(f"the execution {stored.name!r}")

    def input(self, stored: StoredExecution) -> Json:
        """Return the input; pending changes are written first."""
        return read_value(self.session, stored.number, "input")

    def spending(self, stored: StoredExecution) -> Json:
        """Return the recorded usage of an execution, None without any."""
        return read_value(self.session, stored.number, "usage")

    def bound_names(self, stored: StoredExecution) -> dict[str, Json]:
        """Return the `names` that an execution used, and the `command` that binds them."""
        with self._reading(stored):
            found: dict[str, Json] | None = read_value(self.session, stored.number, "bound")
            if found is None:
                return {"names": {}, "command": None}
            return {"names": dict(found["names"]), "command": found["command"]}

    def journal(self, stored: StoredExecution) -> StoreJournal:
        """Return the loaded journal of an execution."""
        journal = StoreJournal(self.session, stored.number, stored.name)
        journal.programs = self.program_of(stored)
        journal.reader_session = lambda: self.session
        with self._reading(stored):
            journal.load()
        return journal

    # Results

    def _with_descendants(self, stored: StoredExecution) -> list[int]:
        """Return the numbers of an execution and its descendants."""
        return [stored.number, *numbers_below(self.session, stored.number)]

    def open_requests(
        self, stored: StoredExecution, *, limit: int | None = None, after: str | None = None
    ) -> list[ApprovalRequest]:
        """Return the open requests of an execution and its descendants."""
        numbers = self._with_descendants(stored)
        return find_requests(self.session, OPEN_OF, numbers, limit=limit, after=after)

    def answered_requests(self, stored: StoredExecution) -> list[ApprovalRequest]:
        """Return the answered requests with which it has not continued yet."""
        return find_requests(self.session, ANSWERED_OF, self._with_descendants(stored))

    def pending_callbacks(
        self, stored: StoredExecution, *, limit: int | None = None, after: str | None = None
    ) -> list[PendingCallback]:
        """Return the tasks of the same executions that wait for a callback."""
        numbers = self._with_descendants(stored)
        return find_tasks(self.session, OPEN_OF, numbers, limit=limit, after=after)

    def all_open_requests(
        self, *, limit: int | None, after: str | None, damaged: list[str]
    ) -> list[ApprovalRequest]:
        """Return the open requests of all executions; *damaged* receives sentences about others."""
        return find_requests(self.session, OPEN, limit=limit, after=after, damaged=damaged)

    def all_pending_callbacks(
        self, *, limit: int | None, after: str | None, damaged: list[str]
    ) -> list[PendingCallback]:
        """Return the tasks of all executions that wait for a callback."""
        return find_tasks(self.session, OPEN, limit=limit, after=after, damaged=damaged)

    def request(self, id: str) -> ApprovalRequest:
        """Return a request, open or closed.

        Raises:
            RequestNotFound: There is none.
        """
        return find_request(self.session, id)

    def execution_of(self, id: str) -> str:
        """Return the name of the execution that made a request or waits for a task token.

        Raises:
            RequestNotFound: There is none.
        """
        return execution_of(self.session, id)

    def checkpoints(self, stored: StoredExecution) -> list[Checkpoint]:
        """Return the checkpoints of an execution, oldest first."""
        return read_checkpoints(self.session, stored.number)

    def events(self, name: str, wait: Callable[[], object] | None) -> Iterator[Event]:
        """Yield the recorded history, with *wait* until its end (`Store.events`)."""
        feed = EventFeed(self, name)
        while True:
            news = False
            for event in feed.new_events():
                news = True
                yield event
            if feed.is_over or wait is None:
                return
            if not news:
                wait()

    def end_details(self, stored: StoredExecution) -> dict[str, Json]:
        """Return the details of the last event of an execution."""
        if stored.status == "SUCCEEDED":
            return {"output": read_value(self.session, stored.number, "output")}
        both = {"error": stored.error, "cause": stored.cause}
        return {key: value for key, value in both.items() if value is not None}

    def result(
        self, stored: StoredExecution, program: Program, with_history: bool = True
    ) -> Result:
        """Return the result of an execution, by default with its history so far."""
        execution = self.execution(stored, program)
        records: list[Record] = []
        if with_history:
            reader = RecordReader(execution, (), self.program_of(stored))
            with self._reading(stored):
                records.extend(Log(self.session, stored.number).records(reader))
        failure = None
        if stored.status in REDRIVABLE:
            failure = StateError(stored.error, stored.cause)
        if stored.status == "FAILED":
            broken = (each[5] for each in reversed(records) if each[0] == BROKEN)
            failure = next(broken, failure)
        flat = [item for record in records for item in record]
        ended = self.now() if stored.ended is None else stored.ended
        output = read_value(self.session, stored.number, "output")
        result = Result().init(execution, flat, stored.status, ended, output, failure)
        result.checkpoints = self.checkpoints(stored)
        if stored.status == "PAUSED":
            result.waits = OpenRequests(self.open_requests(stored), self.pending_callbacks(stored))
        return result

    def execution(self, stored: StoredExecution, program: Program) -> Execution:
        """Return a stored execution, to read its history."""
        data, identity = self.input(stored), identity_of(stored)
        execution = Execution().init(program, data, stored.started, [], identity)
        usage = read_value(self.session, stored.number, "usage")
        if usage is not None:
            with self._reading(stored):
                read_spending(usage, execution)
                if len(usage) > 3:
                    execution.ledger = Ledger.read(execution, usage[3])
        return execution


class EventFeed:
    """Follows the history of an execution, from any thread.

    Args:
        executions: The executions of the store.
        name: The execution.
        redacts: Whether events hide redacted data.
    """

    def __init__(self, executions: ExecutionReader, name: str, *, redacts: bool = True) -> None:
        stored = executions.get(name)
        self._executions = executions
        self._name = stored.name
        self._log = Log(executions.session, stored.number)
        execution = executions.execution(stored, executions.program(stored))
        self._reader = RecordReader(execution, (), executions.program_of(stored))
        self._expander = HistoryExpander(execution)
        self._expander.redacts = redacts
        self._last_step = 0
        """Number of the last step that was read."""
        self._has_started = False
        self._last_chunk = 0
        """Number of the last live chunk that was read."""
        self._chunks: set[tuple[Any, ...]] = set()
        """The reported chunks, by place, visit, attempt and index."""
        self._attempts: dict[tuple[Any, ...], int] = {}
        self.is_over = False
        """Whether the last event has been read."""

    def new_events(self) -> Iterator[Event]:
        """Yield the events that were written since the last call.

        Raises:
            StoreDamaged: The history is damaged.
        """
        with self._executions.session.damage_reports(f"the execution {self._name!r}"):
            yield from self._news()

    def _news(self) -> Iterator[Event]:
        executions, log, expander = self._executions, self._log, self._expander
        log.store = executions.session
        if not self._has_started:
            self._has_started = True
            log.begin(self._reader)
            yield expander.start()
            log.store = executions.session  # the next call may come from another thread
        stored = executions.get(self._name)  # entries from before its end are read after this
        for number, _, entries in log.read(self._last_step):
            for record in log.replayed_records(entries, self._reader):
                is_told = self._is_told(record)
                for event in expander.feed(record):
                    if not (is_told and event.type == CHUNK):
                        yield event
                log.store = executions.session
            self._last_step = number
        if stored.status == "RUNNING" or stored.status == "PAUSED":
            yield from self._live_chunks(stored.number)
        if stored.status in ENDINGS and not self.is_over:
            self.is_over = True
            ended = stored.started if stored.ended is None else stored.ended
            yield expander.end(stored.status, ended, executions.end_details(stored))

    def _is_told(self, record: Record) -> bool:
        """Return whether a record is a chunk that was reported before; mark it as reported."""
        kind, _, frame, visit, step, *rest = record
        if kind == RETRIED:
            self._attempts[frame, visit] = self._attempts.get((frame, visit), 0) + 1
        if kind != NOTED or rest[0] != CHUNK:
            return False
        attempt = self._attempts.get((frame, visit), 0)
        return not self._is_new(*frame.place, step.name, visit, attempt, rest[1]["index"])

    def _is_new(self, *chunk: Any) -> bool:
        is_new = chunk not in self._chunks
        self._chunks.add(chunk)
        return is_new

    def _live_chunks(self, number: int) -> Iterator[Event]:
        """Yield streamed chunks with the id 0; the history has them later."""
        for row, chunk in chunks_after(self._executions.session, number, self._last_chunk):
            self._last_chunk = row
            place, visit, attempt, time, details = chunk
            if self._is_new(*place, visit, attempt, details["index"]):
                yield Event(0, 0, time, CHUNK, tuple(place), details)


def _compiled(document: Json, profile: str, name: str) -> Program:
    """Compile a stored document; it was checked when it was stored."""
    return compile_workflow(document, resolve_profile(profile), name)
