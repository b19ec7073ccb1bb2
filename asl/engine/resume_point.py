"""The point from which an execution resumes: a result in memory and its checkpoint."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from asl.core.values import Json
from asl.engine.checkpoints import (
    Checkpoint,
    NotResumable,
    definition_hash,
    require_compatible,
    select_checkpoint,
)
from asl.engine.events import ENDINGS, RESUMED
from asl.engine.frame import Frame
from asl.engine.journal_values import read_spending, write_spending
from asl.engine.records import WHOLE
from asl.engine.result import Result
from asl.program import Program

__all__ = [
    "ResumePoint",
    "checkpoint_position",
    "find_resume_point",
    "require_resumable",
    "resumption_details",
]

RESUMABLE = ("FAILED", "TIMED_OUT", "ABORTED")


class ResumePoint(NamedTuple):
    """A finished execution and the checkpoint to resume from."""

    result: Result
    checkpoint: Checkpoint
    time: float
    """Time of the resumption in epoch seconds."""

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """The checkpoints saved before."""
        return self.result.checkpoints

    @property
    def ledger(self) -> Json:
        """The ledger of its budgets (`Ledger.written`), None without one."""
        ledger = self.result.execution.ledger
        return None if ledger is None else ledger.to_json()

    def resume(self, frame: Frame, history: list[Any]) -> None:
        """Restore a top machine, and put the earlier records into its flat history."""
        result, execution = self.result, frame.execution
        read_spending(write_spending(result.execution), execution)
        visit = 0
        for record in result.records:
            history += record
            if record[2].parent is None:
                visit = max(visit, record[3] + 1)
        details = resumption_details(self.checkpoint, execution.redrives)
        ending = ENDINGS[result.status]
        history += (WHOLE, result.ended, frame, 0, None, ending, result.end_details())
        history += (WHOLE, self.time, frame, 0, None, RESUMED, details)
        frame.restore(checkpoint_position(self.checkpoint, visit, self.time))


def find_resume_point(
    result: Result, name: str, program: Program, time: float, force: bool
) -> ResumePoint:
    """Return the resume point at a checkpoint of *result*.

    Args:
        result: Result of the execution.
        name: Id or name of the checkpoint.
        program: Program to continue with.
        time: Current time in epoch seconds.
        force: Whether a changed document is accepted.

    Raises:
        CheckpointRefused: The execution cannot be resumed there.
    """
    require_resumable(result.name, result.status)
    checkpoint = select_checkpoint(result.checkpoints, name)
    definition = definition_hash(program.document)
    require_compatible(checkpoint, time, definition, program.machine.steps, force)
    return ResumePoint(result, checkpoint, time)


def require_resumable(name: str, status: str) -> None:
    """Check that an execution with this status can be resumed.

    Raises:
        NotResumable: It cannot.
    """
    if status not in RESUMABLE:
        raise NotResumable(
            f"the execution {name!r} is {status}: one that failed, timed out or was aborted can be "
            "resumed from a checkpoint"
        )


def resumption_details(checkpoint: Checkpoint, redrives: int) -> dict[str, Json]:
    """Return the details of the event of a resumption from a checkpoint."""
    named = {"name": checkpoint.name, "id": checkpoint.id}
    return {"checkpoint": named, "redriveCount": redrives}


def checkpoint_position(checkpoint: Checkpoint, visit: int, time: float) -> dict[str, Json]:
    """Return the position (`Frame.restore`) of a top machine at a checkpoint."""
    return {
        "state": checkpoint.next,
        "visit": visit,
        "data": checkpoint.data,
        "variables": dict(checkpoint.variables),
        "now": time,
        "checkpoint": {"Name": checkpoint.name, "Id": checkpoint.id},
    }
