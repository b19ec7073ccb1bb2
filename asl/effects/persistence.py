"""Persistence of an execution besides the results of its effects.

Effects are performed alike with and without a store. Data that has to outlive the process goes to
the `Persistence` of the execution: `TRANSIENT`, or that of a journal (`asl.effects.journaled`). It
has four parts by subject; each can be replaced alone.
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
        """Return whether the history has recorded the current pause."""
        ...

    def keep_spending(self) -> None:
        """Record the spending of the execution."""
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record a new checkpoint."""
        ...

    def abandon_children(self, frame: Frame, now: float) -> None:
        """Close the requests and executions of the children of a failed fork."""
        ...


class CallPersistence(Protocol):
    """Persists the state of a call, with its answer or when it is paused."""

    async def record_admission(self, frame: Frame) -> None:
        """Record an admitted call with its reservation, before it starts."""
        ...

    def begin_attempt(self, call: Call, options: CallOptions) -> None:
        """Set the start of an attempt, possibly from an earlier process.

        Raises:
            StateError: States.Timeout; its time is over.
        """
        ...

    def record_usage(self, frame: Frame, used: Amounts, assumed: bool = False) -> None:
        """Record the usage of a call; *assumed*: whether a part of it is."""
        ...

    def record_progress(self, frame: Frame) -> None:
        """Record the progress of a call."""
        ...

    def record_unshown_text(self, frame: Frame, said: str | None) -> None:
        """Record streamed text that may not be shown yet."""
        ...

    def recorded_value(self, key: str) -> Json:
        """Return the value recorded within the current effect, None without one."""
        ...

    def recorded_values(self, key: str) -> Mapping[str, Json]:
        """Return the values recorded within the effect of a key, by the rest of their keys."""
        ...

    async def record(self, frame: Frame, key: str, value: Json) -> None:
        """Record a value durably within the current effect."""
        ...

    def begin_turn(self, frame: Frame, key: str) -> Mapping[str, int]:
        """Return the number of recorded events of a turn, by subject.

        Args:
            frame: The machine of the agent.
            key: Key of its effect.
        """
        ...

    def pause_turn(self, frame: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Record the events of a paused turn, which may differ when the agent runs again."""
        ...


class ConsentProcess(Protocol):
    """A request for consent to a tool call, until its decision."""

    @property
    def time(self) -> float:
        """Epoch seconds of the latest event."""
        ...

    async def begin(self) -> None:
        """Record the request and send its notification."""
        ...

    async def catch_up(self, now: float) -> Notice | None:
        """Apply the notices that are due; return the one that ends the wait, None if it is not
        due.
        """
        ...

    async def decision(self) -> Json:
        """Return the decision.

        Raises:
            Suspension: There is none yet.
            StateError: The decision fails the call.
        """
        ...

    async def recorded_decision(self, answer: Json) -> Json:
        """Return a recorded decision.

        Raises:
            StateError: The recorded decision failed the call.
        """
        ...


class RequestPersistence(Protocol):
    """Persists approval requests."""

    def record_notices(self, request: ApprovalRequest) -> None:
        """Record the notices that were sent, and which of them failed."""
        ...

    def recorded_decision(self, request: ApprovalRequest) -> Json:
        """Return the decision recorded by another process and mark it as used; None without one."""
        ...

    async def decide(
        self,
        frame: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Return the decision on a request of the whole execution, requested once.

        Args:
            frame: The machine whose call needs it.
            key: Key of the request within the execution.
            ask: Brings a request to its decision.
            new: Returns a new request.
        """
        ...

    async def awaits_consent(
        self, key: str, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> bool:
        """Return whether a turn was paused and has no decision since.

        Args:
            key: Key of its effect.
            new_process: Returns the approval process of a request.
        """
        ...

    def requests_of(self, key: str) -> Mapping[str, ApprovalRequest]:
        """Return the requests of the turn of a key, by the rest of their keys."""
        ...

    async def consent(
        self, request: ApprovalRequest, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Return the decision on a tool call, requested once."""
        ...

    def withdraw(self, within: str, now: float) -> None:
        """Close the requests whose keys begin with *within*, because nothing depends on them."""
        ...


class ChildPersistence(Protocol):
    """Persists the executions that this one starts."""

    def begin_child(
        self, frame: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Start an execution of the workflow that *find* returns, or find the started one."""
        ...

    def begin_by_name(
        self, frame: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Start an execution with a name of its own; None if the name is in use."""
        ...

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return the part of a child's spending that was counted before it continued."""
        ...

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Record the counted part of a child's spending."""
        ...

    def detach(self, prepared: PreparedExecution) -> None:
        """Let an execution continue independently of the state that started it."""
        ...

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state.

        Args:
            waiting: Opens the token of a call.
            call: The call that started the job.
            job: The job.
        """
        ...


class Persistence(NamedTuple):
    """The persistence of one execution, from which another process can recover it."""

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

    def abandon_children(self, frame: Frame, now: float) -> None:
        """Do nothing."""


class TransientCalls:
    """Persists nothing of calls (protocol `CallPersistence`)."""

    async def record_admission(self, frame: Frame) -> None:
        """Do nothing."""

    def begin_attempt(self, call: Call, options: CallOptions) -> None:
        """Do nothing: the attempt starts now."""

    def record_usage(self, frame: Frame, used: Amounts, assumed: bool = False) -> None:
        """Do nothing."""

    def record_progress(self, frame: Frame) -> None:
        """Do nothing."""

    def record_unshown_text(self, frame: Frame, said: str | None) -> None:
        """Do nothing."""

    def recorded_value(self, key: str) -> Json:
        """Return None: nothing was recorded."""
        return None

    def recorded_values(self, key: str) -> Mapping[str, Json]:
        """Return nothing: nothing was recorded."""
        return {}

    async def record(self, frame: Frame, key: str, value: Json) -> None:
        """Do nothing."""

    def begin_turn(self, frame: Frame, key: str) -> Mapping[str, int]:
        """Return nothing: the turn was never paused."""
        return {}

    def pause_turn(self, frame: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Do nothing."""


class TransientRequests:
    """Persists no requests (protocol `RequestPersistence`)."""

    def record_notices(self, request: ApprovalRequest) -> None:
        """Do nothing."""

    def recorded_decision(self, request: ApprovalRequest) -> Json:
        """Return None: no other process decides."""
        return None

    async def decide(
        self,
        frame: Frame,
        key: str,
        ask: Callable[[ApprovalRequest], Awaitable[Json]],
        new: Callable[[], ApprovalRequest],
    ) -> Json:
        """Request a decision."""
        return await ask(new())

    async def awaits_consent(
        self, key: str, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> bool:
        """Return False: the turn was never paused."""
        return False

    def requests_of(self, key: str) -> Mapping[str, ApprovalRequest]:
        """Return nothing: the turn was never paused."""
        return {}

    async def consent(
        self, request: ApprovalRequest, new_process: Callable[[ApprovalRequest], ConsentProcess]
    ) -> Json:
        """Request a decision."""
        return await new_process(request).decision()

    def withdraw(self, within: str, now: float) -> None:
        """Do nothing."""


class TransientChildren:
    """Persists no child executions (protocol `ChildPersistence`)."""

    def begin_child(
        self, frame: Frame, child: ChildWorkflow, find: Callable[[], Program]
    ) -> PreparedExecution:
        """Start an execution of the workflow that *find* returns."""
        return PreparedExecution(find(), child.data)

    def begin_by_name(
        self, frame: Frame, program: Program, child: StartRequest
    ) -> PreparedExecution | None:
        """Start an execution with a name of its own."""
        return PreparedExecution(program, child.data)

    def counted_spending(self, child: ChildWorkflow) -> ExecutionSpending:
        """Return nothing: each child starts here."""
        return UNSPENT

    def record_counted(self, child: ChildWorkflow, spent: ExecutionSpending) -> None:
        """Do nothing."""

    def detach(self, prepared: PreparedExecution) -> None:
        """Do nothing: without a store no child outlives its parent."""

    async def await_job(self, waiting: OpenToken, call: Call, job: Job) -> JobEnd:
        """Return the result of a job, or the answer to the token of its state."""
        return await await_job(waiting, call, job)


TRANSIENT = Persistence(
    False, TransientExecution(), TransientCalls(), TransientRequests(), TransientChildren()
)
"""The persistence of an execution without a store."""
