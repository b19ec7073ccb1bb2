"""The executor, which runs stored executions, each in one process at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from threading import Lock
from time import time_ns
from typing import Any, Protocol

from asl import __version__
from asl.bindings import Bindings, ResolvedBindings, bind
from asl.core.errors import AslError
from asl.core.values import Json, encode, json_equal
from asl.effects.clock import Clock
from asl.effects.fork import relaxed_gc
from asl.effects.run import execute, uncancel
from asl.engine.events import FORKED
from asl.engine.exception_mapping import is_cancellation
from asl.engine.record_writer import write_execution_record
from asl.engine.records import WHOLE_PATH
from asl.engine.result import Result
from asl.executions.child_executions import StoredChildren
from asl.executions.errors import ExecutionBusy, ExecutionExists
from asl.executions.execution_reader import ExecutionReader, identity_of
from asl.executions.execution_start import ExecutionStart
from asl.executions.fork import ForkPoint
from asl.executions.locking import hold_lock
from asl.executions.map_runs import MapRuns
from asl.executions.redrive import Restart
from asl.executions.registrations import registered_program
from asl.executions.requirements import Names, merge_names, require_bindings, used_names
from asl.program import Program
from asl.states.effects import ABSENT
from asl.states.errors import ExecutionCancellation
from asl.stores.executions import (
    BIND,
    ENDED,
    MAKE_DUE,
    StoredExecution,
    add_execution,
    bind_as,
    descendants,
    find_execution,
    top_of,
)
from asl.stores.journal import StoreJournal
from asl.stores.pools import ReleasableBudgets, StoreBudgets
from asl.stores.session import Session
from asl.stores.workers import Workers

__all__ = ["Claim", "Executor"]


class Claim(Protocol):
    """The claim of a runner on an execution."""

    @property
    def elsewhere(self) -> Collection[str]:
        """Kinds of bindings that other runners may have, for which the execution waits."""
        ...

    def prepare(self, bound: ResolvedBindings) -> ResolvedBindings:
        """Return bindings that let branches wait without a process."""
        ...

    def needs(self) -> Sequence[str]:
        """Return a sentence about each missing binding."""
        ...


class Executor:
    """Runs the executions of one store, each in the calling thread."""

    def __init__(self, reader: ExecutionReader, clock: Clock) -> None:
        self.reader = reader
        self.clock = clock
        self.command: Json = None
        """The command line that runs the executions, recorded with them; None for other
        programs."""
        self.listeners: list[Callable[[], object]] = []
        """Called when there may be work for the runners of this process."""
        self.map_runs = MapRuns(lambda: self.session, clock.now)
        """The Map Runs of registered state machines."""
        self._last = 0
        self._numbering = Lock()
        self._used: tuple[Any, Names] = None, {}
        """The last used names and their program: many executions may share one document."""
        self._latest_record: tuple[tuple[Names, Json] | None, bytes] = None, b""
        """The last record and its hash."""

    @property
    def session(self) -> Session:
        """The session of this thread."""
        return self.reader.session

    @property
    def shared_budgets(self) -> ReleasableBudgets:
        """The budgets that the executions share with others."""
        return StoreBudgets(self.session)

    async def start(self, new: ExecutionStart, bindings: Bindings, in_event_loop: bool) -> Result:
        """Start an execution, or continue the one of this name.

        Raises:
            ExecutionExists: The name belongs to an execution with another document or input.
        """
        program = new.program
        name = new.name or os.urandom(16).hex()
        with hold_lock(self.session, name):
            document = self.reader.put_program(program)
            known = None if new.name is None else find_execution(self.session, name)
            if known is not None:
                self._check_same(known, document, new.data)
                return await self._go_on(known, program, bindings, in_event_loop)
            bound = bind(bindings, program)  # raises before anything is stored
            used = self._recorded(self._used_names(program, bindings, bound))
            stored, journal = self.create(name, new, document, None, used)
            return await self._run(stored, program, new.data, journal, bound, in_event_loop)

    def notify(self) -> None:
        """Wake the runners of this process."""
        for listener in [*self.listeners]:
            listener()

    def record(self, new: ExecutionStart) -> str:
        """Record an execution for a runner with the next commit, and return its name.

        Raises:
            ExecutionExists: The name belongs to an execution with another document or input.
        """
        name = new.name
        if name is None:  # random, so no other process has it
            return self._create_new(os.urandom(16).hex(), new)
        known = find_execution(self.session, name)
        if known is None:
            with hold_lock(self.session, name):
                known = find_execution(self.session, name)
                if known is None:
                    return self._create_new(name, new)
        self._check_same(known, self.reader.put_program(new.program), new.data)
        return known.name

    def _create_new(self, name: str, new: ExecutionStart) -> str:
        document, names = self.reader.put_program(new.program), self._recorded({})
        self.create(name, new, document, None, names)
        return name

    def fork(
        self,
        known: StoredExecution,
        entry: ForkPoint,
        name: str | None,
        data: Json,
        program: Program,
    ) -> str:
        """Record an execution that begins at a visit of another one, and return its name.

        Args:
            known: The other execution.
            entry: The visit.
            name: The name of the new execution, None for a random one.
            data: The input of the state, ABSENT for the original one.
            program: The program of the new execution.

        Raises:
            ExecutionExists: The name is taken.
        """
        name = name or os.urandom(16).hex()
        with hold_lock(self.session, name):
            if find_execution(self.session, name) is not None:
                raise ExecutionExists(f"an execution {name!r} exists already")
            now, document = self.clock.now(), self.reader.put_program(program)
            given = self.reader.input(known)
            new = ExecutionStart(name, program, given, known.express, known.requestor)
            stored, journal = self.create(name, new, document, None)
            self.session.write(bind_as, self.session, stored.number, known.number)
            position = {**entry.position, "now": now}
            if data is not ABSENT:
                position["data"] = data
            journal.put_position("", position)
            details = {"execution": known.name, "state": entry.state, "visit": entry.visit}
            journal.put_record(WHOLE_PATH, write_execution_record(now, FORKED, details))
            self.session.flush()
        self.notify()
        return name

    def cancel(self, name: str, error: str | None, cause: str | None) -> None:
        """Abort an execution, or request it from the process that runs it (`Store.cancel`)."""
        try:
            self.abort(name, error, cause)
        except ExecutionBusy:
            Workers(self.session).cancel(self.reader.get(name).number, error, cause)
            self.notify()

    def abort(self, name: str, error: str | None, cause: str | None) -> None:
        """Abort an execution that does not run; its status becomes ABORTED.

        Its reservations in shared budgets are released.

        Raises:
            ExecutionBusy: Another process runs it.
            AslError: It has ended, or another execution started it.
        """
        self._end(name, "ABORTED", error, cause)

    def fail(self, name: str, error: str | None, cause: str | None) -> None:
        """Fail an execution that does not run and cannot continue; see `abort`.

        Raises:
            ExecutionBusy: Another process runs it.
            AslError: It has ended, or another execution started it.
        """
        self._end(name, "FAILED", error, cause)

    def _end(self, name: str, status: str, error: str | None, cause: str | None) -> None:
        reader = self.reader
        name = reader.get(name).name
        with hold_lock(self.session, name):
            stored = reader.get(name)
            if stored.status in ENDED:
                raise AslError(f"the execution {name!r} has ended already: {stored.status}")
            if stored.parent is not None:
                top = top_of(self.session, name)
                raise AslError(f"the execution {name!r} is a part of {top!r}: cancel that one")
            self._put_end(stored, status, error, cause)

    def _put_end(
        self, stored: StoredExecution, status: str, error: str | None, cause: str | None
    ) -> None:
        """Record the end of an execution whose lock is held, with its descendants."""
        reader, now = self.reader, self.clock.now()
        journal = StoreJournal(self.session, stored.number, stored.name)
        for each in (stored, *descendants(self.session, stored.number)):
            if each.status not in ENDED:
                ended = reader.result(each, reader.program(each)).execution
                self.shared_budgets.release(ended.id, ended.charged_cost, now)
        journal.put_end(status, now, None, error, cause)
        Workers(self.session).delete_claim(stored.number)
        self.session.flush()

    async def resume(
        self,
        name: str,
        bindings: Bindings,
        in_event_loop: bool,
        restart: Restart | None,
        claim: Claim | None = None,
    ) -> Result:
        """Continue the root of an execution.

        Args:
            name: The execution, or a descendant of it.
            bindings: The bindings of the run.
            in_event_loop: Whether the caller runs on an event loop.
            restart: Restarts an ended execution first; None to continue it as it is.
            claim: The claim of a runner, None outside of a runner.

        Raises:
            BindingsMissing: A binding of earlier runs is missing; nothing has changed.
        """
        reader = self.reader
        if claim is None:
            name = top_of(self.session, reader.get(name).name)
        with hold_lock(self.session, name):
            known = reader.get(name)
            if restart is not None:
                restart(known, partial(self._refuse_missing, known, bindings))
                known = reader.get(name)
            program = await reader.load_program(known) if in_event_loop else reader.program(known)
            return await self._go_on(
                known, program, bindings, in_event_loop, begins=restart is not None, claim=claim
            )

    def restart(self, name: str, restart: Restart) -> None:
        """Restart an ended execution; a runner continues it.

        Raises:
            AslError: It cannot be restarted.
        """
        with hold_lock(self.session, name):
            restart(self.reader.get(name), lambda program, state: None)
            self.session.flush()
        self.notify()

    def _check_same(self, known: StoredExecution, document: str, data: Json) -> None:
        if known.parent is not None:
            top = top_of(self.session, known.name)
            raise ExecutionExists(f"the execution {known.name!r} is a part of {top!r}: resume that")
        if known.document != document:
            raise ExecutionExists(f"an execution {known.name!r} of another document exists already")
        if not json_equal(self.reader.input(known), data):
            raise ExecutionExists(f"an execution {known.name!r} with another input exists already")

    def create(
        self,
        name: str,
        new: ExecutionStart,
        document: str,
        parent: int | None,
        bound: bytes | None = None,
    ) -> tuple[StoredExecution, StoreJournal]:
        """Add an execution to the store and return it with its empty journal.

        Args:
            name: Its name.
            new: The execution.
            document: The hash of its document as stored.
            parent: The number of the execution that waits for it, None for none.
            bound: The names that its bindings must have, packed.
        """
        number, program = self._next_number(), new.program
        chain = sha256(f"{document}\n{__version__}\n{name}".encode()).digest()
        stored = StoredExecution(
            number, name, program.name, document, program.profile.name, new.express, new.requestor,
            "RUNNING", self.clock.now(), None, None, None, None, 0, parent, None, *new.origin,
        )  # fmt: skip
        add_execution(self.session, stored, encode(new.data), __version__, chain, bound)
        journal = StoreJournal(self.session, number, name)
        journal.begin_anew(chain)
        return stored, journal

    def _next_number(self) -> int:
        with self._numbering:
            now = (time_ns() // 1000 << 10) + os.getpid() % 1024
            self._last = max(self._last + 1, now)
            return self._last

    async def _go_on(
        self,
        known: StoredExecution,
        program: Program,
        bindings: Bindings,
        in_event_loop: bool,
        *,
        begins: bool = False,
        claim: Claim | None = None,
    ) -> Result:
        """Continue an execution; a restarted one (*begins*) needs only the bindings of its
        remaining states.
        """
        if known.status in ENDED:
            return self.reader.result(known, program)
        bound = bind(bindings, program)
        with self.session.reading_written() if claim is not None else nullcontext():
            recorded, data = self.reader.bound_names(known), self.reader.input(known)
            journal = self.reader.journal(known)
        used = self._used_names(program, bindings, bound)
        if not begins:
            elsewhere = () if claim is None else claim.elsewhere
            needed = {
                kind: names for kind, names in recorded["names"].items() if kind not in elsewhere
            }
            require_bindings(known.name, needed, program, bindings, bound)
            used = merge_names(recorded["names"], used)
        body = self._recorded(used, recorded["command"])
        self.session.write(BIND, body, known.number)
        if claim is not None:
            Workers(self.session).claim(known.number)
            bound = claim.prepare(bound)
        if known.status == "PAUSED":  # if this process dies, it is due until it pauses again
            self.session.write(MAKE_DUE, known.number)
        return await self._run(known, program, data, journal, bound, in_event_loop, claim)

    # Required bindings

    def _used_names(self, program: Program, bindings: Bindings, bound: ResolvedBindings) -> Names:
        """Return the bound names that executions of *program* may use."""
        services = bound.services
        given: tuple[Iterable[str] | None, ...] = (
            *(bindings.get("agents"), bindings.get("resources"), bindings.get("mocks")),
            *(bindings.get("tools"), bindings.get("prices")),
            *(services.memory, services.pools, services.storages, bound.buckets),
        )
        by = program, [tuple(each or ()) for each in given]
        latest, used = self._used
        if services.workflows or latest != by:  # programs are the same only by identity
            used = used_names(program, bindings, bound)
            self._used = by, used
        return used

    def _recorded(self, used: Names, earlier: Json = None) -> bytes:
        """Return names, with the command that binds them, in the stored form.

        Without a command of this process the *earlier* one remains.
        """
        command = earlier if self.command is None else self.command
        of, key = self._latest_record
        if of != (used, command) or not self.session.values.has_large(key):
            key = self.session.values.put_large(encode({"names": used, "command": command}))
            self._latest_record = (used, command), key
        return b"#" + key

    def _refuse_missing(
        self,
        known: StoredExecution,
        bindings: Bindings,
        program: Program,
        state: str | None,
    ) -> None:
        """Raise BindingsMissing for an execution that lacks bindings from a state on."""
        names = self.reader.bound_names(known)["names"]
        require_bindings(known.name, names, program, bindings, bind(bindings, program), state)

    async def _run(
        self,
        stored: StoredExecution,
        program: Program,
        data: Json,
        journal: StoreJournal,
        bound: ResolvedBindings,
        in_event_loop: bool,
        claim: Claim | None = None,
    ) -> Result:
        bound.services.child_store = StoredChildren(self.reader, self.create)
        bound.services.shared_budgets = self.shared_budgets
        if stored.workflow_id is not None:
            bound.services.registered_program = partial(registered_program, self.reader)
            bound.services.map_runs = self.map_runs
        if claim is None:
            journal.watched = stored.number
        try:
            with relaxed_gc:  # its history only grows
                result = await execute(
                    program,
                    data,
                    bound.find,
                    self.clock,
                    identity_of(stored),
                    foreign=True,
                    buckets=bound.buckets,
                    listener=bound.listener,
                    in_event_loop=in_event_loop,
                    services=bound.services,
                    journal=journal,
                )
            if journal.is_cancelled():
                raise ExecutionCancellation
        except BaseException as stop:  # asyncio's own may not be named: it is loaded late
            cut = isinstance(stop, ExecutionCancellation) or is_cancellation(stop)
            if journal.cancellation is None or not cut:
                raise
            if not isinstance(stop, ExecutionCancellation):
                uncancel()
            self._put_end(stored, "ABORTED", *journal.cancellation)
            return self.reader.result(self.reader.get(stored.name), program)
        journal.watched = None
        journal.put_result(result)
        if claim is not None:
            result.needs = claim.needs()
            workers = Workers(self.session)
            if result.status == "PAUSED":
                workers.release(stored.number)
                workers.put_needs(stored.number, result.needs)
            else:
                workers.delete_claim(stored.number)
        await journal.commit(in_event_loop and len(journal.running_locks) > 1)
        if journal.checkpoint_names:
            result.checkpoints = self.reader.checkpoints(stored)
        return result
