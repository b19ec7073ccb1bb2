"""The store of executions on Temporal: the methods of `asl.Store` over a client.

An execution is read by copying its rows from the workflow into a store in memory. A restart changes
that copy and starts a workflow with it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from threading import RLock
from typing import Any, Final, NoReturn, TypeVar, Unpack, cast

import orjson
from temporalio.client import (
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
)

from asl.bindings import NO_INPUT, Bindings, bind, refuse_unknown, takes_bindings
from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json, compact, copy_foreign, json_equal
from asl.documents.compiling import prepare
from asl.effects.clock import WallClock
from asl.effects.driver import Driver
from asl.effects.runtime import Listener
from asl.engine.result import Result
from asl.executions.base import StoreBase
from asl.executions.errors import ExecutionBusy, ExecutionExists, ExecutionNotFound, RequestNotFound
from asl.executions.execution_reader import ExecutionReader
from asl.executions.executor import Executor
from asl.executions.handle import Handle
from asl.executions.redrive import Restart, prepare_redrive, prepare_rewind
from asl.executions.retention import Retention
from asl.executions.runner import RunnerContext
from asl.executions.store import Store
from asl.executions.task_tokens import StoreTaskTokens
from asl.program import Program
from asl.states.effects import ABSENT
from asl.stores.deletion import delete_executions
from asl.stores.errors import StoreError
from asl.stores.executions import (
    ENDED,
    UNREGISTERED,
    ExecutionFilter,
    ExecutionOrigin,
    StoredExecution,
    descendants,
    find_execution,
    numbers_below,
    top_of,
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
from asl.temporal.answers import apply_answer
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import (
    ANSWER,
    CANCEL,
    TOKEN,
    AnswerMessage,
    CancelMessage,
    Memo,
    StartMessage,
    TokenMessage,
    pack,
    start_message,
    unpack,
)
from asl.temporal.replays import replayed_execution
from asl.temporal.runner import TemporalRunner, calls_agents
from asl.temporal.task_tokens import TemporalTaskTokens
from asl.temporal.workflow_store import execution_number

__all__ = ["TemporalStore"]

T = TypeVar("T")
QUICK: Final = 0.1
SLOW: Final = 1.0
"""Shortest and longest seconds between two looks at an execution that is followed."""
UNSERVED: Final = 2.0
"""Seconds after which a caller without bindings asks whether a worker is there."""
_ENDED: Final = {
    WorkflowExecutionStatus.COMPLETED: "SUCCEEDED",
    WorkflowExecutionStatus.FAILED: "FAILED",
    WorkflowExecutionStatus.CANCELED: "ABORTED",
    WorkflowExecutionStatus.TERMINATED: "ABORTED",
    WorkflowExecutionStatus.TIMED_OUT: "TIMED_OUT",
}
"""Status of the execution of a closed workflow."""
_QUERIES: Final[Mapping[str, str]] = {
    "RUNNING": "ExecutionStatus = 'Running'",
    "PAUSED": "ExecutionStatus = 'Running'",
    "SUCCEEDED": "ExecutionStatus = 'Completed'",
    "FAILED": "ExecutionStatus = 'Failed'",
    "TIMED_OUT": "ExecutionStatus IN ('Failed', 'TimedOut')",
    "ABORTED": "ExecutionStatus IN ('Canceled', 'Terminated')",
}
"""Condition on workflows by status of the execution."""


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
                self._versions[name] = version
        return found

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
            return unpack(state.packed)
        assert state.history is not None
        converter = self.client.raw.data_converter
        return self.client.run(replayed_execution(state.history, converter))

    def _replace(self, name: str, content: Json, found: WorkflowExecutionDescription) -> None:
        """Put another copy in the place of the present one."""
        self.forget(name)
        import_execution(self.session, content)
        status = _ENDED.get(found.status) if found.status is not None else None
        if status is not None and super().get(name).status not in ENDED:
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


class _LoopDriver(Driver):
    """Runs coroutines on an event loop from their beginning."""

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        return asyncio.run(work)


class TemporalStore(Store):
    """Executions on Temporal; methods as those of `asl.Store`.

    Args:
        address: `temporal://HOST:PORT/NAMESPACE?queue=NAME`.
        bindings: As for `asl.run`, for runners of this process.

    Raises:
        AslError: The server cannot be reached.
    """

    @takes_bindings
    def __init__(self, address: str, **bindings: Unpack[Bindings]) -> None:
        refuse_unknown(TemporalStore.__init__, bindings)
        self.address = parse_address(address)
        self.client = TemporalClient(self.address)
        backend = MemoryBackend()
        backend.place = str(self.address)
        sessions = ThreadSessions(backend)
        StoreBase.__init__(self, sessions, WallClock(), bindings)
        self._reader = self._remote = TemporalReader(sessions, self.client)
        self._executor = Executor(self._reader, self.clock)
        self._driver = _LoopDriver(self.clock)

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
        program, data = self._checked(workflow, input, name, profile)
        return self._begin(program, data, name, express, requestor, origin)

    async def astart(
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
        """Start an execution on the running event loop; see `start`."""
        program, data = await prepare(self._checked, workflow, input, name, profile)
        return await asyncio.to_thread(self._begin, program, data, name, express, requestor, origin)

    def _begin(
        self,
        program: Program,
        data: Json,
        name: str | None,
        express: bool,
        requestor: str | None,
        origin: ExecutionOrigin,
    ) -> Handle:
        if origin is not UNREGISTERED:
            _refuse("has no registered state machines", "'asl start' with a document")
        chosen = name or os.urandom(16).hex()
        message = start_message(
            program,
            data,
            express=express,
            requestor=requestor,
            command=self._executor.command,
        )
        now = self.clock.now()
        memo = Memo(status="RUNNING", workflow=program.name, started=now)
        if not self.client.start(chosen, message, memo):
            self._check_same(chosen, program, data)
        return Handle(self, _placeholder(chosen, program.name, "RUNNING", now))

    def _check_same(self, name: str, program: Program, data: Json) -> None:
        """Check that the execution of a name has this document and input.

        Raises:
            ExecutionExists: It has another one.
        """
        known = self.get(name)
        document = self._reader.put_program(program)
        if known.document != document:
            raise ExecutionExists(f"an execution {name!r} of another document exists already")
        if not json_equal(self._reader.input(known), data):
            raise ExecutionExists(f"an execution {name!r} with another input exists already")

    def fork(
        self,
        name: str,
        at: str,
        *,
        input: Json = ABSENT,
        new_name: str | None = None,
        document: Document | Loadable | None = None,
    ) -> Handle:
        """Start a new execution at a visit of another one; see `asl.Store.fork`.

        Raises:
            ExecutionExists: The new name is taken.
        """
        chosen = new_name or os.urandom(16).hex()
        with suppress(ExecutionNotFound):
            self.client.describe(chosen)
            raise ExecutionExists(f"an execution {chosen!r} exists already")
        handle = super().fork(name, at, input=input, new_name=chosen, document=document)
        self._continue(chosen, again=False)
        return handle

    def handle(self, name: str) -> Handle:
        """Return the handle of an execution; see `asl.Store.handle`."""
        known = find_execution(self.session, name)
        if known is None or self._remote.version(known.name) is not None:
            known = self.get(name)
        return Handle(self, known)

    def import_execution(self, line: Json) -> str:
        """Start a workflow that continues an exported execution; return its name.

        Raises:
            StoreError: The line is damaged, or the name is taken.
        """
        scratch = Store("memory:")
        name = scratch.import_execution(line)
        with suppress(ExecutionNotFound):
            self.client.describe(name)
            raise StoreError(f"{self.path} has an execution {name!r} already")
        self._remote.forget(name)
        import_execution(self.session, line)
        self._continue(name, again=False)
        return name

    # Runs

    @takes_bindings
    def runner(
        self,
        *,
        concurrency: int = 100,
        report: Callable[[str, Result | str], object] | None = None,
        grace: float = 0.0,
        only: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> RunnerContext:
        """Return a worker in this process, for `with` or `async with`.

        Args:
            concurrency: Maximum number of concurrent calls.
            report: Called with the name of an execution that ends or pauses, and its result.
            grace: Seconds that calls have to end; by default 10.
            only: `"workflows"` to run workflows and call no agents, `"activities"` for the reverse.
            bindings: As for `asl.run`; None for those of the store.
        """
        refuse_unknown(TemporalStore.runner, bindings)
        given = self._given(bindings)
        bind(given)
        make = partial(TemporalRunner, self.client, given, concurrency, report, only, grace)
        return RunnerContext(make, self.clock, grace)

    @takes_bindings
    async def arun(
        self,
        workflow: Program | Document | Loadable,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        origin: ExecutionOrigin = UNREGISTERED,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Run an execution on the running event loop until it ends or pauses; see `asl.Store.run`.

        A worker in this process makes its calls, if bindings are given.
        """
        refuse_unknown(TemporalStore.arun, bindings)
        given = self._given(bindings)
        program, data, given = await prepare(self._prepared, workflow, input, name, profile, given)
        bind(given, program)
        handle = await asyncio.to_thread(
            self._begin, program, data, name, express, requestor, origin
        )
        return await self._work(handle.name, given)

    @takes_bindings
    async def aresume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Program | Document | Loadable | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Work for an execution until it ends or pauses; see `asl.Store.resume`."""
        refuse_unknown(TemporalStore.aresume, bindings)
        given = self._given(bindings)
        other = await self._compiled(name, document)
        restart = prepare_rewind(self._reader, from_checkpoint, other, force, given)
        top = await asyncio.to_thread(self.root, name)
        if restart is not None:
            await asyncio.to_thread(self._restart, top, restart)
        return await self._work(top, given)

    @takes_bindings
    async def aredrive(
        self,
        name: str,
        *,
        document: Program | Document | Loadable | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Redrive an execution on the running event loop; see `asl.Store.redrive`."""
        refuse_unknown(TemporalStore.aredrive, bindings)
        given = self._given(bindings)
        corrected = await self._compiled(name, document)
        await asyncio.to_thread(self.request_redrive, name, document=corrected)
        return await self._work(await asyncio.to_thread(self.root, name), given)

    async def _work(self, name: str, given: Bindings) -> Result:
        """Follow an execution until it ends or pauses, with a worker for its calls."""
        listener = given.get("listener")
        program = await asyncio.to_thread(self.program, name)
        calls = calls_agents(given) or "Agents" in program.document
        own = cast("Bindings", {**given, "listener": None})
        async with self.runner(only=None if calls else "workflows", **own):
            await asyncio.to_thread(self._follow, name, listener, calls)
        return await asyncio.to_thread(self.result, name)

    def _follow(self, name: str, listener: Listener | None, calls: bool) -> None:
        """Return when an execution has ended or pauses; report its events.

        Raises:
            StoreError: It waits for calls that no worker makes.
        """
        feed = None
        begun = last = time.monotonic()
        while True:
            stored = self.get(name)
            if listener is not None:
                if feed is None:
                    feed = self.feed(name)
                    of = getattr(listener, "of", None)
                    listener = listener if of is None else of(self._execution(stored))
                for event in feed.new_events():
                    listener(event)
            if stored.status in ENDED or self._waits_for_answers(stored):
                return
            now = time.monotonic()
            if not calls and now - last > UNSERVED:
                last = now
                self._require_worker(name)
            time.sleep(min(SLOW, QUICK + (now - begun) / 50))

    def _execution(self, stored: StoredExecution) -> Any:
        return self._reader.execution(stored, self._reader.program(stored))

    def _waits_for_answers(self, stored: StoredExecution) -> bool:
        """Return whether an execution is paused until people or tasks answer."""
        if stored.status != "PAUSED" or (stored.wake or inf) <= self.clock.now():
            return False
        raw = self.client.describe(stored.name).raw_description
        if raw.HasField("pending_workflow_task"):  # it has not seen all answers
            return False
        reader = self._reader
        return bool(reader.open_requests(stored) or reader.pending_callbacks(stored))

    def _require_worker(self, name: str) -> None:
        """Check that a worker makes the calls of an execution.

        Raises:
            StoreError: There is none.
        """
        needs = self.needs(name)
        if needs:
            raise StoreError(
                f"the execution {name!r} waits ({'; '.join(needs)}): start 'asl worker --store "
                f"{self.path} --agents FILE'"
            )

    # Lists

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredExecution]:
        """Return a page of the latest executions; see `asl.Store.executions`.

        A redriven execution is listed by the time of its latest redrive.

        Raises:
            AslError: There is no such status.
        """
        if status is not None and status not in _QUERIES:
            raise AslError(f"there is no status {status!r}: {', '.join(_QUERIES)}")
        time = None if before is None else (before >> 10) / 1_000_000
        wanted, more = list[StoredExecution](), True
        while len(wanted) < limit and more:
            size = limit - len(wanted)
            found = self.client.list_executions(_QUERIES.get(status or "", ""), time, size)
            more = len(found) == size
            listed = [_listed(each.found, each.memo) for each in found]
            wanted += [each for each in listed if status in (None, each.status)]
            if found:
                time = found[-1].found.start_time.timestamp()
        return wanted

    def search(
        self, wanted: ExecutionFilter, *, before: int | None = None, limit: int = 50
    ) -> tuple[list[StoredExecution], int | None]:
        """Return a page of executions that meet conditions; see `asl.Store.search`."""
        rows = self.executions(status=wanted.status, before=before, limit=LISTED)
        found = [each for each in rows if wanted.accepts(each)]
        if len(found) > limit:
            return found[:limit], found[limit - 1].number
        return found, rows[-1].number if len(rows) == LISTED else None

    def position(self, name: str) -> int:
        """Return the position of an execution in lists, for `before`."""
        found = self.client.describe(self.root(name))
        return execution_number(found.id, found.start_time)

    def version(self, name: str) -> object:
        """Return a value that changes with an execution; see `asl.Store.version`."""
        self._remote.refresh(self.root(name))
        return self._remote.version(self.root(name))

    def due(self) -> list[str]:
        """Return nothing: workflows continue by themselves."""
        return []

    def interrupted(self) -> list[str]:
        """Return nothing: another worker continues the workflows of a dead one."""
        return []

    def is_interrupted(self, name: str) -> bool:
        """Return False: another worker continues the workflows of a dead one."""
        return False

    def needs(self, name: str) -> list[str]:
        """Return a sentence about each reason why an execution makes no progress."""
        found = self.client.describe(self.root(name))
        return [] if found.close_time is not None else self.client.waits(found)

    def stuck(self) -> dict[str, list[str]]:
        """Return why executions make no progress, by name; at most the latest 1000."""
        listed = self.executions(status="RUNNING", limit=LISTED)
        found = {each.name: self.client.waits(self.client.describe(each.name)) for each in listed}
        return {name: reasons for name, reasons in found.items() if reasons}

    def workers(self) -> list[str]:
        """Return the identities of the workers of the queue that polled within a minute."""
        return self.client.workers()

    def export(
        self, names: Sequence[str] | None = None, *, damaged: list[str] | None = None
    ) -> Iterator[Json]:
        """Yield executions as JSON; see `asl.Store.export`."""
        if names is None:
            names = [each.name for each in self.executions(limit=EXPORTED)]
        for name in names:
            top = self.root(name)
            yield from export_executions(self.session, [top], [] if damaged is None else damaged)

    # Requests

    def pending(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the open approval requests; see `asl.Store.pending`."""
        self._copy_waiting(name)
        return super().pending(name, limit=limit, after=after, damaged=damaged)

    def pending_callbacks(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the tasks that wait for a callback; see `asl.Store.pending_callbacks`."""
        self._copy_waiting(name)
        return super().pending_callbacks(name, limit=limit, after=after, damaged=damaged)

    def _copy_waiting(self, name: str | None) -> None:
        """Copy the executions that wait for answers, if none is named."""
        if name is None:
            for each in self.client.list_open():
                if each.memo.get("waits"):
                    with suppress(ExecutionNotFound):  # it was deleted meanwhile
                        self._remote.refresh(each.found.id)

    def request(self, request_id: str) -> dict[str, Json]:
        """Return a request; see `asl.Store.request`."""
        self._root_of(request_id)
        return super().request(request_id)

    def execution_of(self, request_id: str) -> str:
        """Return the name of the execution that made a request; see `asl.Store.execution_of`."""
        self._root_of(request_id)
        return super().execution_of(request_id)

    def _root_of(self, id: str) -> str:
        """Copy the execution that made a request or waits for a token; return its root.

        Raises:
            RequestNotFound: There is none.
        """
        with suppress(RequestNotFound):
            return self.root(super().execution_of(id))
        name = id.partition(":/")[0].rpartition(":")[2]
        with suppress(ExecutionNotFound, RequestNotFound):
            self.get(name)
            return self.root(super().execution_of(id))
        for each in self.client.list_open():
            if id in each.memo.get("waits", ()) or each.memo.get("more"):
                self._remote.refresh(each.found.id)
        return self.root(super().execution_of(id))

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
        """Answer an approval request; see `asl.Store.answer`.

        It is judged here first: a refused answer is not sent. Where no worker answers, the workflow
        receives it by a signal, with the time at which it was given.
        """
        given: dict[str, Any] = {
            "approval": approval, "approver": by, "comment": comment, "edited_content": edited,
        }  # fmt: skip
        answer = {**more, **{key: value for key, value in given.items() if value is not None}}
        if roles:
            answer["roles"] = list(roles)
        text, now = compact(copy_foreign(answer)), self.clock.now()
        message = AnswerMessage(request=request_id, answer=text, given=now)
        name = self._root_of(request_id)
        judged = apply_answer(self, message)
        recorded = self._send(name, ANSWER, message)
        return judged if recorded is None else orjson.loads(recorded)

    def _send(self, name: str, kind: str, message: AnswerMessage | TokenMessage) -> str | None:
        """Send an answer to a workflow.

        Args:
            name: Name of the execution.
            kind: Name of the update and of the signal.
            message: The answer.

        Returns:
            What the workflow answers; None if it receives a signal.
        """
        self._remote.outdate(name)
        try:
            return cast("str | None", self.client.update(name, kind, message))
        except TimeoutError:  # no worker is there, or it is slow: a repeated answer does no harm
            self.client.signal(name, kind, message)
            return None

    @property
    def tokens(self) -> StoreTaskTokens:
        """The task tokens of all executions; any process may answer them."""
        return TemporalTaskTokens(
            self._reader, self._root_of, lambda name, message: self._send(name, TOKEN, message)
        )

    # Ends

    def cancel(self, name: str, cause: str | None = None, *, error: str | None = None) -> None:
        """Abort an execution; see `asl.Store.cancel`.

        Raises:
            AslError: It has ended, or another execution started it.
        """
        known = self.get(name)
        if known.status in ENDED:
            raise AslError(f"the execution {known.name!r} has ended already: {known.status}")
        self._require_root(known, "cancel")
        self.client.cancel(known.name, CANCEL, CancelMessage(error=error, cause=cause))

    def _require_root(self, known: StoredExecution, what: str) -> None:
        if known.parent is not None:
            top = top_of(self.session, known.name)
            raise AslError(f"the execution {known.name!r} is a part of {top!r}: {what} that one")

    def delete(self, name: str) -> None:
        """Delete an ended execution; see `asl.Store.delete`.

        Raises:
            AslError: It has not ended, or another execution started it.
        """
        known = self.get(name)
        self._require_root(known, "delete")
        if known.status not in ENDED:
            raise AslError(f"the execution {known.name!r} has not ended: cancel it first")
        self.client.delete(known.name)
        self._remote.forget(known.name)

    # Restarts

    def request_redrive(
        self, name: str, *, document: Program | Document | Loadable | None = None
    ) -> None:
        """Restart a failed execution from its failed states; see `asl.Store.request_redrive`."""
        known = self.get(name)
        corrected = None if document is None else self._reader.compile_document(document, known)
        self._restart(known.name, prepare_redrive(self._reader, known, corrected))

    def request_resume(self, name: str, from_checkpoint: str) -> None:
        """Restart an execution from a checkpoint; see `asl.Store.request_resume`."""
        restart = prepare_rewind(self._reader, from_checkpoint, None, False, self._given({}))
        assert restart is not None
        self._restart(self.get(name).name, restart)

    def _restart(self, name: str, restart: Restart) -> None:
        """Change the copy of an execution and start a workflow with it.

        Raises:
            ExecutionBusy: Its workflow has not ended.
        """
        found = self._remote.refresh(self.root(name))
        if found.close_time is None:
            raise ExecutionBusy(f"the execution {name!r} has not ended: its workers continue it")
        self._remote.outdate(found.id)
        known = super().get(top_of(self.session, name))
        before = self._briefs(known)
        self._executor.restart(name, restart)
        self._continue(known.name, again=True, briefs=before)

    def _briefs(self, known: StoredExecution) -> dict[int, tuple[int, Json]]:
        """Return what the histories of an execution and its descendants have led to."""
        executions = (known, *descendants(self.session, known.number))
        journals = [self._reader.journal(each) for each in executions]
        return {each.number: (each.steps, each.brief()) for each in journals}

    def _continue(
        self, name: str, *, again: bool, briefs: dict[int, tuple[int, Json]] | None = None
    ) -> None:
        """Start a workflow with the changed copy of an execution.

        Args:
            name: Name of the execution.
            again: Whether it has run before.
            briefs: What the histories that earlier runs hold have led to.

        Raises:
            ExecutionExists: A workflow of its name runs.
        """
        (content,) = export_executions(self.session, [name], [])
        if briefs is not None:
            content = with_briefs(content, briefs)
        stored = find_execution(self.session, name)
        assert stored is not None
        memo = Memo(status="RUNNING", workflow=stored.workflow, started=stored.started)
        if not self.client.start(name, StartMessage(content=pack(content)), memo, again=again):
            self._remote.forget(name)
            raise ExecutionExists(f"the execution {name!r} runs already")

    # What a cluster has other tools for

    def retain(self, retention: Retention, *, dry_run: bool = False) -> list[str]:
        """Refuse: the namespace has a retention.

        Raises:
            StoreError: Always.
        """
        _refuse(
            "deletes ended executions after the retention of the namespace",
            "'temporal operator namespace update --retention 30d', or 'asl rm' for some",
        )

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Refuse: the database of the server holds the executions.

        Raises:
            StoreError: Always.
        """
        _refuse("keeps executions in its own database", "the backups of that, or 'asl export'")

    def faults(self, report: Callable[[str], object] = lambda part: None) -> Iterator[str]:
        """Refuse: the database of the server holds the executions.

        Raises:
            StoreError: Always.
        """
        _refuse("verifies its histories by itself", "'temporal workflow list' and 'asl ls --stuck'")

    def release_reservations(self) -> list[str]:
        """Refuse: there are no shared budgets.

        Raises:
            StoreError: Always.
        """
        _refuse("has no shared budgets", "the budgets of documents")


LISTED: Final = 1000
"""Maximum number of executions that are listed together."""
EXPORTED: Final = 1_000_000
"""Maximum number of exported executions."""


def _refuse(fact: str, instead: str) -> NoReturn:
    raise StoreError(f"a store on Temporal cannot do that: Temporal {fact}; use {instead}")


def _listed(found: WorkflowExecution, memo: Memo) -> StoredExecution:
    """Return the listed form of a workflow."""
    status = memo.get("status", "RUNNING")
    if found.status in _ENDED and status not in ENDED:
        status = _ENDED[found.status]
    started = memo.get("started", found.start_time.timestamp())
    listed = _placeholder(found.id, memo.get("workflow", ""), status, started)
    ended = None if found.close_time is None else found.close_time.timestamp()
    return replace(listed, number=execution_number(found.id, found.start_time), ended=ended)


def _placeholder(name: str, workflow: str, status: str, started: float) -> StoredExecution:
    """Return an execution with what lists show."""
    return StoredExecution(
        0, name, workflow, "", "", False, None, status, started,
        None, None, None, None, 0, None, None,
    )  # fmt: skip
