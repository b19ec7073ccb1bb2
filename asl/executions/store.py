"""The front door of a store: what can be done with its executions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, cast

from asl.bindings import (
    NO_INPUT,
    Bindings,
    bind,
    check_forms,
    check_input,
    check_name,
    clock_of,
    refuse_running_loop,
    refuse_unknown,
    takes_bindings,
    with_siblings,
)
from asl.core.document import Document, What
from asl.core.errors import AslError
from asl.core.event_loop import has_running_loop
from asl.core.profile import Profile
from asl.core.values import Json, detached
from asl.documents.compiling import prepare, program_of
from asl.effects.clock import Clock
from asl.effects.driving import Driver
from asl.engine.checkpoints import Checkpoint, Storage
from asl.engine.events import Event
from asl.engine.result import Result
from asl.executions import people, retention
from asl.executions.again import redriving, rewinding
from asl.executions.desk import StoreTokens
from asl.executions.exclusion import is_left_behind, left_behind
from asl.executions.kept import EventFeed, Kept
from asl.executions.running import Running
from asl.program import Program
from asl.states.effects import ABSENT
from asl.stores.backend import StoreBackend
from asl.stores.backends import backend_at
from asl.stores.checkpoints import read_checkpoints
from asl.stores.executions import (
    Stored,
    descendants,
    due_executions,
    list_executions,
    top_of,
)
from asl.stores.opened import Opened
from asl.stores.requests import OPEN, find_requests, find_tasks
from asl.stores.session import Session
from asl.stores.workers import Workers

if TYPE_CHECKING:
    from asl.executions.handle import Handle
    from asl.executions.runner import RunnerContext

__all__ = ["Store", "open_store"]


class Store:
    """Executions in a file, and those who answer for the names in their documents.

    Any thread may use it, and a process that is forked: each opens the file for itself. Whatever
    takes the name of an execution takes its id as well, and raises ExecutionNotFound where there is
    none.

    Args:
        path: The path of a file, which is made where there is none; `"memory:"`; `NAME:PLACE` of a
            backend that is installed; or an `asl.StoreBackend`.
        synchronous: That of SQLite: with `FULL` what is acknowledged survives a loss of power, with
            `NORMAL` the death of the process.
        clock: `"wall"`, `"virtual"` or a clock object.
        agents: As for `asl.run`, for every execution; so are all others. Those given to a run hold
            for that one.

    Raises:
        StoreError: The file cannot be read or written.
        StoreDamaged: It is not as it was written.
    """

    @takes_bindings
    def __init__(
        self,
        path: str | os.PathLike[str] | StoreBackend,
        *,
        synchronous: str = "FULL",
        clock: str | Clock = "wall",
        **bindings: Unpack[Bindings],
    ) -> None:
        refuse_unknown(Store.__init__, bindings)
        check_forms(bindings)
        self.clock = clock_of(clock)
        self._opened = Opened(backend_at(path, synchronous))
        self._bindings = bindings
        self._kept = Kept(self._opened, self.clock.now)
        self._running = Running(self._kept, self.clock)
        self._driver = Driver(self.clock)

    @property
    def path(self) -> str | os.PathLike[str]:
        """The path of the file, or what names the store in messages."""
        return self._opened.place

    @property
    def session(self) -> Session:
        """The store as this thread has it open."""
        return self._opened.session

    def close(self) -> None:
        """Write what is left and close the file; a second time nothing happens.

        What other threads run comes to its end; they begin nothing more. Raises StoreError where
        it cannot be written; the file is closed all the same.
        """
        self._driver.close()
        self._opened.close()

    def reopen(self) -> None:
        """Open the file again for this thread, as behind LeaseLost."""
        self._opened.reopen()

    def __repr__(self) -> str:
        return f"<Store {self._opened.place}>"

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Running

    def start(
        self,
        workflow: Program | Document | What,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
    ) -> Handle:
        """Start an execution and return its handle at once; a runner of the store takes it up.

        Starting the same document on the same input under a name that exists returns the handle of
        that execution.

        Args:
            workflow: The document, its path or its text, or a program.
            input: The input; `{}` if absent.
            name: The name of the execution, a new one by default.
            profile: As for `asl.run`.
            express: Whether it is an express one.
            requestor: Who starts it.

        Raises:
            InvalidDocument: The document has errors.
            NotJson: The input is no JSON value.
            ExecutionExists: The name is that of an execution of another document or input.
        """
        program, data = self._checked(workflow, input, name, profile)
        name = self._running.record(name, program, data, express, requestor)
        self.session.flush()
        self._running.notify()
        return self.handle(name)

    async def astart(
        self,
        workflow: Program | Document | What,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
    ) -> Handle:
        """Do what `start` does on the running event loop; many at a time share each commit."""
        program, data = await prepare(self._checked, workflow, input, name, profile)
        name = self._running.record(name, program, data, express, requestor)
        await self.session.flush_soon()
        self._running.notify()
        return self.handle(name)

    def fork(
        self,
        name: str,
        at: str,
        *,
        input: Json = ABSENT,
        new_name: str | None = None,
        document: Document | What | None = None,
    ) -> Handle:
        """Start a new execution at a state that another one has entered; that one stays as it is.

        What the other one did before is taken as done: no call of it is made again. What the new
        one spends is counted from nothing.

        Args:
            name: The other execution, whatever its status.
            at: The state, at the top of the document: `STATE` for its latest visit, `STATE#2` for
                the second one.
            input: What the state gets; by default what it got.
            new_name: The name of the new execution, a new one by default.
            document: Another document for the new one; by default the same.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionExists: The new name is taken.
            AslError: There is no such visit.
        """
        from asl.executions.forking import entry_at

        check_name(new_name)
        known = self.get(name)
        entry = entry_at(self._kept, known, self._kept.program(known), at)
        program = (
            self._kept.program(known) if document is None else self._kept.compiled(document, known)
        )
        if entry.state not in program.machine.steps:
            raise AslError(f"the document has no state {entry.state!r}")
        data = input if input is ABSENT else detached(input)
        return self.handle(self._running.fork(known, entry, new_name, data, program))

    def handle(self, name: str) -> Handle:
        """Return the handle of an execution, by name or id; raises ExecutionNotFound."""
        from asl.executions.handle import Handle

        return Handle(self, self.get(name))

    @takes_bindings
    def runner(
        self,
        *,
        concurrency: int = 100,
        report: Callable[[str, Result | str], object] | None = None,
        **bindings: Unpack[Bindings],
    ) -> RunnerContext:
        """Return a runner that takes up what is due, for `with` or `async with`.

        In `async with` it runs on the running event loop, in `with` on one of its own in a thread.

        Args:
            concurrency: Executions that run at the same time.
            report: Takes the name of an execution and its result, or why it cannot go on here.
            agents: As for `asl.run`; so are all others. None for that of the store.
        """
        from asl.executions.runner import RunnerContext

        refuse_unknown(Store.runner, bindings)
        given = self._given(bindings)
        bind(given)  # what is wrong with them is told now
        return RunnerContext(self._running, given, self.clock, concurrency, report)

    @takes_bindings
    def run(
        self,
        workflow: Program | Document | What,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Start an execution and run it until it ends or waits for people; blocks the caller.

        Starting the same document on the same input under a name that exists goes on with that
        execution, or returns what it came to.

        Args:
            workflow: As for `asl.run`, and so are all others.
            name: The name of the execution, a new one by default.
            agents: As for `asl.run`, and so are all others. None for that of the store.

        Raises:
            ExecutionExists: The name is that of an execution of another document or input.
        """
        refuse_unknown(Store.run, bindings)
        refuse_running_loop()
        return self._driver.drive(self.arun(
            workflow, input, name=name, profile=profile, express=express, requestor=requestor,
            **bindings,
        ))  # fmt: skip

    @takes_bindings
    async def arun(
        self,
        workflow: Program | Document | What,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `run` does on the running event loop; many at a time share each commit."""
        refuse_unknown(Store.arun, bindings)
        given = self._given(bindings)
        program, data, given = await prepare(self._prepared, workflow, input, name, profile, given)
        return await self._running.start(
            name, program, data, express, requestor, given, has_running_loop()
        )

    @takes_bindings
    def resume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Program | Document | What | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Go on with an execution, by name or id, until it ends or waits; blocks the caller.

        Returns what it came to where it has ended. One that another execution has started is gone
        on with together with that.

        Args:
            name: Its name or id.
            from_checkpoint: The name or id of a checkpoint from which it goes on, after a failure
                or the death of its process.
            document: Another document, only from a checkpoint and with `force`.
            force: Whether another document may go on.
            agents: As for `asl.run`, and so are all others. None for that of the store.

        Raises:
            ExecutionNotFound: There is none.
            ExecutionBusy: Another process is at work on it.
            CheckpointRefused: It cannot go on from the checkpoint.
            BindingsMissing: It had bindings that are not given now: nothing has run. `missing` has
                their names.
        """
        refuse_unknown(Store.resume, bindings)
        refuse_running_loop()
        return self._driver.drive(self.aresume(
            name, from_checkpoint=from_checkpoint, document=document, force=force,
            **bindings,
        ))  # fmt: skip

    @takes_bindings
    async def aresume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Program | Document | What | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `resume` does on the running event loop."""
        refuse_unknown(Store.aresume, bindings)
        given = self._given(bindings)
        other = await self._compiled(name, document)
        again = rewinding(self._kept, from_checkpoint, other, force, given)
        return await self._running.resume(name, given, has_running_loop(), again)

    @takes_bindings
    def redrive(
        self,
        name: str,
        *,
        document: Program | Document | What | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Go on with an execution from the states that failed or were cut off; blocks the caller.

        What has succeeded is not done again: neither states nor iterations nor branches.

        Args:
            name: Its name or id.
            document: A corrected document, by which it goes on.
            agents: As for `asl.run`, and so are all others. None for that of the store.

        Raises:
            ExecutionNotRedrivable: It has not ended without success, or the document has no state
                at which it stands.
            BindingsMissing: It had bindings that are not given now.
        """
        refuse_unknown(Store.redrive, bindings)
        refuse_running_loop()
        return self._driver.drive(self.aredrive(
            name, document=document,
            **bindings,
        ))  # fmt: skip

    @takes_bindings
    async def aredrive(
        self,
        name: str,
        *,
        document: Program | Document | What | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `redrive` does on the running event loop."""
        refuse_unknown(Store.aredrive, bindings)
        given = self._given(bindings)
        corrected = await self._compiled(name, document)
        again = redriving(self._kept, self.get(name), corrected)
        return await self._running.resume(name, given, has_running_loop(), again)

    def _checked(
        self,
        workflow: Program | Document | What,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
    ) -> tuple[Program, Json]:
        """Return the program and a copy of the input; raises AslError for what is wrong."""
        program = program_of(workflow, profile, False)
        check_name(name)
        data = detached(data)
        check_input(data, program.profile)
        return program, data

    def _prepared(
        self,
        workflow: Program | Document | What,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
        given: Bindings,
    ) -> tuple[Program, Json, Bindings]:
        """Return the program, a copy of the input, and the bindings of a run."""
        workflow, given = with_siblings(workflow, given)
        return *self._checked(workflow, data, name, profile), given

    async def _compiled(
        self, name: str, document: Program | Document | What | None
    ) -> Program | None:
        """Return the program of another document for an execution, None for its own."""
        if document is None:
            return None
        return await prepare(self._kept.compiled, document, self.get(name))

    def _given(self, bindings: Bindings) -> Bindings:
        """Return the bindings of a run: its own, and those of the store."""
        own = {name: given for name, given in bindings.items() if given is not None}
        given = cast("Bindings", self._bindings | own)
        beside = self._opened.backend.checkpoints
        given["checkpoints"] = {"file": beside, **(given.get("checkpoints") or {})}
        return given

    # Checkpoints

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return what an execution has saved, or all of them have, the oldest first."""
        if name is not None:
            return self._kept.checkpoints(self.get(name))
        return read_checkpoints(self.session)

    # People

    def pending(self, name: str | None = None) -> list[dict[str, Json]]:
        """Return the open requests as people see them, the oldest first.

        Those of all executions, without damaged ones (`damaged_requests`), or those of one and of
        all that it has started.
        """
        if name is None:
            found = find_requests(self.session, OPEN, damaged=[])
        else:
            found = self._kept.open(self.get(name))
        return [asked.shown for asked in found]

    def damaged_requests(self) -> list[str]:
        """Return a sentence on each open request whose row is not as it was written."""
        damaged: list[str] = []
        find_requests(self.session, OPEN, damaged=damaged)
        find_tasks(self.session, OPEN, damaged=damaged)
        return damaged

    def decided(self, name: str) -> list[dict[str, Json]]:
        """Return the requests of an execution that are decided: `resume` goes on with them.

        Those of all that it has started are among them, the oldest first.
        """
        return [asked.shown for asked in self._kept.decided(self.get(name))]

    def request(self, request_id: str) -> dict[str, Json]:
        """Return a request as people see it, also one that is not open any more.

        Raises RequestNotFound.
        """
        return people.request(self.session, request_id).shown

    def requester(self, request_id: str) -> str:
        """Return the name of the execution that has made a request or waits for a task token.

        `top` of it names the execution that the answer is for. Raises RequestNotFound.
        """
        return people.requester(self.session, request_id)

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
        """Answer a request; returns the record of the decision, None while others have to agree.

        The same answer twice is one. Raises AnswerRefused for an answer outside of the rules, or
        one that comes too late; nothing has changed then. `resume` goes on with the execution.
        """
        given = {"approval": approval, "approver": by, "comment": comment, "edited_content": edited}
        answer = {**more, **{key: value for key, value in given.items() if value is not None}}
        if roles:
            answer["roles"] = list(roles)
        record = people.answer(self.session, request_id, answer, self.clock.now())
        self._running.notify()
        return record

    @property
    def tokens(self) -> StoreTokens:
        """The desk where the task tokens of all executions are answered, by any process."""
        return StoreTokens(self._kept)

    def awaited(self, name: str | None = None) -> list[dict[str, Json]]:
        """Return the tasks that wait for the answer to their token, the oldest first.

        Those of all executions, without damaged ones (`damaged_requests`), or those of one and of
        all that it has started. Each has the name of its `execution`.
        """
        if name is None:
            found = find_tasks(self.session, OPEN, damaged=[])
        else:
            found = self._kept.awaited(self.get(name))
        return [{**task.shown, "execution": self.requester(task.token)} for task in found]

    def due(self) -> list[str]:
        """Return the names of the paused executions that have something to go on with.

        A request was answered, or the time for an escalation or a timeout has come.
        """
        return due_executions(self.session, self.clock.now())

    def left_behind(self, name: str) -> bool:
        """Whether an execution has not ended or paused, and nobody is at work on it any more."""
        return is_left_behind(self.session, self.get(name))

    def all_left_behind(self) -> list[str]:
        """Return the names of those whose process has died, the oldest first."""
        return left_behind(self.session)

    def stop(self, name: str, *, error: str | None = None, cause: str | None = None) -> None:
        """End an execution, whoever is at work on it; its status becomes ABORTED.

        A runner that is at work on it ends it within a second, another process behind the effect
        that is under way. What was held for it of shared budgets, others may spend.
        Raises ExecutionNotFound, and AslError for one that has ended already.
        """
        self._running.stop(name, error, cause)

    def needs(self, name: str) -> list[str]:
        """Return what an execution needs and no runner has bound, a sentence on each."""
        return self._workers.needs(self.get(name).number)

    def stuck(self) -> dict[str, list[str]]:
        """Return the executions that no runner can go on with, by name, with what they need."""
        return {name: needs for _, name, needs in self._workers.needing()}

    def workers(self) -> list[str]:
        """Return the ids of the runners that are at work on the store."""
        return self._workers.alive()

    @property
    def _workers(self) -> Workers:
        return Workers(self.session)

    # Maintenance

    def delete(self, name: str) -> None:
        """Delete an execution that has ended, with all that it started.

        Its history, requests and checkpoints are deleted, also from storages that can delete
        (`__delitem__`). What it spent from a pool stays spent.

        Raises:
            ExecutionNotFound: There is none of this name.
            ExecutionBusy: Another process is at work on it.
            AslError: It has not ended, or another execution has started it.
        """
        retention.delete(self._running, name, self._storages())

    def prune(self, keep: str | float, *, dry_run: bool = False) -> list[str]:
        """Delete the executions that ended longer ago than *keep*; running and paused ones stay.

        Args:
            keep: A duration such as `"30d"`, or seconds.
            dry_run: Delete nothing, and return what would be deleted.

        Returns:
            The names of the deleted executions, the oldest first.
        """
        return retention.prune(self._running, keep, self.clock.now(), self._storages(), dry_run)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store into a new file, also while executions run; raises StoreError.

        The copy has all that was recorded when it began. Checkpoints in other storages are not in
        it.
        """
        self.session.flush()
        self.session.connection.backup(path)

    def export(
        self, names: Sequence[str] | None = None, *, damaged: list[str] | None = None
    ) -> Iterator[Json]:
        """Yield executions as JSON for `import_execution`, with all that they started.

        Args:
            names: The executions; None for all.
            damaged: Takes a sentence on each damaged execution, which is left out.
        """
        from asl.stores.transfer import export_executions

        tops = None if names is None else [self.top(each) for each in names]
        return export_executions(self.session, tops, [] if damaged is None else damaged)

    def import_execution(self, line: Json) -> str:
        """Add an exported execution; returns its name.

        Raises StoreError, and changes nothing, where its digest is wrong or its name is taken.
        """
        from asl.stores.transfer import import_execution

        self.session.insist_writable()
        return import_execution(self.session, line)

    def _storages(self) -> Mapping[str, Storage]:
        return bind(self._given({})).services.storages

    def faults(self, report: Callable[[str], object] = lambda part: None) -> Iterator[str]:
        """Yield what is wrong with the file, a sentence for each fault; nothing for a whole one.

        Args:
            report: Takes the name of each part before it is looked at.
        """
        from asl.stores.doctor import faults

        return faults(self._opened.backend, self.session, report)

    def release_reservations(self) -> list[str]:
        """Release what is held of shared budgets for nothing.

        That is all that executions hold that have ended, and what is held for the calls of those
        whose process has died.

        Returns:
            The names of the budgets of which something was held.
        """
        from asl.stores.pools import StoreBudgets

        released = list(StoreBudgets(self.session).release_lost())
        self.session.flush()
        return released

    # Looking

    def get(self, name: str) -> Stored:
        """Return an execution by its name or its id; raises ExecutionNotFound."""
        return self._kept.get(name)

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Stored]:
        """Return a page of executions, the newest first, without those that others started.

        All of them, or those with a *status* (`"PAUSED"`); at most *limit*. The `number` of the
        last one, given as *before*, asks for the next page. Raises AslError for what is no status.
        """
        return list_executions(self.session, status=status, before=before, limit=limit)

    def started_by(self, name: str) -> list[Stored]:
        """Return the executions that one has started, and those that they have, in this order."""
        return descendants(self.session, self.get(name).number)

    def top(self, name: str) -> str:
        """Return the name of the execution that has led to this one; of a top one its own."""
        return top_of(self.session, self.get(name).name)

    def events(self, name: str, *, wait: Callable[[], object] | None = None) -> Iterator[Event]:
        """Yield the history of an execution as far as it is written.

        With *wait* it is followed to its end, also while another process is at work on it: *wait*
        is called whenever there is nothing new.
        """
        return self._kept.events(name, wait)

    def feed(self, name: str) -> EventFeed:
        """Return what reads the history of an execution piece by piece, as it is written."""
        return EventFeed(self._kept, name)

    def result(self, name: str, *, with_history: bool = True) -> Result:
        """Return what an execution has come to.

        Args:
            name: Its name or id.
            with_history: Whether the result has the history so far. Without it a result is read
                in the same time for any length, and its `visited` and `events` are empty.
        """
        known = self.get(name)
        return self._kept.result(known, self._kept.program(known), with_history)

    def record_command(self, options: Sequence[str], folder: str) -> None:
        """Record with the executions that are run from here on how a command line binds names.

        Args:
            options: The options, as they were written.
            folder: The current folder, from which their paths begin.
        """
        self._running.command = {"options": [*options], "folder": folder}

    def command(self, name: str) -> tuple[list[str], str] | None:
        """Return the options that bound the names of an execution, and the folder of their paths.

        None where it was not run by the command line.
        """
        found = self._kept.bound(self.get(self.top(name)))["command"]
        return None if found is None else (found["options"], found["folder"])

    def program(self, name: str) -> Program:
        """Return the program by which an execution goes on; raises ExecutionNotFound."""
        return self._kept.program(self.get(name))


open_store = Store
"""Open a store, as in `with asl.open_store(path) as store:`."""
