"""What a journal keeps of the executions that one starts."""

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
    """Keeps what an execution starts in the store of its journal (protocol `ChildKeeping`)."""

    def __init__(self, answers: JournaledResults, tasks: JournaledCallbacks) -> None:
        self.journal, self.runtime = answers.journal, answers.runtime
        self.tasks = tasks

    def begin_child(
        self, at: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Begin it, or find it where an earlier process has begun it."""
        return self._store.child(self.journal, at.key, child, find)

    def begin_by_name(
        self, at: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Begin it once, or find it; None where another execution has its name."""
        return self._store.started(self.journal, at.key, program, child)

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return what of a child's spending was counted before it went on."""
        written = self.journal.answers.get(_counted(child))
        return UNSPENT if written is None else read_spent(written)

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Keep what of a child's spending is counted."""
        self.journal.put_answer(_counted(child), write_spent(spent))

    def detach(self, begun: PreparedExecution) -> None:
        """Let a job go on by itself: the state that has started it has ended without it."""
        assert begun.journal is not None  # where this one is kept, so is what it starts
        self._store.detach(self.journal, begun.journal)

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state, once and for all."""
        request = Handover(call.target, job.payload, job.options)
        task = new_callback(call.at, request, TOKEN, job.began)
        task.beat = None  # a job need not give signs of life, but may
        task = await self.tasks.opened(call.at, task)
        with self.tasks.settling(task):
            return await DurableJob(DurableCallback(self.tasks, task, job.options), job).ending(
                call
            )

    @property
    def _store(self) -> ChildStore:
        store = self.runtime.serving().child_store
        assert store is not None  # a stored execution has a store for its children
        return store


def _counted(child: ChildWorkflow) -> str:
    """Return the key under which it is kept what of a child's spending is counted."""
    return f"!child.{child.name.rpartition('.')[2]}"
