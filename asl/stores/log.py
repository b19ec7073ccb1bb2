"""The log of one execution: what it has put between two commits is one *step*, a row.

A step is a JSON array of entries, and a hash of them and of all steps before.

    ["record", path of the machine, record]     told by the history
    ["answer", key of the effect, answer]       or the outcome of a child, under its path
    ["position", path, position, kept]          what stood below the path is past, but for *kept*
    ["void", key]                               the answer does not count any more

A content from 64 KiB on is `{"large": hash}`. A record may say `{"entry": n}` for the value of the
answer that is the entry *n* of the same step. The number of the last step stands in a row of its
own, so that a log is known that has lost its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from asl.core.values import Json, encoded
from asl.engine.journal import WHOLE_PATH
from asl.stores.schema import LARGE, MOST
from asl.stores.sqlite import StoreDamaged

if TYPE_CHECKING:
    from asl.engine.journal import RecordReader
    from asl.states.host import Record
    from asl.stores.sqlite import SqliteStore, Write

__all__ = ["Log"]

BEGINNING = "SELECT chain, step FROM execution JOIN head ON execution = number WHERE number = ?"
"""The hash before the first step, and the number of the last one."""
STEP = "INSERT INTO step (execution, number, hash, body) VALUES (?, ?, ?, ?)"
STEPS = (
    "SELECT number, hash, body FROM step WHERE execution = ? AND number > ? AND number <= ? "
    "ORDER BY number LIMIT 100"
)


class Log:
    """Reads the steps of one execution, and adds to them."""

    chain: bytes
    """The hash of the last step, known to whoever adds one."""

    def __init__(self, store: SqliteStore, number: int) -> None:
        self.store = store
        self.number = number
        self.steps = 0
        """How many steps there are."""
        self._entries: list[bytes] = []
        """Those of the next one."""
        self._size = 0
        """Their bytes."""
        self._is_due = False
        """Whether the next transaction asks for a step."""

    # Reading

    def read(self, after: int = 0, last: int = 2**62) -> Iterator[tuple[int, bytes, list[Json]]]:
        """Yield number, hash and entries of each step behind the one *after*, up to the *last*.

        Raises StoreDamaged for a step that was changed.
        """
        store, number = self.store, self.number
        hash, end = self.ends()
        if after:
            before = "SELECT hash FROM step WHERE execution = ? AND number = ?"
            ((hash,),) = store.rows(before, number, after)
        while found := store.rows(STEPS, number, after, last):
            for at, kept, body in found:
                after, hash = after + 1, sha256(hash + body).digest()
                if at != after:
                    raise StoreDamaged(store.path, f"step {after} of the history is missing")
                store.check(kept == hash, f"step {after} of the history")
                entries = store.read(body)
                whole = [[what, where, *map(self._whole, more)] for what, where, *more in entries]
                yield after, hash, whole
        if after < min(end, last):
            lost = f"{after + 1} to {end}" if after + 1 < end else f"{end}"
            raise StoreDamaged(store.path, f"the end of the history is missing: step {lost}")

    def ends(self) -> tuple[bytes, int]:
        """Return the hash before the first step, and the number of the last one."""
        found: list[tuple[bytes, int]] = self.store.rows(BEGINNING, self.number)
        if not found:
            raise StoreDamaged(self.store.path, "how long a history is does not stand there")
        return found[0]

    def told(self, entries: list[Json]) -> Iterator[tuple[str, Json]]:
        """Yield path and JSON of the records among the entries of a step."""
        for what, where, *content in entries:
            if what == "record":
                yield where, [self._slot(slot, entries) for slot in content[0]]

    def _slot(self, slot: Json, entries: list[Json]) -> Json:
        """Return what a slot of a record stands for."""
        if type(slot) is dict:
            if "large" in slot:
                return {"json": self._whole(slot)}
            if "entry" in slot:
                value = entries[slot["entry"]][2][2]
                return value if type(value) is str else {"json": value}
        return slot

    def begin(self, reader: RecordReader) -> None:
        """Let *reader* read by the document with which the execution began."""
        query = "SELECT body FROM step WHERE execution = ? AND instr(body, ?) ORDER BY number"
        for (body,) in self.store.rows(query, self.number, b'"replaced":'):
            for what, where, *content in self.store.read(body):
                if what == "record" and where == WHOLE_PATH:
                    details = content[0][-1]["json"]
                    if "replaced" in details:
                        reader.begin(details["replaced"])
                        return

    def records(self, reader: RecordReader, last: int = 2**62) -> Iterator[Record]:
        """Yield the records up to a step; *reader* makes them of what is written."""
        self.begin(reader)
        for _, _, entries in self.read(last=last):
            for path, record in self.told(entries):
                yield reader.read(path, record)

    def _whole(self, value: Json) -> Json:
        if type(value) is dict and "large" in value:
            return self.store.large(bytes.fromhex(value["large"]))
        return value

    # Writing

    def put(self, what: str, where: str, *content: Json) -> int:
        """Add an entry to the next step; returns its size in bytes."""
        text = self._text(what, where, *content)
        if not self._is_due:
            self._is_due = True
            self.store.write_at_last(self._last_step)
        self._entries.append(text)
        self._size += len(text)
        if self._size > MOST:
            statement, values = self._step()
            self.store.write(statement, *values)
        return len(text)

    def _text(self, what: str, where: str, *content: Json) -> bytes:
        text = encoded([what, where, *content])
        if len(text) < LARGE:
            return text
        first, *more = content
        first = [self._referred(slot) for slot in first] if what == "record" else self._kept(first)
        return encoded([what, where, first, *more])

    def _kept(self, value: Json) -> Json:
        """Refer to a large value instead of repeating it."""
        text = encoded(value)
        return value if len(text) < LARGE else {"large": self.store.put_large(text).hex()}

    def _referred(self, slot: Json) -> Json:
        if type(slot) is dict and "json" in slot:
            kept = self._kept(slot["json"])
            return slot if kept is slot["json"] else kept
        return slot

    def _step(self) -> Write:
        """Return the statement that writes what is gathered, chained to all before."""
        body = b"[%s]" % b",".join(self._entries)
        self._entries, self._size = [], 0
        self.steps += 1
        self.chain = sha256(self.chain + body).digest()
        return STEP, (self.number, self.steps, self.chain, body)

    def _last_step(self) -> Iterator[Write]:
        self._is_due = False
        if self._entries:
            yield self._step()

    @property
    def latest(self) -> tuple[int, int]:
        """Stands for what was put last: its step, and which entry of that it is."""
        return self.steps, len(self._entries) - 1

    def put_instead(self, entry: int, what: str, where: str, *content: Json) -> int:
        """Replace an entry of the next step; returns the size of the new one in bytes."""
        self._entries[entry] = text = self._text(what, where, *content)
        return len(text)

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return what stands in a record for the value of an answer, None once that is written."""
        step, entry = answer
        return {"entry": entry} if step == self.steps else None
