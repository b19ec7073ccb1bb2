"""Jobs: executions that a state has started and waits for, unless its own token is answered first.

The answer to the token of a state ends the state; the job then goes on by itself (AWS, API
reference of SendTaskSuccess).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from asl.core.values import Json
from asl.effects.tokens import Waiting
from asl.engine.agent import Call
from asl.engine.result import Result
from asl.states.calls import Options
from asl.states.errors import Reported

if TYPE_CHECKING:
    from asyncio import Task

__all__ = ["Ending", "Job", "JobAnswer", "await_job"]


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


async def await_job(waiting: Waiting, call: Call, job: Job) -> Ending:
    """Return the result of a job, or the answer to the token of its state if that comes first."""
    from asyncio import FIRST_COMPLETED, wait

    with waiting(call) as token:
        await wait({job.execution, token.answer}, return_when=FIRST_COMPLETED)
        if not token.answer.done():
            return job.execution.result()
        try:
            return JobAnswer(token.answer.result())
        except Reported as failure:
            return JobAnswer(None, failure)
