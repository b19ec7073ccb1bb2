"""Executions that states of stored executions start, in the same store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from asl.effects.child_execution import PreparedExecution, StartRequest
from asl.engine.journal import STARTED, Journal
from asl.executions.errors import ExecutionBusy, ExecutionExists
from asl.executions.execution_reader import REDRIVABLE, ExecutionReader, identity_of
from asl.executions.execution_start import ExecutionStart
from asl.executions.locking import hold_lock
from asl.executions.redrive import redrive
from asl.executions.task_tokens import StoreTaskTokens
from asl.program import Program
from asl.states.effects import ChildWorkflow
from asl.stores.executions import (
    ENDED,
    UNREGISTERED,
    ExecutionOrigin,
    StoredExecution,
    bind_as,
    find_execution,
)
from asl.stores.journal import StoreJournal
from asl.stores.resources import find_resource
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Select, Update, one_of
from asl.stores.tables import EXECUTION

__all__ = ["StoredChildren"]

DETACH = Update(
    EXECUTION, {"parent": None}, {"number": PARAMETER, "status": one_of("RUNNING", "PAUSED")}
)
REDRIVEN = Select(EXECUTION, ("redriven",), {"number": PARAMETER})


class CreateExecution(Protocol):
    """Adds an execution to the store (`Executor.create`)."""

    def __call__(
        self,
        name: str,
        new: ExecutionStart,
        document: str,
        parent: int | None,
        bound: bytes | None = None,
    ) -> tuple[StoredExecution, StoreJournal]: ...


class StoredChildren:
    """Child executions in the store of their parents (`asl.effects.child_execution.ChildStore`).

    Args:
        reader: Reads the executions of the store.
        create: Adds an execution to the store.
    """

    def __init__(self, reader: ExecutionReader, create: CreateExecution) -> None:
        self.reader = reader
        self._create = create

    @property
    def session(self) -> Session:
        """The session of this thread."""
        return self.reader.session

    @property
    def tokens(self) -> StoreTaskTokens:
        """Task tokens of all executions."""
        return StoreTaskTokens(self.reader)

    def child(
        self, journal: Journal, key: str, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Create the child execution of a state, or find it.

        Raises:
            ExecutionExists: The name belongs to another execution.
        """
        starter, reader = _of_store(journal), self.reader
        known = find_execution(self.session, child.name)
        if known is None:
            program, starter.may_have_started = find(), True
            document = reader.put_program(program)
            new = ExecutionStart(child.name, program, child.data)
            stored, own = self._create(child.name, new, document, starter.number)
            starter.put_started(key, child.name, stored.started)
            return PreparedExecution(program, child.data, stored.started, own)
        if known.parent != starter.number:
            raise ExecutionExists(f"an execution {child.name!r} exists, which a state is to start")
        return self._found(known)

    def start_named(
        self, journal: Journal, key: str, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Create an execution that a state starts by name, or find it; None if the name is in
        use.
        """
        is_ours = journal.answers.pop(key + STARTED, None) is not None
        origin = self._origin(child)
        name = child.name if origin is UNREGISTERED else child.id
        with ExitStack() as working:
            try:
                working.enter_context(hold_lock(self.session, name))
            except ExecutionBusy:
                if is_ours and child.awaited:
                    raise
                return self._elsewhere(name) if is_ours else None
            known = find_execution(self.session, name)
            if known is None:
                begun = self._begin_started(_of_store(journal), key, program, child, name, origin)
            elif is_ours:
                begun = self._found(known)
            else:
                return None
            return begun._replace(leave=working.pop_all().close)

    def _origin(self, child: StartRequest) -> ExecutionOrigin:
        """Return the registered state machine of an execution to start."""
        machine = find_resource(self.session, child.workflow_id)
        if machine is None:
            return UNREGISTERED
        return ExecutionOrigin(child.workflow_id, machine.body.get("roleArn"))

    def _begin_started(
        self,
        journal: StoreJournal,
        key: str,
        program: Program,
        child: StartRequest,
        name: str,
        origin: ExecutionOrigin,
    ) -> PreparedExecution:
        parent = None
        if child.awaited:
            parent, journal.may_have_started = journal.number, True
        document = self.reader.put_program(program)
        new = ExecutionStart(name, program, child.data, child.express, child.requestor, origin)
        stored, own = self._create(name, new, document, parent)
        if not child.awaited:  # it runs independently, with the bindings of its parent
            self.session.write(bind_as, self.session, stored.number, journal.number)
        journal.put_started(key, name, stored.started)
        return PreparedExecution(
            program, child.data, stored.started, own, role=identity_of(stored).role
        )

    def detach(self, journal: Journal, child: Journal) -> None:
        """Make an execution independent of its parent."""
        own = _of_store(child).number
        self.session.write(DETACH, own)
        self.session.write(bind_as, self.session, own, _of_store(journal).number)

    def _elsewhere(self, name: str) -> PreparedExecution:
        """Return an independent execution that another process runs."""
        known = self.reader.get(name)
        program = self.reader.program(known)
        so_far = self.reader.result(known, program)
        return PreparedExecution(program, so_far.execution.input, known.started, result=so_far)

    def _found(self, known: StoredExecution) -> PreparedExecution:
        """Return a child execution, redriven first if its parent was redriven."""
        reader = self.reader
        if known.status in REDRIVABLE and self._redriven_since(known):
            redrive(reader, known, lambda program, state: None)  # its parent holds the lock
            known = reader.get(known.name)
        program, data = reader.program(known), reader.input(known)
        if known.status in ENDED:
            return PreparedExecution(
                program, data, known.started, result=reader.result(known, program)
            )
        return PreparedExecution(
            program,
            data,
            known.started,
            reader.journal(known),
            redrives=known.redrives,
            redriven=known.redriven,
            role=identity_of(known).role,
        )

    def _redriven_since(self, known: StoredExecution) -> bool:
        """Return whether the parent was redriven after the end of this execution."""
        assert known.ended is not None
        ((redriven,),) = self.session.select(REDRIVEN, known.parent)
        return redriven is not None and redriven >= known.ended


def _of_store(journal: Journal) -> StoreJournal:
    """Return the journal of an execution of this store."""
    assert isinstance(journal, StoreJournal)
    return journal
