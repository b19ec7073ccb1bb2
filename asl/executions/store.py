"""Stores of durable executions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack, cast

from asl.bindings import (
    NO_INPUT,
    Bindings,
    add_template_workflows,
    bind,
    check_forms,
    check_input,
    check_name,
    refuse_running_loop,
    refuse_unknown,
    resolve_clock,
    takes_bindings,
)
from asl.core.document import Document, Loadable
from asl.core.environment import has_running_loop, install_command
from asl.core.errors import AslError
from asl.core.lazy import load_object
from asl.core.profile import Profile
from asl.core.values import Json, copy_foreign
from asl.documents.compiling import prepare, resolve_program
from asl.effects.clock import Clock
from asl.engine.result import Result
from asl.executions.control import StoreControl
from asl.executions.execution_start import ExecutionStart
from asl.executions.fork import ForkPoint, find_fork_point
from asl.executions.handle import Handle
from asl.executions.maintenance import StoreMaintenance
from asl.executions.redrive import Restart, prepare_redrive, prepare_rewind
from asl.program import Program
from asl.states.effects import ABSENT
from asl.stores.backend import StoreBackend
from asl.stores.executions import UNREGISTERED, ExecutionOrigin, StoredExecution
from asl.stores.registry import open_backend
from asl.stores.session import ThreadSessions

if TYPE_CHECKING:
    from asl.executions.runner import RunnerContext

__all__ = ["Store", "open_store"]


class Store(StoreControl, StoreMaintenance):
    """A store of durable executions, with default bindings.

    Any thread and any forked process may use it; each opens the file for itself. Methods that take
    the name of an execution also take its id, and raise ExecutionNotFound for an unknown one.

    Args:
        path: The path of a file, created if missing; `"memory:"`; `NAME:PLACE` of an installed
            backend; or an `asl.StoreBackend`.
        synchronous: SQLite's pragma: with `FULL` acknowledged changes survive a loss of power, with
            `NORMAL` the death of the process.
        clock: `"wall"`, `"virtual"` or a clock object.
        bindings: As for `asl.run`, the defaults of every execution.

    Raises:
        StoreError: The file cannot be read or written.
        StoreDamaged: The file is damaged.
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
        check_forms(bindings)  # before a file is created
        sessions = ThreadSessions(open_backend(path, synchronous))
        super().__init__(sessions, resolve_clock(clock), bindings)

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
        """Record a new execution for a runner and return its handle.

        A name that exists returns the handle of that execution if document and input are the same.

        Args:
            workflow: The document, its path or its text, or a program.
            input: The input; `{}` if absent.
            name: The name of the execution; random by default.
            profile: As for `asl.run`.
            express: Whether it is an express execution.
            requestor: Name of the user who starts it.
            origin: The registered state machine that it belongs to; `name` is then its ARN.

        Raises:
            InvalidDocument: The document has errors.
            NotJson: The input is no JSON value.
            ExecutionExists: The name belongs to an execution with another document or input.
        """
        program, data = self._checked(workflow, input, name, profile)
        return self._record(ExecutionStart(name, program, data, express, requestor, origin))

    def _record(self, new: ExecutionStart) -> Handle:
        """Record a new execution for a runner and return its handle."""
        name = self._executor.record(new)
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
        origin: ExecutionOrigin = UNREGISTERED,
    ) -> Handle:
        """Start an execution on the running event loop; see `start`.

        Concurrent calls share commits.
        """
        program, data = await prepare(self._checked, workflow, input, name, profile)
        return await self._arecord(ExecutionStart(name, program, data, express, requestor, origin))

    async def _arecord(self, new: ExecutionStart) -> Handle:
        """Record a new execution on the running event loop and return its handle."""
        name = self._executor.record(new)
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
        """Start a new execution at a visit of another one, which stays as it is.

        Earlier calls of the other execution are not repeated. Usage counts from zero.

        Args:
            name: The other execution, whatever its status.
            at: The state, at the top of the document: `STATE` for its latest visit, `STATE#2` for
                the second one.
            input: The input of the state; by default the original one.
            new_name: The name of the new execution; random by default.
            document: The document of the new execution; by default the same.

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
            else self._reader.compile_document(document, known)
        )
        if entry.state not in program.machine.steps:
            raise AslError(f"the document has no state {entry.state!r}")
        data = input if input is ABSENT else copy_foreign(input)
        return self.handle(self._fork(known, entry, new_name, data, program))

    def _fork(
        self,
        known: StoredExecution,
        entry: ForkPoint,
        name: str | None,
        data: Json,
        program: Program,
    ) -> str:
        """Record a forked execution for a runner and return its name."""
        return self._executor.fork(known, entry, name, data, program)

    def handle(self, name: str) -> Handle:
        """Return the handle of an execution.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return Handle(self, self.get(name))

    @takes_bindings
    def runner(
        self,
        *,
        concurrency: int = 100,
        report: Callable[[str, Result | str], object] | None = None,
        grace: float = 0.0,
        only: str | None = None,
        build: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> RunnerContext:
        """Return a runner of due executions, for `with` or `async with`.

        In `async with` it uses the running event loop, in `with` one of its own in a thread.

        Args:
            concurrency: Maximum number of concurrent executions.
            report: Called with the name of an execution and its result, or the reason why it cannot
                continue here.
            grace: Seconds that calls of agents have to end when the block ends; other runners make
                those that were cut off again.
            only: What a store on Temporal runs: `"workflows"` or `"activities"`; None for both.
            build: Version of a worker on Temporal; None for a worker without versions.
            bindings: As for `asl.run`; None for those of the store.

        Raises:
            AslError: A binding is invalid, or *only* or *build* is given for another store.
        """
        from asl.executions.runner import Runner, RunnerContext

        refuse_unknown(Store.runner, bindings)
        if only is not None or build is not None:
            raise AslError("'only' and 'build' are for executions on Temporal")
        given = self._given(bindings)
        bind(given)  # raises for invalid bindings before the runner starts
        make = partial(
            Runner, self._executor, given, self.clock, concurrency=concurrency, report=report
        )
        return RunnerContext(make, self.clock, grace)

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
        origin: ExecutionOrigin = UNREGISTERED,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Start an execution and run it until it ends or pauses; blocks the caller.

        A name that exists continues that execution, or returns its result, if document and input
        are the same.

        Args:
            workflow: The document, its path or its text, or a program.
            input: The input; `{}` if absent.
            name: The name of the execution; random by default.
            profile: As for `asl.run`.
            express: Whether it is an express execution.
            requestor: Name of the user who starts it.
            origin: As for `start`.
            bindings: As for `asl.run`; None for those of the store.

        Raises:
            ExecutionExists: The name belongs to an execution with another document or input.
            ExecutionBusy: Another process runs it.
            InvalidDocument: The document has errors.
        """
        refuse_unknown(Store.run, bindings)
        refuse_running_loop()
        return self._driver.drive(self.arun(
            workflow, input, name=name, profile=profile, express=express, requestor=requestor,
            origin=origin, **bindings,
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
        origin: ExecutionOrigin = UNREGISTERED,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Run an execution on the running event loop; see `run`.

        Concurrent calls share commits.
        """
        refuse_unknown(Store.arun, bindings)
        given = self._given(bindings)
        program, data, given = await prepare(self._prepared, workflow, input, name, profile, given)
        new = ExecutionStart(name, program, data, express, requestor, origin)
        return await self._execute(new, given)

    async def _execute(self, new: ExecutionStart, given: Bindings) -> Result:
        """Run a new execution, or the one of this name, until it ends or pauses."""
        return await self._executor.start(new, given, has_running_loop())

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
        """Continue the root of an execution until it ends or pauses; blocks the caller.

        Args:
            name: Name or id of the execution.
            from_checkpoint: Name or id of a checkpoint to restart from, after a failure or the
                death of the process.
            document: Another document, only from a checkpoint and with `force`.
            force: Whether another document is allowed.
            bindings: As for `asl.run`; None for those of the store.

        Returns:
            The result; that of an execution that has ended is returned as it is.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionBusy: Another process runs it.
            CheckpointRefused: It cannot continue from the checkpoint.
            BindingsMissing: Bindings of earlier runs are missing (`missing` names them); nothing
                has run.
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
        """Continue an execution on the running event loop; see `resume`."""
        refuse_unknown(Store.aresume, bindings)
        given = self._given(bindings)
        other = await self._compiled(name, document)
        restart = prepare_rewind(self._reader, from_checkpoint, other, force, given)
        return await self._continue(name, given, restart)

    async def _continue(self, name: str, given: Bindings, restart: Restart | None) -> Result:
        """Continue the root of an execution, restarted if that is given."""
        return await self._executor.resume(name, given, has_running_loop(), restart)

    @takes_bindings
    def redrive(
        self,
        name: str,
        *,
        document: Program | Document | Loadable | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Continue a failed execution from its failed states; blocks the caller.

        Successful states, iterations and branches are not repeated.

        Args:
            name: Name or id of the execution.
            document: A corrected document; by default the same.
            bindings: As for `asl.run`; None for those of the store.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionNotRedrivable: It did not fail, or the document lacks its current states.
            BindingsMissing: Bindings of earlier runs are missing; nothing has run.
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
        """Redrive an execution on the running event loop; see `redrive`."""
        refuse_unknown(Store.aredrive, bindings)
        given = self._given(bindings)
        corrected = await self._compiled(name, document)
        restart = prepare_redrive(self._reader, await self._aget(name), corrected)
        return await self._continue(name, given, restart)

    def request_redrive(
        self, name: str, *, document: Program | Document | Loadable | None = None
    ) -> None:
        """Restart a failed execution from its failed states; a runner continues it.

        Args:
            name: Name or id of the execution.
            document: A corrected document; by default the same.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionNotRedrivable: It did not fail, or the document lacks its current states.
            InvalidDocument: The document has errors.
        """
        known = self.get(name)
        corrected = None if document is None else self._reader.compile_document(document, known)
        self._restart(known.name, prepare_redrive(self._reader, known, corrected))

    def request_resume(self, name: str, from_checkpoint: str) -> None:
        """Restart an execution from a checkpoint; a runner continues it.

        Args:
            name: Name or id of the execution.
            from_checkpoint: Name or id of the checkpoint.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionBusy: Another process runs it.
            CheckpointRefused: It cannot continue from the checkpoint.
        """
        restart = prepare_rewind(self._reader, from_checkpoint, None, False, self._given({}))
        assert restart is not None
        self._restart(self.get(name).name, restart)

    def _restart(self, name: str, restart: Restart) -> None:
        """Restart an ended execution; a runner continues it."""
        self._executor.restart(name, restart)

    def record_command(self, options: Sequence[str], folder: str) -> None:
        """Record the command line that binds names with all further executions.

        Args:
            options: The options, unchanged.
            folder: The current folder, to which their paths are relative.
        """
        self._executor.command = {"options": [*options], "folder": folder}

    def _checked(
        self,
        workflow: Program | Document | Loadable,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
    ) -> tuple[Program, Json]:
        """Return the program and a copy of the input.

        Raises:
            AslError: Either is invalid.
        """
        program = resolve_program(workflow, profile, False)
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
        workflow, given = add_template_workflows(workflow, given)
        return *self._checked(workflow, data, name, profile), given

    async def _compiled(
        self, name: str, document: Program | Document | Loadable | None
    ) -> Program | None:
        """Return the program of another document for an execution, None for its own."""
        if document is None:
            return None
        return await prepare(self._reader.compile_document, document, await self._aget(name))

    async def _aget(self, name: str) -> StoredExecution:
        """Return an execution on the running event loop."""
        return self.get(name)


SERVERS: Final = {"temporal": "asl.temporal.store:TemporalStore"}
"""Stores on servers by the scheme of their addresses, with packages of the extra of this name."""


@takes_bindings
def open_store(
    path: str | os.PathLike[str] | StoreBackend,
    *,
    synchronous: str = "FULL",
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Store:
    """Open a store, as in `with asl.open_store(path) as store:`.

    Args:
        path: As for `asl.Store`, or the address of a server, `temporal://HOST:PORT/NAMESPACE`.
        synchronous: As for `asl.Store`, for a file.
        clock: As for `asl.Store`; a server has its own.
        bindings: As for `asl.run`, the defaults of every execution.

    Raises:
        StoreError: The file cannot be read or written.
        StoreDamaged: The file is damaged.
        AslError: The server cannot be reached, or its packages are not installed.
    """
    refuse_unknown(open_store, bindings)
    scheme, separator, _ = path.partition("://") if isinstance(path, str) else ("", "", "")
    scheme = scheme.lower()
    if not separator or scheme not in SERVERS:
        return Store(path, synchronous=synchronous, clock=clock, **bindings)
    if clock != "wall":
        raise AslError(f"a store on a server has no clock of its own: {path!r}")
    try:
        opener = cast("Callable[..., Store]", load_object(SERVERS[scheme]))
    except ModuleNotFoundError as missing:
        raise AslError(
            f"{path!r} needs the package {missing.name!r}: {install_command(scheme)}"
        ) from None
    return opener(path, **bindings)
