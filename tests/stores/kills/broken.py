"""Faults to be planted in a life; the laws must find each of them.

Each takes away one thing on which recovery rests.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from asl.engine.frame import Frame
from asl.stores import journal
from asl.stores.journal import StoreJournal
from asl.stores.log import LogCompaction
from asl.stores.sqlite.connection import SqliteConnection

__all__ = ["VARIANTS"]


async def _unflushed(self: StoreJournal, in_event_loop: bool) -> None:
    """Acknowledge what will be written some time later."""
    if in_event_loop:
        self.commit_soon()


def _one_behind(self: StoreJournal, key: str, answer: Any) -> int:
    """Keep an answer only when the next one comes."""
    waiting = self.__dict__.setdefault("waiting", [])
    waiting.append((key, answer))
    return _put_answer(self, *(waiting.pop(0) if len(waiting) > 1 else ("!", [None] * 4)))


def _beside_its_answers(self: Any, path: str, kept: str | None) -> None:
    """Let the answers stand that a position makes past."""


def _free_of_charge(self: StoreJournal, path: str, position: Any, kept: Any = None) -> int:
    """Forget in a position what had been spent when it was taken."""
    return _put_position(self, path, {**position, "usage": ["0", 0]}, kept)


def _in_pieces(self: SqliteConnection, writes: Sequence[Any], check: Any) -> None:
    """Write one transaction as many."""
    for each in writes:
        _commit(self, [each], check)


def _as_of_now(self: Frame, position: Any) -> None:
    """Go on as if the machine had come to its state just now."""
    _restore(self, {**position, "now": self.effects.runtime.now()})  # type: ignore[attr-defined]


def _as_if_new(self: StoreJournal) -> None:
    """Go on as if nothing of the history had been recorded."""
    _load(self)
    self.recorded = {}


def _not_handed_over(self: StoreJournal, task: Any) -> None:
    """Forget that somebody has been handed a task."""


def _of_nobody(self: StoreJournal, key: str, answer: Any) -> int:
    """Forget which execution a state has started."""
    return 100 if key.endswith("!") else _put_answer(self, key, answer)


def _for_nothing(self: StoreJournal, last: Any, entries: Any) -> Any:
    """Forget what a child came to whose last record says it."""
    return ["child", last[1], None, None]


def _for_itself(written: Any) -> bool:
    """Take a record that stands for the next one, too, for one."""
    return False


_put_answer, _put_position = StoreJournal.put_answer, StoreJournal.put_position
_commit, _restore, _load = SqliteConnection.commit, Frame.restore, StoreJournal.load

FAULTS: tuple[tuple[Any, str, Any], ...] = (
    (StoreJournal, "commit", _unflushed),
    (StoreJournal, "put_answer", _one_behind),
    (StoreJournal, "put_answer", _of_nobody),
    (StoreJournal, "put_heartbeat", _not_handed_over),
    (LogCompaction, "_drop", _beside_its_answers),
    (StoreJournal, "put_position", _free_of_charge),
    (SqliteConnection, "commit", _in_pieces),
    (Frame, "restore", _as_of_now),
    (StoreJournal, "load", _as_if_new),
    (StoreJournal, "outcome", _for_nothing),
    (journal, "tells_next", _for_itself),
)


def _planted(owner: Any, name: str, fault: Any) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def planted() -> Iterator[None]:
        with patch.object(owner, name, fault):
            yield

    return planted


VARIANTS = {
    fault.__name__.strip("_").replace("_", " "): _planted(owner, name, fault)
    for owner, name, fault in FAULTS
}
