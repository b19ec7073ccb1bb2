"""What an execution persists besides the results of its effects, and restores after a crash.

Effects are performed alike with and without a store. What has to outlive the process goes to the
`Persistence` of the execution: `TRANSIENT`, or that of a journal
(`asl.effects.journaled`). It has four parts, by what they keep; each can be replaced alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from asl.core.values import Json
from asl.effects.child_execution import Job, JobEnd, PreparedExecution, StartRequest, await_job
from asl.effects.task_tokens import OpenToken
from asl.engine.agent import Call
from asl.engine.checkpoints import Checkpoint
from asl.engine.frame import Frame
from asl.engine.ledger import Ledger
from asl.engine.usage import UNSPENT, ExecutionSpending
from asl.program import Program
from asl.states.approval_notices import Notice
from asl.states.approval_request import ApprovalRequest
from asl.states.blocks.budget_limits import Amounts
from asl.states.calls import CallOptions
from asl.states.effects import ChildWorkflow

__all__ = [
    "TRANSIENT",
    "CallPersistence",
    "ChildPersistence",
    "ConsentProcess",
    "ExecutionPersistence",
    "Persistence",
    "RequestPersistence",
    "TransientCalls",
    "TransientChildren",
    "TransientExecution",
    "TransientRequests",
]


class ExecutionPersistence(Protocol):
    """Persists the positions of machines and the spending of an execution."""

    def enter_event_loop(self) -> None:
        """Handle the start of the event loop."""
        ...

    def close(self) -> None:
        """Release timers when the execution ends in this process."""
        ...

    def restore_ledger(self, ledger: Ledger) -> None:
        """Restore the ledger of an earlier process."""
        ...

    def record_position(self, frame: Frame, failed: bool) -> None:
        """Record the position of the top machine when the execution fails or times out."""
        ...

    def is_paused(self) -> bool:
        """Whether the history says already that the execution is paused."""
        ...

    def keep_spending(self) -> None:
        """Record the spending of the execution."""
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record a new checkpoint."""
        ...

    def abandon_children(self, at: Frame, now: float) -> None:
        """Close the requests and executions of the children of a failed fork."""
        ...


class CallPersistence(Protocol):
    """Persists the state of a call, with its answer or when it is paused."""

    async def record_admission(self, at: Frame) -> None:
        """Record that a call is about to be made, with its reservation."""
        ...

    def begin_attempt(self, call: Call, options: CallOptions) -> None:
        """Set when an attempt began, which may have been in an earlier process.

        Raises:
            StateError: States.Timeout, if its time is over.
        """
        ...

    def record_usage(self, at: Frame, used: Amounts) -> None:
        """Record the usage of a call."""
        ...

    def record_progress(self, at: Frame) -> None:
        """Record the progress of a call."""
        ...

    def record_unshown_text(self, at: Frame, said: str | None) -> None:
        """Record streamed text that may not be shown yet."""
        ...

    def recorded_value(self, key: str) -> Json:
        """Return what was recorded within the effect under way, None for nothing."""
        ...

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Record something within the effect under way, durably."""
        ...

    def begin_turn(self, at: Frame, key: str) -> Mapping[str, int]:
        """Return how many events of a turn the history has, by what they are about.

        Args:
            at: The machine whose agent takes the turn.
            key: The key of its effect.
        """
        ...

    def pause_turn(self, at: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Keep the events of a turn that is paused: its agent may do something else next time."""
        ...


class ConsentProcess(Protocol):
    """A request for consent to a tool call, until it has a decision."""

    @property
    def time(self) -> float:
        """Epoch seconds of the latest event."""
        ...

    async def begin(self) -> None:
        """Say that the request was made."""
        ...

    async def catch_up(self, now: float) -> Notice | None:
        """Let happen what is due; returns the notice that ends the waiting, if it is."""
        ...

    async def decision(self) -> Json:
        """Return the decision; raises Suspension while there is none, StateError where it fails."""
        ...

    async def repeated(self, answer: Json) -> Json:
        """Return a decision that was given before; raises StateError for one that failed."""
        ...


class RequestPersistence(Protocol):
    """Persists approval requests."""

    def record_notices(self, asked: ApprovalRequest) -> None:
        """Record the notices that were sent, and which of them failed."""
        ...

    def recorded_decision(self, asked: ApprovalRequest) -> Json:
        """Take up the decision that people have recorded elsewhere, None without one."""
        ...

    async def decide(
        self,
        at: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Return the decision on a request about the whole execution, asked for once.

        Args:
            at: The machine whose call needs it.
            key: Names the request among those of the execution.
            ask: Brings a request to its decision.
            new: Returns a new request.
        """
        ...

    async def awaits_consent(
        self, key: str, asking: Callable[[ApprovalRequest], ConsentProcess]
    ) -> bool:
        """Whether the turn of this key was paused, and people have not decided since.

        Args:
            key: The key of its effect.
            asking: Brings a request to its decision.
        """
        ...

    async def consent(
        self, asked: ApprovalRequest, asking: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Return people's consent to a tool call, asked for once."""
        ...

    def withdraw(self, within: str, now: float) -> None:
        """Close the requests whose keys begin so: nothing depends on them any more."""
        ...


class ChildPersistence(Protocol):
    """Persists the executions that this one starts."""

    def begin_child(
        self, at: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Begin an execution of the workflow that *find* gives, or find it begun."""
        ...

    def begin_by_name(
        self, at: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Do it for one that goes by a name of its own; None where another one has that."""
        ...

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return what of a child's spending was counted before it went on."""
        ...

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Keep what of a child's spending is counted."""
        ...

    def detach(self, begun: PreparedExecution) -> None:
        """Let an execution go on by itself: the state that has started it has ended without it."""
        ...

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state.

        Args:
            waiting: Opens the token of a call at the desk of the run.
            call: The call that has started the job.
            job: The job.
        """
        ...


class Persistence(NamedTuple):
    """The persistence of one execution, by which another process can recover it."""

    durable: bool
    """Whether anything is persisted."""
    execution: ExecutionPersistence
    calls: CallPersistence
    requests: RequestPersistence
    children: ChildPersistence


class TransientExecution:
    """Persists nothing: the execution ends with its process (protocol `ExecutionPersistence`)."""

    def enter_event_loop(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def restore_ledger(self, ledger: Ledger) -> None:
        """Do nothing."""

    def record_position(self, frame: Frame, failed: bool) -> None:
        """Do nothing."""

    def is_paused(self) -> bool:
        """Return False: every pause is recorded."""
        return False

    def keep_spending(self) -> None:
        """Do nothing."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Do nothing."""

    def abandon_children(self, at: Frame, now: float) -> None:
        """Do nothing."""


class TransientCalls:
    """Persists nothing of calls (protocol `CallPersistence`)."""

    async def record_admission(self, at: Frame) -> None:
        """Do nothing."""

    def begin_attempt(self, call: Call, options: CallOptions) -> None:
        """Do nothing: it begins now."""

    def record_usage(self, at: Frame, used: Amounts) -> None:
        """Do nothing."""

    def record_progress(self, at: Frame) -> None:
        """Do nothing."""

    def record_unshown_text(self, at: Frame, said: str | None) -> None:
        """Do nothing."""

    def recorded_value(self, key: str) -> Json:
        """Return None: nothing was recorded."""
        return None

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Do nothing."""

    def begin_turn(self, at: Frame, key: str) -> Mapping[str, int]:
        """Return nothing: the turn was never paused."""
        return {}

    def pause_turn(self, at: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Do nothing."""


class TransientRequests:
    """Persists no requests (protocol `RequestPersistence`)."""

    def record_notices(self, asked: ApprovalRequest) -> None:
        """Do nothing."""

    def recorded_decision(self, asked: ApprovalRequest) -> Json:
        """Return None: no other process decides."""
        return None

    async def decide(
        self,
        at: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Ask."""
        return await ask(new())

    async def awaits_consent(
        self, key: str, asking: Callable[[ApprovalRequest], ConsentProcess]
    ) -> bool:
        """Return False: the turn was never paused."""
        return False

    async def consent(
        self, asked: ApprovalRequest, asking: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Ask."""
        return await asking(asked).decision()

    def withdraw(self, within: str, now: float) -> None:
        """Do nothing."""


class TransientChildren:
    """Persists no child executions (protocol `ChildPersistence`)."""

    def begin_child(
        self, at: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Begin an execution of the workflow that *find* gives."""
        return PreparedExecution(find(), child.data)

    def begin_by_name(
        self, at: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Begin an execution that goes by a name of its own."""
        return PreparedExecution(program, child.data)

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return nothing: each child begins here."""
        return UNSPENT

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Do nothing."""

    def detach(self, begun: PreparedExecution) -> None:
        """Do nothing: here nothing outlives the execution that has started it."""

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state."""
        return await await_job(waiting, call, job)


TRANSIENT = Persistence(
    False, TransientExecution(), TransientCalls(), TransientRequests(), TransientChildren()
)
"""The persistence of an execution without a store."""
