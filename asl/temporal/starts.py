"""Starts workflows of new executions, and of copies that were restarted, forked or imported."""

from __future__ import annotations

import os
from contextlib import suppress

from asl.bindings import Bindings
from asl.core.values import Json, compact, json_equal
from asl.executions.errors import ExecutionBusy, ExecutionExists, ExecutionNotFound
from asl.executions.execution_start import ExecutionStart
from asl.executions.executor import Executor
from asl.executions.redrive import Restart
from asl.program import Program
from asl.stores.executions import StoredExecution, descendants, find_execution
from asl.stores.transfer import export_executions, with_briefs
from asl.temporal.lists import listed_execution, memo_of
from asl.temporal.payloads import GivenBindings, StartMessage, pack, start_message
from asl.temporal.reader import TemporalReader
from asl.temporal.workflow_bindings import given_bindings

__all__ = ["WorkflowStarter"]


class WorkflowStarter:
    """Starts the workflows of executions.

    Args:
        reader: The copies of executions.
        executor: Changes the copies.
        bindings: Bindings of the store.
    """

    def __init__(self, reader: TemporalReader, executor: Executor, bindings: Bindings) -> None:
        self._reader = reader
        self._client = reader.client
        self._executor = executor
        self._bindings = bindings

    def start(self, new: ExecutionStart, bindings: Bindings | None = None) -> StoredExecution:
        """Start a new execution and return it as lists show it.

        Args:
            new: The execution.
            bindings: Its bindings; None for those of the store.

        Raises:
            ExecutionExists: The name belongs to an execution with another document or input.
        """
        name, program = new.name or os.urandom(16).hex(), new.program
        given = self._given(program, bindings)
        message = start_message(new, self._executor.command, given)
        started = listed_execution(name, program.name, self._executor.clock.now(), new.origin)
        if not self._client.start(name, message, memo_of(started)):
            self._check_same(name, program, new.data)
        return started

    def _given(self, program: Program, bindings: Bindings | None) -> GivenBindings:
        """Return the bindings of a workflow; None for those of the store."""
        return given_bindings(program, self._bindings if bindings is None else bindings)

    def _check_same(self, name: str, program: Program, data: Json) -> None:
        """Check that the execution of a name has this document and input.

        Raises:
            ExecutionExists: It has another one.
        """
        known = self._reader.get(name)
        document = self._reader.put_program(program)
        if known.document != document:
            raise ExecutionExists(f"an execution {name!r} of another document exists already")
        if not json_equal(self._reader.input(known), data):
            raise ExecutionExists(f"an execution {name!r} with another input exists already")

    def require_free(self, name: str) -> None:
        """Check that there is no execution of a name, and forget what remains of a former one.

        Raises:
            ExecutionExists: There is one.
        """
        with suppress(ExecutionNotFound):
            self._client.describe(name)
            raise ExecutionExists(f"an execution {name!r} exists already")
        self._reader.forget(name)

    def restart(self, name: str, restart: Restart, bindings: Bindings | None = None) -> None:
        """Change the copy of an ended execution and start a workflow with it.

        Args:
            name: Name of the execution or a descendant.
            restart: The change.
            bindings: Its bindings; None for those of the store.

        Raises:
            ExecutionBusy: Its workflow has not ended.
        """
        reader = self._reader
        known = reader.get(reader.root(name))
        found = self._client.describe(known.name)
        if found.close_time is None:
            raise ExecutionBusy(f"the execution {name!r} has not ended: its workers continue it")
        reader.outdate(known.name)
        before = self._briefs(known)
        self._executor.restart(name, restart)
        former = self._client.given_bindings(known.name)
        self.start_copy(known.name, before, bindings, former)

    def _briefs(self, known: StoredExecution) -> dict[int, tuple[int, Json]]:
        """Return what the histories of an execution and its descendants have led to."""
        executions = (known, *descendants(self._reader.session, known.number))
        journals = [self._reader.journal(each) for each in executions]
        return {each.number: (each.steps, each.brief()) for each in journals}

    def start_copy(
        self,
        name: str,
        briefs: dict[int, tuple[int, Json]] | None = None,
        bindings: Bindings | None = None,
        former: GivenBindings | None = None,
    ) -> None:
        """Start a workflow with the copy of an execution.

        Args:
            name: Name of the execution.
            briefs: What the histories that earlier runs hold have led to; None without such runs.
            bindings: Its bindings; None for those of the store.
            former: The bindings in the workflow of its earlier run, used unless others are given.

        Raises:
            ExecutionExists: A workflow of its name runs.
        """
        session = self._reader.session
        (content,) = export_executions(session, [name], [])
        if briefs is not None:
            content = with_briefs(content, briefs)
        stored = find_execution(session, name)
        assert stored is not None
        program = self._reader.program(stored)
        given = {**(former or {}), **self._given(program, bindings)}
        message = StartMessage(content=pack(content), bindings=compact(given))
        again = briefs is not None
        if again and (runs := self._reader.map_runs(name)):
            message["map_runs"] = pack(runs)
        if not self._client.start(name, message, memo_of(stored), again=again):
            self._reader.forget(name)
            raise ExecutionExists(f"the execution {name!r} runs already")
