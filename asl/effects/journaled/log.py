"""The journal's state of one machine, so that records can refer to earlier entries."""

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
"""Bytes of answers up to which no position is recorded, because replaying them is cheap."""
LONG = 32
"""Length from which on a text is not repeated in later records."""


class MachineLog:
    """The journal's state of one machine."""

    # Class attributes hold the usual values, so that a new machine needs no assignments.

    forks = "", True
    """Prefix of the paths of the machines that it is forking, and whether these have pending
    entries from the start (with limited concurrency)."""
    records = 0
    """Number of records that the machine has emitted."""
    stretch = 0
    """Number of the record with which the current visit began."""
    weight = 0
    """Size of the answers since the last position, including those of children."""
    next_is_written = False
    """Whether the next record was written with the last one."""
    is_complete = False
    """Whether the last record of the machine was written."""
    last: tuple[Record | None, Sequence[int]] = None, ()
    """The last written record, and the identities of its containers."""
    latest_answer: tuple[int, int] | None = None
    """Identity of the last answer."""
    answer_value: Json = None
    """Value of that answer, if it is large enough for a reference."""
    direct_call: str | None = None
    """Key of a running direct call."""
    committing = False
    """Whether that call waits for the commit of earlier entries."""
    side_data: dict[str, Any] | None = None
    """Data that the current effect has recorded besides its answer: `notes`, `used` amounts and
    whether a part is `assumed`, `progress`, unshown text, the number of `advanced` records, and its
    start (`began`)."""
    attempt: tuple[int, int, float] | None = None
    """Visit and retries of the last call that may be repeated, and its start."""
    pending_events: Sequence[Record] = ()
    """Events of the current effect. They are written with its answer; without an answer the effect
    is performed again, possibly with other events."""

    def __init__(self, path: str, owes: bool = True) -> None:
        self.path = path
        self.must_commit = owes
        """Whether entries must be durable before the machine acts again: its answers, or its
        start."""
        self.has_start = not path
        """Whether the start of the machine is recorded; that of the top machine is the
        execution's."""
        self.position_weight = MIN_WEIGHT
        """Minimum weight of answers at which a position is compared with them."""

    def note_position(self) -> None:
        """Reset the counts after a recorded position."""
        self.weight, self.position_weight = 0, MIN_WEIGHT

    def note_answer(self, latest: tuple[int, int] | None, value: Json) -> None:
        """Set the last answer, so that later records may refer to its value."""
        self.latest_answer, self.must_commit = latest, True
        of = type(value)
        worth = of is dict or of is list or (of is str and len(value) > LONG)
        self.answer_value = value if worth else None

    def write(self, journal: Journal, record: Record) -> None:
        """Write a record that refers to earlier entries."""
        if self.next_is_written:  # written with the previous record
            self.next_is_written = False
            return
        written = self._written(journal, record)
        self.next_is_written = record[0] is EXITED and includes_next_stretch(written)
        journal.put_record(self.path, written)

    def write_last(self, journal: Journal, record: Record) -> int:
        """Write the final record of a child, with its result, and return its size."""
        self.is_complete = True
        return journal.put_last_record(self.path, self._written(journal, record, whole=True))

    def _written(self, journal: Journal, record: Record, whole: bool = False) -> Json:
        given = reference = None
        if self.answer_value is not None and self.latest_answer is not None:
            reference = journal.reference(self.latest_answer)
            given = None if reference is None else self.answer_value
        written, seen = write_record(record, self.last[1], given, reference, whole)
        self.last = record, seen
        return written

    def write_notes(self, journal: Journal) -> None:
        """Write the events of the current effect."""
        notes, self.pending_events = self.pending_events, ()
        for record in notes:
            self.write(journal, record)


def log_of(frame: Frame) -> MachineLog:
    """Return the journal state of a machine."""
    log: MachineLog | None = frame.log
    if log is None:
        log = frame.log = MachineLog(frame.path)
    return log
