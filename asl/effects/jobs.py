"""Jobs: executions that a state has started and waits for, unless its own token is answered first.

The answer to the token of a state ends the state; the job then goes on by itself (AWS, API
reference of SendTaskSuccess).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from asl.core.values import Json
from asl.effects.journaled_tasks import KeptTask
from asl.effects.runtime import RuntimeContext
from asl.effects.tokens import Wait
from asl.engine.agent import Call
from asl.engine.awaited import Awaited
from asl.engine.result import Result
from asl.states.calls import Options
from asl.states.errors import Reported, Suspended

if TYPE_CHECKING:
    from asyncio import Task

    from asl.effects.journal_keeping import JournalKeeping

__all__ = ["Ending", "Job", "JobAnswer", "KeptJob", "await_job"]


class Job(NamedTuple):
    """An execution that a state has started and waits for."""

    execution: Task[Result]
    payload: Json
    """What the state has asked for."""
    options: Options | None
    """The limits of the state."""
    began: float
    """When the execution was started, in epoch seconds."""


class JobAnswer(NamedTuple):
    """The answer to the token of a state that waits for a job."""

    output: Json
    failure: Reported | None = None

    def value(self) -> Json:
        """Return the output; raises the failure that was reported."""
        if self.failure is not None:
            raise self.failure
        return self.output


Ending: TypeAlias = "Result | JobAnswer"
"""How the wait for a job ends."""


async def await_job(runtime: RuntimeContext, call: Call, job: Job) -> Ending:
    """Return the result of a job, or the answer to the token of its state if that comes first."""
    from asyncio import FIRST_COMPLETED, wait

    with runtime.serving().desk.waiting(call, runtime.clock) as token:
        await wait({job.execution, token.answer}, return_when=FIRST_COMPLETED)
        if not token.answer.done():
            return job.execution.result()
        try:
            return JobAnswer(token.answer.result())
        except Reported as failure:
            return JobAnswer(None, failure)


class KeptJob(KeptTask):
    """The same for an execution in a journal: any process may answer, while nobody runs, too."""

    def __init__(self, keeping: JournalKeeping, task: Awaited, job: Job) -> None:
        super().__init__(keeping, task, job.options)
        self.execution = job.execution

    async def ending(self, call: Call) -> Ending:
        """Return the result of the job, or the answer; raises what ends the state in their place.

        A job that waits lets its state wait, too: both leave the process.
        """
        runtime, task, execution = self.kept_by.runtime, self.task, self.execution
        with runtime.serving().desk.waiting(call, runtime.clock, self) as token:
            token.beat = _keep_time
            await self._either(token)
        if execution.done():
            result = execution.result()
            if task.outcome is None or task.outcome[0] > result.ended:
                if result.status == "PAUSED":
                    runtime.awaited += ((task.key, task),)
                elif task.outcome is None:
                    task.status = "closed"
                return result
        try:
            return JobAnswer(task.answer())
        except Reported as failure:
            return JobAnswer(None, failure)

    async def _either(self, token: Wait) -> None:
        """Return when the job has ended or waits, or the answer has come."""
        from asyncio import wait

        runtime, task, execution = self.kept_by.runtime, self.task, self.execution
        while not (token.answer.done() or self.has_come() or execution.done()):
            parking = runtime.serving().parking
            if parking is None:
                await self.until_something(token.answer, execution)
                continue
            try:
                await parking.wait(task.token, task.due, token.answer, execution)
            except Suspended:  # and so is the job
                await wait({execution})


def _keep_time() -> None:
    """Do nothing: a kept task counts the time since a sign of life by itself."""
