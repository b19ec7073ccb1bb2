"""The bound on the history in memory.

Once the records of a long execution, or their values, take more than `MAX_RECORDED` or `MAX_HELD`,
the oldest ones are dropped: those of machines that have ended and of visits that are over. The rest
begins with the event `HistoryTruncated`, which has the number of missing states.
"""

from collections.abc import Iterable, Iterator
from sys import getsizeof
from typing import Any, Final

from asl.engine import records as kinds
from asl.engine.events import TRUNCATED
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.live_history import existing_live_history, open_live_history
from asl.engine.records import each_record
from asl.states.effects import Record

__all__ = ["MAX_HELD", "MAX_RECORDED", "ValueSizes", "bound_records", "bound_values"]

MAX_RECORDED: Final = 600_000
"""Maximum length of the flat list: about 50,000 states."""
MAX_HELD: Final = 64 * 1024 * 1024
"""Maximum size of the values of the records, in bytes."""
_SHORT: Final = 16
"""Maximum length of texts that are not counted."""
_FLOAT: Final = 24
"""Size of a float in bytes."""


class ValueSizes:
    """Sums the bytes of JSON values in memory, each object once."""

    def __init__(self, most: int) -> None:
        self.limit = most
        self.total = 0
        """Bytes so far; the count stops beyond *most*."""
        self._seen: set[int] = set()

    def add(self, values: Iterable[Any]) -> bool:
        """Add values, ignoring objects of other types, and return whether the total is within the
        limit.
        """
        todo, seen = [values], self._seen
        while todo and self.total <= self.limit:
            for each in todo.pop():
                kind = type(each)
                if kind is str:
                    if len(each) <= _SHORT:
                        continue
                elif kind is float:
                    self.total += _FLOAT
                    continue
                elif kind is not dict and kind is not list and kind is not tuple:
                    continue
                if id(each) not in seen:
                    seen.add(id(each))
                    self.total += getsizeof(each)
                    if kind is not str:
                        todo.append(each.values() if kind is dict else each)
        return self.total <= self.limit


def bound_records(execution: Execution, now: float) -> None:
    """Drop the older half of the history if it is longer than `MAX_RECORDED`."""
    history = execution.history
    if len(history) > MAX_RECORDED:
        half = len(history) // 2
        _truncate(execution, now, next(end for end in _ends(history) if end >= half))


def bound_values(execution: Execution, now: float) -> None:
    """Drop the oldest records if the values of all of them take more than `MAX_HELD` bytes."""
    history, sizes = execution.history, ValueSizes(MAX_HELD)
    ends = [0, *_ends(history)]
    for number in range(len(ends) - 1, 0, -1):
        if not sizes.add(history[ends[number - 1] : ends[number]]):
            _truncate(execution, now, ends[number])
            return


def _ends(history: list[Any]) -> Iterator[int]:
    """Yield the index after each record of a flat history."""
    end = 0
    for record in each_record(history):
        end += len(record)
        yield end


def _truncate(execution: Execution, now: float, end: int) -> None:
    """Drop the records before the index *end* that later events do not depend on."""
    history = execution.history
    follower = existing_live_history(execution)
    if execution.counter is not None and execution.counter.count_events is not None:
        follower = open_live_history(execution)
    if follower is not None:
        for _ in follower.new_events():
            pass
    top = _top(history[2])
    states, needed = _needed(each_record(history[:end]))
    mark = (kinds.WHOLE, now, top, 0, None, TRUNCATED, {"states": states})
    history[:end] = [*mark, *(member for record in needed for member in record)]
    if follower is not None:
        follower.skip(len(history))


def _top(frame: Frame) -> Frame:
    while frame.parent is not None:
        frame = frame.parent
    return frame


def _needed(records: Iterator[Record]) -> tuple[int, list[Record]]:
    """Return the number of dropped states, and the records that later ones may refer to.

    These are records of the whole execution, and for each running machine the start of its visit. A
    failed visit with redacted data remains, because no later text may quote it.
    """
    states = 0
    whole: list[tuple[int, Record]] = []
    visits: dict[Frame, list[tuple[int, Record]]] = {}
    for number, record in enumerate(records):
        kind, frame = record[0], record[2]
        if kind == kinds.WHOLE:
            if record[5] == TRUNCATED:
                states += record[6]["states"]
            else:
                whole.append((number, record))
            continue
        if kind in (kinds.STRETCH, kinds.EXITED):
            states += record[9] if kind == kinds.STRETCH else 1
        if kind == kinds.STRETCH or _is_end(record):
            visit = visits.pop(frame, [])
            if any(each[0] == kinds.FAILED and each[4].redact is not None for _, each in visit):
                whole += visit
        if kind == kinds.AGAIN:  # an attempt depends only on the entry
            visits[frame] = [each for each in visits[frame] if each[1][0] in _LASTING]
        if kind not in _ASIDE and not _is_end(record):
            visits.setdefault(frame, []).append((number, record))
    kept = sorted([*whole, *(each for visit in visits.values() for each in visit)], key=_number)
    return states, [record for _, record in kept]


_ASIDE = (kinds.NOTED, kinds.TOLD)
"""Records that no other record refers to."""
_LASTING = (kinds.STRETCH, kinds.FAILED)


def _number(numbered: tuple[int, Record]) -> int:
    return numbered[0]


def _is_end(record: Record) -> bool:
    """Return whether a record is the last one of a machine below the top."""
    kind, frame = record[0], record[2]
    if frame.parent is None:
        return False
    if kind == kinds.STRETCH:
        return record[4] is None
    return kind in (kinds.BROKEN, kinds.ABORTED) or (kind == kinds.EXITED and record[9] is None)
