"""The journal: what is kept of an execution so that it survives, as plain JSON.

An execution is a tree of machines. Each machine has at most one *position* (where it stood when a
state began) and the *answers* of the effects since then. Recovery runs a machine from its position
again: pure states are computed anew, an effect with an answer is not performed a second time
(design of durability: docs/notes/durability.md). Records of the history are written once each.
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
"""Ends the key of an effect under which stands which execution it has started, and when."""


class Journal(Protocol):
    """Where one execution is kept. What is put is durable once `commit` has returned."""

    positions: dict[str, Json]
    """Positions found at recovery, by the path of the machine."""
    answers: dict[str, Json]
    """Answers found at recovery, by the key of the effect."""
    recorded: dict[str, int]
    """How many records each machine had written before, by its path."""
    child_starts: dict[str, Json]
    """When each child began, and what had been spent by then, by its path."""
    redrive_counts: dict[str, tuple[int, float | None]]
    """How often the execution had been redriven, and when, as each child ran that ended in a single
    stretch, by its path."""

    requests: dict[str, ApprovalRequest]
    """Requests found at recovery, by the key of the effect."""
    tasks: dict[str, PendingCallback]
    """The same of those that are answered by task token."""

    at_work: set[int]
    """Stands for the executions that may put something into the same transaction."""
    reached: Callable[[str], object]
    """Called at named instants, for tests that end the process there."""
    commit_soon: Callable[[], object]
    """Makes all that was put durable by the end of this turn of the event loop."""
    checkpoint_names: list[tuple[str, str]]
    """Ids and names of the checkpoints found at recovery."""
    paused: bool
    """Whether the execution was paused when it was found."""

    @property
    def uncommitted_bytes(self) -> int:
        """The bytes that were put and wait for the next commit."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Return a context that reports content of an unexpected shape as damage of the store."""
        ...

    def records_of(self, reader: RecordReader) -> Iterable[Record]:
        """Return the records that were found at recovery, in order; *reader* reads them."""
        ...

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has had, by its hash."""
        ...

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Keep where a machine stands, instead of its earlier position and its answers.

        Of what is below it, that stays whose key begins with *kept*. Returns the size of the
        position in bytes.
        """
        ...

    def put_final_position(self, position: Json, kept: str) -> None:
        """Say where the top machine stands at the end, if the execution has not succeeded."""
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        ...

    def put_answer(self, key: str, answer: Json) -> int:
        """Keep an answer; returns its size in bytes."""
        ...

    @property
    def latest(self) -> tuple[int, int] | None:
        """Stands for the answer that was put last, None once it is written."""
        ...

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return what stands in a record for the value of an answer, None once that is written."""
        ...

    def put_request(self, asked: ApprovalRequest, received: bool = False) -> None:
        """Keep a request, or what became of an open one; with *received* its answers, too."""
        ...

    def cut_off(self, within: str, now: float) -> None:
        """Give up the machines whose paths begin so: what they ask, what they have started."""
        ...

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Keep what the execution came to."""
        ...

    def take_answer(self, id: str) -> bool:
        """Say that the answer to a request has been gone on with.

        Whether it is a decision of people that has to be put into the journal yet.
        """
        ...

    def drop_request(self, asked: ApprovalRequest) -> None:
        """Forget a request and its answer."""
        ...

    def decision(self, asked: ApprovalRequest) -> Json:
        """Return the recorded decision on a request, None while there is none."""
        ...

    def put_task(self, task: PendingCallback) -> None:
        """Keep a new request that is answered by its token."""
        ...

    def put_heartbeat(self, task: PendingCallback) -> None:
        """Keep that somebody has taken a task, or is at work on it."""
        ...

    def put_outcome(self, task: PendingCallback) -> None:
        """Keep what became of a task that was open."""
        ...

    def read_callback(self, task: PendingCallback) -> None:
        """Read what others have said of a task meanwhile."""
        ...

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        ...

    def put_last_record(self, path: str, record: Json) -> int:
        """Append that of a child which says what it came to; returns its size in bytes."""
        ...

    def put_filled(self, path: str, values: Json) -> None:
        """Keep what the data has filled in, in the machine of an included document."""
        ...

    spending: Json
    """What the execution had spent at recovery, None for nothing."""

    def put_spending(self, spending: Json) -> None:
        """Keep what the execution has spent."""
        ...

    def put_result(self, result: Result, until: float | None = None) -> None:
        """Keep what the execution came to, or that it waits: *until* something happens, at most."""
        ...

    def show(self, chunk: Json) -> None:
        """Show what an agent says to those who follow the execution, before it is recorded."""
        ...

    def is_cancelled(self) -> bool:
        """Whether another process has asked for the end of the execution."""
        ...

    watched: int | None
    """Stands for the execution whose cancellation ends this one, None for none."""

    def flush(self) -> None:
        """Make all that was put durable at once; raises ExecutionCancellation."""
        ...

    def commit(self, together: bool) -> Awaitable[None]:
        """Return what is done when all that was put is durable.

        *together* with what others put in this turn of the event loop, otherwise at once.
        Raises ExecutionCancellation for an execution that is to end.
        """
        ...
