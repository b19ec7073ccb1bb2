"""Journal entries about started executions."""

from __future__ import annotations

from collections.abc import Callable

from asl.effects.child_execution import ChildStore, Job, JobEnd, PreparedExecution, StartRequest
from asl.effects.journaled.callbacks import (
    DurableCallback,
    DurableJob,
    JournaledCallbacks,
    new_callback,
)
from asl.effects.journaled.results import JournaledResults
from asl.effects.task_tokens import OpenToken
from asl.engine.agent import Call
from asl.engine.frame import Frame
from asl.engine.journal_values import read_spent, write_spent
from asl.engine.pending_callback import TOKEN
from asl.engine.usage import UNSPENT, ExecutionSpending
from asl.program import Program
from asl.states.calls import Handover
from asl.states.effects import ChildWorkflow

__all__ = ["JournaledChildren"]


class JournaledChildren:
    """Records the executions that one starts in the same store (protocol `ChildPersistence`)."""

    def __init__(self, answers: JournaledResults, tasks: JournaledCallbacks) -> None:
        self.journal, self.runtime = answers.journal, answers.runtime
        self.tasks = tasks

    def begin_child(
        self, frame: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Start a child, or find the one that an earlier process started."""
        return self._store.child(self.journal, frame.key, child, find)

    def begin_by_name(
        self, frame: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Start a child once, or find it; None if another execution has its name."""
        return self._store.start_named(self.journal, frame.key, program, child)

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return the part of a child's spending that was counted before it continued."""
        written = self.journal.answers.get(_counted(child))
        return UNSPENT if written is None else read_spent(written)

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Record the counted part of a child's spending."""
        self.journal.put_answer(_counted(child), write_spent(spent))

    def detach(self, prepared: PreparedExecution) -> None:
        """Let a job continue independently of the state that started it."""
        assert prepared.journal is not None  # children of a stored execution are stored
        self._store.detach(self.journal, prepared.journal)

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state, and record it."""
        request = Handover(call.target, job.payload, job.options)
        task = new_callback(call.at, request, TOKEN, job.start)
        task.last_heartbeat = None  # heartbeats of a job are optional
        task = await self.tasks.open_callback(call.at, task)
        with self.tasks.settle(task):
            return await DurableJob(
                DurableCallback(self.tasks, task, job.options), job
            ).wait_for_end(call)

    @property
    def _store(self) -> ChildStore:
        store = self.runtime.current_services().child_store
        assert store is not None  # a stored execution has a store for its children
        return store


def _counted(child: ChildWorkflow) -> str:
    """Return the key of the counted part of a child's spending."""
    return f"!child.{child.name.rpartition('.')[2]}"
