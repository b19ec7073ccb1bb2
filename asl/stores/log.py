"""The log of one execution: what it has put between two commits is one *step*, a row.

A step is a JSON array of entries, and a hash of them and of all steps before.

    ["record", path of the machine, record]     told by the history
    ["last", path, record]                      the same of a child, which came to its output
    ["answer", key of the effect, answer]       or the outcome of a child, under its path
    ["position", path, position, kept]          what stood below the path is past, but for *kept*
    ["void", key]                               the answer does not count any more
    ["filled", path, values]                    parameters of the included document that runs there

A content from 64 KiB on is `{"large": hash}`. A record may say `{"entry": n}` for the value of the
answer that is the entry *n* of the same step. Steps of all executions stand in the order they came;
each says where the one before it stands, and a row of its own (`head`) where the last one does, and
its number, so that a log is known that has lost its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

from asl.core.values import Json, compact, encoded
from asl.engine.journal import WHOLE_PATH
from asl.engine.records import NOTED
from asl.stores.schema import LARGE, MOST
from asl.stores.sqlite import StoreDamaged

if TYPE_CHECKING:
    from asl.engine.record_reading import RecordReader
    from asl.states.host import Record
    from asl.stores.sqlite import SqliteStore, Write

__all__ = ["RECORDS", "Log"]

NEXT = 1000
"""How many steps behind the last one of an execution are looked at, for one of its own."""
BEGINNING = (
    "SELECT chain, step, place, EXISTS (SELECT 1 FROM ("
    "SELECT execution AS of FROM step WHERE place > head.place AND head.place > 0 "
    f"ORDER BY place LIMIT {NEXT}) WHERE of = number) "
    "FROM execution JOIN head ON execution = number WHERE number = ?"
)
"""The hash before the first step, the number of the last one, its place, and whether there are more
steps behind it."""
STEP = (
    "INSERT INTO step (execution, number, before, hash, body) "
    "VALUES (?, ?, (SELECT place FROM head WHERE execution = ?), ?, ?)"
)
BACK = (
    "WITH RECURSIVE back (place, number, before) AS ("
    "SELECT place, number, before FROM step WHERE place = ? AND number = ? UNION ALL "
    "SELECT step.place, step.number, step.before FROM back JOIN step "
    "ON step.place = back.before AND step.number = back.number - 1 WHERE back.number > ?)"
)
"""The steps from the last one back to a number."""
STEPS = (
    "SELECT hash, body FROM step WHERE place IN (SELECT value FROM json_each(?)) ORDER BY number"
)
REQUESTED = "ApprovalRequested"
"""The event that says what people are asked."""
RECORDS = ("record", "last")
"""The entries that hold a record."""
TOGETHER = 100
"""Steps that are read at once."""


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
        self.gathered = 0
        """Their bytes."""

    # Reading

    def read(self, after: int = 0, last: int = 2**62) -> Iterator[tuple[int, bytes, list[Json]]]:
        """Yield number, hash and entries of each step behind the one *after*, up to the *last*.

        Raises StoreDamaged for a step that was changed.
        """
        store = self.store
        hash, end, place = self.ends()
        places = self._places(max(after, 1), end, place)
        if after:
            ((hash,),) = store.rows("SELECT hash FROM step WHERE place = ?", places.pop(0))
            store.check(type(hash) is bytes, f"step {after} of the history")
        end = min(end, last)
        places = places[: max(end - after, 0)]
        for begin in range(0, len(places), TOGETHER):
            for kept, body in self.store.rows(STEPS, compact(places[begin : begin + TOGETHER])):
                after += 1
                store.check(type(body) is bytes, f"step {after} of the history")
                hash = sha256(hash + body).digest()
                store.check(kept == hash, f"step {after} of the history")
                entries = store.read(body)
                whole = [[what, where, *map(self._whole, more)] for what, where, *more in entries]
                yield after, hash, whole
        store.check(after >= end, f"step {after + 1} of the history")

    def _places(self, first: int, last: int, place: int) -> list[int]:
        """Return where the steps stand from the *first* to the *last* one, which is at *place*.

        Raises StoreDamaged where one is missing.
        """
        store = self.store
        back = store.rows(f"{BACK} SELECT number, place FROM back", place, last, first)
        if len(back) == last - first + 1:
            return [place for _, place in reversed(back)]
        if back:
            missing = f"step {back[-1][0] - 1} of the history is missing"
        else:
            there = "SELECT coalesce(max(number), 0) FROM step WHERE execution = ? AND number < ?"
            ((before,),) = store.rows(there, self.number, last)
            lost = f"{before + 1} to {last}" if before + 1 < last else f"{last}"
            missing = f"the end of the history is missing: step {lost}"
        raise StoreDamaged(store.path, missing)

    def ends(self) -> tuple[bytes, int, int]:
        """Return the hash before the first step, the number of the last one and its place."""
        found = self.store.rows(BEGINNING, self.number)
        if not found:
            raise StoreDamaged(self.store.path, "how long a history is does not stand there")
        chain, last, place, has_more = found[0]
        types = type(chain), type(last), type(place)
        self.store.check(types == (bytes, int, int), "the end of a history")
        if has_more:
            message = f"the history goes on behind its end, which is said to be step {last}"
            raise StoreDamaged(self.store.path, message)
        return chain, last, place

    def told(self, entries: list[Json]) -> Iterator[tuple[str, Json]]:
        """Yield path and JSON of the records among the entries of a step."""
        for what, where, *content in entries:
            if what in RECORDS:
                yield where, self._record(content[0], entries)

    def retold(self, entries: list[Json], reader: RecordReader) -> Iterator[Record]:
        """Yield the same records as *reader* makes them of what is written."""
        for what, where, *content in entries:
            if what == "filled":
                reader.fill(where, content[0])
            elif what in RECORDS:
                yield from reader.read(where, self._record(content[0], entries))

    def _record(self, written: list[Json], entries: list[Json]) -> list[Json]:
        return [self._slot(slot, entries) for slot in written]

    def _slot(self, slot: Json, entries: list[Json]) -> Json:
        """Return what a slot of a record stands for."""
        if type(slot) is dict:
            if "large" in slot:
                return {"json": self._whole(slot)}
            if "entry" in slot:
                value = entries[slot["entry"]][2][2]
                return value if type(value) is str else {"json": value}
        return slot

    def requested(self, record: list[Json], entries: list[Json]) -> Iterator[tuple[str, str]]:
        """Yield the id of the request that a record tells of, and the digest of what it asks."""
        if record[0] == NOTED and record[4] == REQUESTED:
            details = self._slot(record[5], entries)["json"]
            if "digest" in details:  # older stores keep none
                yield details["requestId"], details["digest"]

    def digest_of(self, request: str) -> str | None:
        """Return the recorded digest of what a request asks, None where there is none."""
        _, end, place = self.ends()
        query = f"{BACK} SELECT number FROM back JOIN step USING (place, number) "
        query += "WHERE instr(body, ?) ORDER BY number DESC"
        for (number,) in self.store.rows(query, place, end, 1, encoded(request)):
            for _, _, entries in self.read(number - 1, number):
                for what, _, *content in entries:
                    found = self.requested(content[0], entries) if what in RECORDS else ()
                    for id, digest in found:
                        if id == request:
                            return digest
        return None

    def begin(self, reader: RecordReader) -> None:
        """Let *reader* read by the document with which the execution began."""
        _, end, place = self.ends()
        query = f"{BACK} SELECT body FROM step JOIN back USING (place) WHERE instr(body, ?)"
        for (body,) in self.store.rows(f"{query} ORDER BY place", place, end, 1, b'"replaced":'):
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
            yield from self.retold(entries, reader)

    def outcome(self, last: list[Json], entries: list[Json]) -> Json:
        """Return what a child came to, from its last record."""
        _, time, _, _, result, output, *_ = last
        if type(output) is dict and "=" in output:  # it stands in the record
            output = result
        output = self._slot(output, entries)
        return ["child", time, output["json"] if type(output) is dict else output, None]

    def _whole(self, value: Json) -> Json:
        if type(value) is dict and "large" in value:
            return self.store.large(bytes.fromhex(value["large"]))
        return value

    # Writing

    def put(self, *entry: Json) -> int:
        """Add an entry to the next step: what, where and its content; returns its size in bytes."""
        text = encoded(entry)
        size = len(text)
        if size >= LARGE:
            text = self._apart(entry)
            size = len(text)
        if not self._entries:
            self.store.write_at_last(self._last_step)
        self._entries.append(text)
        self.gathered += size
        if self.gathered > MOST:
            statement, values = self._step()
            self.store.write(statement, *values)
        return size

    def _apart(self, entry: tuple[Json, ...]) -> bytes:
        """Return the text of a large entry, which refers to its large values."""
        what, where, first, *more = entry
        is_record = what in RECORDS
        first = [self._referred(slot) for slot in first] if is_record else self._kept(first)
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
        self._entries, self.gathered = [], 0
        self.steps += 1
        self.chain = sha256(self.chain + body).digest()
        # For bytes, the module `sqlite3` looks for adapters, in vain; a copy costs less.
        kept = bytearray(self.chain), bytearray(body)
        return STEP, (self.number, self.steps, self.number, *kept)

    def _last_step(self) -> Iterator[Write]:
        if self._entries:
            yield self._step()

    @property
    def latest(self) -> tuple[int, int] | None:
        """Stands for what was put last: its step, and which entry of that; None once it is written.

        What makes a step full is written at once.
        """
        return (self.steps, len(self._entries) - 1) if self._entries else None

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return what stands in a record for the value of an answer, None once that is written."""
        step, entry = answer
        return {"entry": entry} if step == self.steps else None
