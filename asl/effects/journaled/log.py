"""What the journal already has of one machine, so that records can refer to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asl.core.values import Json
from asl.engine.frame import Frame
from asl.engine.journal import Journal
from asl.engine.record_writer import includes_next_stretch, write_record
from asl.engine.records import EXITED
from asl.states.effects import Record

__all__ = ["MIN_WEIGHT", "MachineLog", "log_of"]

MIN_WEIGHT = 4096
"""Bytes of answers up to which no position is taken: replaying them is cheap."""
LONG = 32
"""Characters from which on a text is not repeated in the records behind it."""


class MachineLog:
    """The journal's state of one machine."""

    # What is so of nearly every machine needs no assignment when it begins.

    forks = "", True
    """What the paths of the machines begin with that it forks now, and whether these owe
    anything from the start: where only so many may be in flight."""
    records = 0
    """How many records the machine has emitted."""
    stretch = 0
    """The number of the record with which the present visit began."""
    weight = 0
    """The size of the answers since the last position, with all that the children have kept."""
    begins = False
    """Whether the next record was written with the last one."""
    over = False
    """Whether the last record of the machine was written."""
    last: tuple[Record | None, Sequence[int]] = None, ()
    """The last record that was written, and the identities of the containers in it."""
    latest: tuple[int, int] | None = None
    """Refers to the last answer."""
    given: Json = None
    """The value of that answer, if it is worth to refer to it."""
    calling: str | None = None
    """The key of a direct call that is under way."""
    committing = False
    """Whether that call waits for what led to it to be durable."""
    aside: dict[str, Any] | None = None
    """What an effect under way has recorded besides its answer: `notes`, `used`,
    `progress`, unshown text, how many records say that it was `advanced`, and when it `began`."""
    attempt: tuple[int, int, float] | None = None
    """The visit and the retries of the last call that may be made again, and when it began."""
    noted: Sequence[Record] = ()
    """The notes of an effect under way. They are written with its answer: should there be
    none, the effect is performed again, perhaps with other events."""

    def __init__(self, path: str, owes: bool = True) -> None:
        self.path = path
        self.owes = owes
        """Whether anything must be durable before the machine acts again: an answer of its own, or
        that it began."""
        self.began = not path
        """Whether it is known when the machine began; of the top one the execution knows."""
        self.least = MIN_WEIGHT
        """How much they must weigh before it is worth to see whether a position is smaller."""

    def note_position(self) -> None:
        """Note that a position was recorded."""
        self.weight, self.least = 0, MIN_WEIGHT

    def note_answer(self, latest: tuple[int, int] | None, value: Json) -> None:
        """Know of the last answer, so that the records behind it may refer to its value."""
        self.latest, self.owes = latest, True
        of = type(value)
        worth = of is dict or of is list or (of is str and len(value) > LONG)
        self.given = value if worth else None

    def write(self, journal: Journal, record: Record) -> None:
        """Write a record that refers to earlier entries."""
        if self.begins:  # with the record before
            self.begins = False
            return
        written = self._written(journal, record)
        self.begins = record[0] is EXITED and includes_next_stretch(written)
        journal.put_record(self.path, written)

    def write_last(self, journal: Journal, record: Record) -> int:
        """Put the record of the end of a child, which has its result; return its size."""
        self.over = True
        return journal.put_last_record(self.path, self._written(journal, record, whole=True))

    def _written(self, journal: Journal, record: Record, whole: bool = False) -> Json:
        given = reference = None
        if self.given is not None and self.latest is not None:
            reference = journal.reference(self.latest)
            given = None if reference is None else self.given
        written, seen = write_record(record, self.last[1], given, reference, whole)
        self.last = record, seen
        return written

    def write_notes(self, journal: Journal) -> None:
        """Put the notes of the effect under way."""
        notes, self.noted = self.noted, ()
        for record in notes:
            self.write(journal, record)


def log_of(frame: Frame) -> MachineLog:
    """Return what is remembered of the machine of a frame."""
    log: MachineLog | None = frame.log
    if log is None:
        log = frame.log = MachineLog(frame.path)
    return log
