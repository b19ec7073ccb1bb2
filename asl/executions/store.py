"""The front door of a store: what can be done with its executions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from asl.bindings import (
    NO_INPUT,
    Bindings,
    bind,
    check_input,
    check_name,
    clock_of,
    refuse_running_loop,
    refuse_unknown,
    takes_bindings,
    with_siblings,
)
from asl.core.document import Document, Loadable
from asl.core.environment import has_running_loop
from asl.core.errors import AslError
from asl.core.profile import Profile
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import prepare, program_of
from asl.effects.clock import Clock
from asl.engine.result import Result
from asl.executions.control import StoreControl
from asl.executions.fork import find_fork_point
from asl.executions.handle import Handle
from asl.executions.maintenance import StoreMaintenance
from asl.executions.redrive import prepare_redrive, prepare_rewind
from asl.program import Program
from asl.states.effects import ABSENT
from asl.stores.backend import StoreBackend
from asl.stores.registry import open_backend

if TYPE_CHECKING:
    from asl.executions.runner import RunnerContext

__all__ = ["Store", "open_store"]


class Store(StoreControl, StoreMaintenance):
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
        super().__init__(open_backend(path, synchronous), clock_of(clock), bindings)

    def start(
        self,
        workflow: Program | Document | Loadable,
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
        name = self._executor.record(name, program, data, express, requestor)
        self.session.flush()
        self._executor.notify()
        return self.handle(name)

    async def astart(
        self,
        workflow: Program | Document | Loadable,
        input: Json = NO_INPUT,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
    ) -> Handle:
        """Do what `start` does on the running event loop; many at a time share each commit."""
        program, data = await prepare(self._checked, workflow, input, name, profile)
        name = self._executor.record(name, program, data, express, requestor)
        await self.session.flush_soon()
        self._executor.notify()
        return self.handle(name)

    def fork(
        self,
        name: str,
        at: str,
        *,
        input: Json = ABSENT,
        new_name: str | None = None,
        document: Document | Loadable | None = None,
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
        check_name(new_name)
        known = self.get(name)
        entry = find_fork_point(self._reader, known, self._reader.program(known), at)
        program = (
            self._reader.program(known)
            if document is None
            else self._reader.compiled(document, known)
        )
        if entry.state not in program.machine.steps:
            raise AslError(f"the document has no state {entry.state!r}")
        data = input if input is ABSENT else copy_foreign(input)
        return self.handle(self._executor.fork(known, entry, new_name, data, program))

    def handle(self, name: str) -> Handle:
        """Return the handle of an execution, by name or id; raises ExecutionNotFound."""
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
        return RunnerContext(self._executor, given, self.clock, concurrency, report)

    @takes_bindings
    def run(
        self,
        workflow: Program | Document | Loadable,
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
        workflow: Program | Document | Loadable,
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
        return await self._executor.start(
            name, program, data, express, requestor, given, has_running_loop()
        )

    @takes_bindings
    def resume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Program | Document | Loadable | None = None,
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
        document: Program | Document | Loadable | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `resume` does on the running event loop."""
        refuse_unknown(Store.aresume, bindings)
        given = self._given(bindings)
        other = await self._compiled(name, document)
        restart = prepare_rewind(self._reader, from_checkpoint, other, force, given)
        return await self._executor.resume(name, given, has_running_loop(), restart)

    @takes_bindings
    def redrive(
        self,
        name: str,
        *,
        document: Program | Document | Loadable | None = None,
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
        document: Program | Document | Loadable | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `redrive` does on the running event loop."""
        refuse_unknown(Store.aredrive, bindings)
        given = self._given(bindings)
        corrected = await self._compiled(name, document)
        restart = prepare_redrive(self._reader, self.get(name), corrected)
        return await self._executor.resume(name, given, has_running_loop(), restart)

    def record_command(self, options: Sequence[str], folder: str) -> None:
        """Record with the executions that are run from here on how a command line binds names.

        Args:
            options: The options, as they were written.
            folder: The current folder, from which their paths begin.
        """
        self._executor.command = {"options": [*options], "folder": folder}

    def _checked(
        self,
        workflow: Program | Document | Loadable,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
    ) -> tuple[Program, Json]:
        """Return the program and a copy of the input; raises AslError for what is wrong."""
        program = program_of(workflow, profile, False)
        check_name(name)
        data = copy_foreign(data)
        check_input(data, program.profile)
        return program, data

    def _prepared(
        self,
        workflow: Program | Document | Loadable,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
        given: Bindings,
    ) -> tuple[Program, Json, Bindings]:
        """Return the program, a copy of the input, and the bindings of a run."""
        workflow, given = with_siblings(workflow, given)
        return *self._checked(workflow, data, name, profile), given

    async def _compiled(
        self, name: str, document: Program | Document | Loadable | None
    ) -> Program | None:
        """Return the program of another document for an execution, None for its own."""
        if document is None:
            return None
        return await prepare(self._reader.compiled, document, self.get(name))


open_store = Store
"""Open a store, as in `with asl.open_store(path) as store:`."""
