"""The journal: the stored content of an execution, as plain JSON.

An execution is a tree of machines. Each machine has at most one *position* (its state at the start
of a visit) and the *answers* of the effects since then. Recovery runs a machine from its position
again: pure states are computed again, an effect with an answer is not performed a second time
(docs/notes/durability.md). Each history record is written once.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from asl.core.values import Json
from asl.engine.checkpoints import Checkpoint
from asl.engine.pending_callback import PendingCallback
from asl.engine.record_reader import RecordReader
from asl.engine.result import Result
from asl.program import Program
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import Record

__all__ = ["STARTED", "Journal"]

STARTED = "!"
"""Suffix of an effect's key; the entry under it has the started execution and the time of its
start."""


class Journal(Protocol):
    """The journal of one execution. Entries are durable once `commit` has returned."""

    positions: dict[str, Json]
    """Positions found at recovery, by path of the machine."""
    answers: dict[str, Json]
    """Answers found at recovery, by key of the effect."""
    recorded: dict[str, int]
    """Number of records written for each machine, by its path."""
    child_starts: dict[str, Json]
    """Start of each child, and the usage by then, by its path."""
    redrive_counts: dict[str, tuple[int, float | None]]
    """Number and time of redrives at the run of each child that ended in a single stretch, by its
    path."""

    requests: dict[str, ApprovalRequest]
    """Approval requests found at recovery, by key of the effect."""
    tasks: dict[str, PendingCallback]
    """Callbacks found at recovery, by key of the effect."""

    running_locks: set[int]
    """The executions that may write in the same transaction."""
    on_fail_point: Callable[[str], object]
    """Called at named points, for tests that kill the process there."""
    commit_soon: Callable[[], object]
    """Makes all entries durable by the end of this turn of the event loop."""
    checkpoint_names: list[tuple[str, str]]
    """Ids and names of the checkpoints found at recovery."""
    paused: bool
    """Whether the execution was paused when it was loaded."""

    @property
    def uncommitted_bytes(self) -> int:
        """Size in bytes of the entries that wait for the next commit."""
        ...

    def damage_reports(self) -> AbstractContextManager[None]:
        """Return a context that reports content of an unexpected shape as damage of the store."""
        ...

    def records_of(self, reader: RecordReader) -> Iterable[Record]:
        """Return the records found at recovery, in order.

        Args:
            reader: Decodes the records.
        """
        ...

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has used.

        Args:
            document: Hash of the document.
        """
        ...

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Store the position of a machine in place of its earlier position and answers.

        Args:
            path: Path of the machine.
            position: The position.
            kept: Prefix of the keys of entries below the machine that remain; None for none.

        Returns:
            The size of the position in bytes.
        """
        ...

    def put_final_position(self, position: Json, kept: str) -> None:
        """Store the position of the top machine at the end of an execution that has not
        succeeded.
        """
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint."""
        ...

    def put_answer(self, key: str, answer: Json) -> int:
        """Store an answer and return its size in bytes."""
        ...

    @property
    def latest(self) -> tuple[int, int] | None:
        """The identity of the latest answer, None once it is written."""
        ...

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return the reference by which a record stores the value of an answer; None once it is
        written.
        """
        ...

    def put_request(self, request: ApprovalRequest, received: bool = False) -> None:
        """Store a new request, or the new status of an open one.

        Args:
            request: The request.
            received: Whether to store its answers, too.
        """
        ...

    def cut_off(self, within: str, now: float) -> None:
        """Close the requests and child executions of machines whose paths begin with *within*."""
        ...

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Store the status and the output or error of the execution."""
        ...

    def take_answer(self, id: str) -> bool:
        """Mark the answer to a request as used.

        Returns:
            Whether it is a decision of an approver that the journal has not recorded yet.
        """
        ...

    def drop_request(self, request: ApprovalRequest) -> None:
        """Delete a request and its answer."""
        ...

    def decision(self, request: ApprovalRequest) -> Json:
        """Return the recorded decision on a request, None without one."""
        ...

    def put_task(self, task: PendingCallback) -> None:
        """Store a new callback."""
        ...

    def put_heartbeat(self, task: PendingCallback) -> None:
        """Store that a worker has taken a task, or its latest heartbeat."""
        ...

    def put_outcome(self, task: PendingCallback) -> None:
        """Store the outcome of an open task."""
        ...

    def read_callback(self, task: PendingCallback) -> None:
        """Read the answers and heartbeats that arrived for a task."""
        ...

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        ...

    def put_last_record(self, path: str, record: Json) -> int:
        """Append the final record of a child and return its size in bytes."""
        ...

    def put_filled(self, path: str, values: Json) -> None:
        """Store the computed parameters of an included document."""
        ...

    spending: Json
    """Spending of the execution at recovery, None for none."""

    def put_spending(self, spending: Json) -> None:
        """Store the spending of the execution."""
        ...

    def put_result(self, result: Result, until: float | None = None) -> None:
        """Store the result of an execution that has ended or is paused.

        Args:
            result: The result.
            until: Epoch second at which a paused execution has to continue at the latest; None for
                no such time.
        """
        ...

    def show(self, chunk: Json) -> None:
        """Publish a piece of streamed output to followers of the execution, before it is
        recorded.
        """
        ...

    def is_cancelled(self) -> bool:
        """Return whether another process has cancelled the execution."""
        ...

    watched: int | None
    """Number of the execution whose cancellation ends this one, None for none."""

    def flush(self) -> None:
        """Make all entries durable before returning.

        Raises:
            Cancelled: The execution is to end.
        """
        ...

    def commit(self, together: bool) -> Awaitable[None]:
        """Return an awaitable that is done when all entries are durable.

        Args:
            together: Whether to commit with other executions at the end of this turn of the event
                loop.

        Raises:
            Cancelled: The execution is to end.
        """
        ...
