"""Child executions and jobs as values, and the protocol of the store that holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from asl.core.values import Json
from asl.effects.task_tokens import OpenToken
from asl.engine.agent import Call, TaskTokenApi
from asl.engine.execution import ROLE
from asl.engine.journal import Journal
from asl.engine.result import Result
from asl.program import Program
from asl.states.calls import CallOptions
from asl.states.effects import ChildWorkflow
from asl.states.errors import CallbackError

if TYPE_CHECKING:
    from asyncio import Task

__all__ = [
    "ChildStore",
    "Job",
    "JobAnswer",
    "JobEnd",
    "PreparedExecution",
    "StartRequest",
    "await_job",
]


def _nothing() -> None:
    """Do nothing: an execution without a store of its own has no lock."""


class PreparedExecution(NamedTuple):
    """An execution that is ready to run: new, or restored from its journal."""

    program: Program
    data: Json
    started: float | None = None
    """Epoch seconds of its start; None for now."""
    journal: Journal | None = None
    """Its journal; None without a store."""
    result: Result | None = None
    """Its result if it has ended; None to run it."""
    redrives: int = 0
    redriven: float | None = None
    """Number of redrives, and epoch seconds of the latest."""
    leave: Callable[[], object] = _nothing
    """Releases its lock at the end."""
    role: str | None = ROLE
    """Role ARN of its workflow."""


class StartRequest(NamedTuple):
    """An execution that a state starts by name."""

    id: str
    workflow_id: str
    name: str
    data: Json
    express: bool
    awaited: bool
    """Whether the state waits for its end; otherwise it is an execution of its own."""
    requestor: str | None
    """The user who started the root execution."""


class ChildStore(Protocol):
    """Stores the executions that a stored one starts."""

    @property
    def tokens(self) -> TaskTokenApi:
        """Answers the task tokens of all stored executions."""
        ...

    def child(
        self, journal: Journal, key: str, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Start an execution that a state waits for, or find the started one.

        Args:
            journal: Journal of the parent execution.
            key: Key of the effect.
            child: The child workflow.
            find: Returns the program.
        """
        ...

    def start_named(
        self, journal: Journal, key: str, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Start an execution with a name of its own; None if the name is in use."""
        ...

    def detach(self, journal: Journal, child: Journal) -> None:
        """Make a child execution independent of its parent, by their journals."""
        ...


class Job(NamedTuple):
    """An execution that a state has started and waits for."""

    execution: Task[Result]
    payload: Json
    """Request of the state."""
    options: CallOptions | None
    """Limits of the state."""
    start: float
    """Start of the execution in epoch seconds."""


class JobAnswer(NamedTuple):
    """The answer to the token of a state that waits for a job."""

    output: Json
    failure: CallbackError | None = None

    def value(self) -> Json:
        """Return the output.

        Raises:
            CallbackError: The answer is a failure.
        """
        if self.failure is not None:
            raise self.failure
        return self.output


JobEnd: TypeAlias = "Result | JobAnswer"
"""Result of the wait for a job."""


async def await_job(waiting: OpenToken, call: Call, job: Job) -> JobEnd:
    """Return the result of a job, or the answer to the token of its state if that comes first."""
    from asyncio import FIRST_COMPLETED, wait

    with waiting(call) as token:
        await wait({job.execution, token.answer}, return_when=FIRST_COMPLETED)
        if not token.answer.done():
            return job.execution.result()
        try:
            return JobAnswer(token.answer.result())
        except CallbackError as failure:
            return JobAnswer(None, failure)
