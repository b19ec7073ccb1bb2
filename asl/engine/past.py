"""What an execution goes on from when it is resumed from a checkpoint in the same process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from asl.core.values import Json
from asl.engine.checkpoints import (
    Checkpoint,
    NotResumable,
    chosen,
    definition_hash,
    refuse_unfit,
)
from asl.engine.events import ENDINGS, RESUMED
from asl.engine.frame import Frame
from asl.engine.records import WHOLE
from asl.engine.result import Result
from asl.engine.written import read_spending, written_spending
from asl.program import Program

__all__ = ["Past", "at_checkpoint", "past_of", "refuse_status", "resumption"]

RESUMABLE = ("FAILED", "TIMED_OUT", "ABORTED")


class Past(NamedTuple):
    """An execution that has ended, and the checkpoint from which it goes on."""

    result: Result
    checkpoint: Checkpoint
    time: float
    """When it goes on, in epoch seconds."""

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """What it has saved before."""
        return self.result.checkpoints

    @property
    def ledger(self) -> Json:
        """What its budgets had come to (`Ledger.written`), None where it has none."""
        ledger = self.result.execution.ledger
        return None if ledger is None else ledger.written()

    def resume(self, frame: Frame, history: list[Any]) -> None:
        """Put a top machine where it goes on, and what was before into its flat history."""
        result, execution = self.result, frame.execution
        read_spending(written_spending(result.execution), execution)
        visit = 0
        for record in result.records:
            history += record
            if record[2].parent is None:
                visit = max(visit, record[3] + 1)
        details = resumption(self.checkpoint, execution.redrives)
        ending = ENDINGS[result.status]
        history += (WHOLE, result.ended, frame, 0, None, ending, result.end_details())
        history += (WHOLE, self.time, frame, 0, None, RESUMED, details)
        frame.restore(at_checkpoint(self.checkpoint, visit, self.time))


def past_of(result: Result, name: str, program: Program, time: float, force: bool) -> Past:
    """Return the past of an execution that goes on from a checkpoint of *result* with *program*.

    Raises CheckpointRefused where it cannot.
    """
    refuse_status(result.name, result.status)
    checkpoint = chosen(result.checkpoints, name)
    definition = definition_hash(program.document)
    refuse_unfit(checkpoint, time, definition, program.machine.steps, force)
    return Past(result, checkpoint, time)


def refuse_status(name: str, status: str) -> None:
    """Refuse to resume an execution from a checkpoint that did not end without success."""
    if status not in RESUMABLE:
        raise NotResumable(
            f"the execution {name!r} is {status}: one that failed, timed out or was aborted can be "
            "resumed from a checkpoint"
        )


def resumption(checkpoint: Checkpoint, redrives: int) -> dict[str, Json]:
    """Return what the history tells of going on from a checkpoint."""
    named = {"name": checkpoint.name, "id": checkpoint.id}
    return {"checkpoint": named, "redriveCount": redrives}


def at_checkpoint(checkpoint: Checkpoint, visit: int, time: float) -> dict[str, Json]:
    """Return the position (`Frame.restore`) of a top machine that goes on from a checkpoint."""
    return {
        "state": checkpoint.next,
        "visit": visit,
        "data": checkpoint.data,
        "variables": dict(checkpoint.variables),
        "now": time,
        "checkpoint": {"Name": checkpoint.name, "Id": checkpoint.id},
    }
