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

from asl.core.values import Json, encode
from asl.engine.record_reader import RecordReader
from asl.engine.records import NOTED, WHOLE_PATH
from asl.states.effects import Record
from asl.stores.backend import Write
from asl.stores.errors import StoreDamaged
from asl.stores.session import Session
from asl.stores.statements import (
    APPEND,
    PARAMETER,
    Delete,
    Insert,
    Select,
    above,
    contains,
    one_of,
    within,
)
from asl.stores.tables import EXECUTION, HEAD, LARGE, LIVE, MOST, STEP

__all__ = ["RECORDS", "Log", "LogCompaction", "chunks_after", "drop_chunks", "put_chunk"]

NEXT = 1000
"""How many steps behind the last one of an execution are looked at, for one of its own."""
CHAIN = Select(EXECUTION, ("chain",), {"number": PARAMETER})
END = Select(HEAD, ("step", "place"), {"execution": PARAMETER})
BEHIND = Select(STEP, ("place",), {"place": within(), "execution": PARAMETER}, limited=True)
HASH = Select(STEP, ("hash",), {"place": PARAMETER})
STEPS = Select(STEP, ("hash", "body"), {"place": one_of()}, order=("number",))
NUMBERS = Select(STEP, ("number",), {"execution": PARAMETER})
WITH_TEXT = Select(
    STEP, ("number", "body"), {"place": one_of(), "body": contains()}, order=("-number",)
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

    def __init__(self, store: Session, number: int) -> None:
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
            ((hash,),) = store.select(HASH, places.pop(0))
            store.check(type(hash) is bytes, f"step {after} of the history")
        end = min(end, last)
        places = places[: max(end - after, 0)]
        for begin in range(0, len(places), TOGETHER):
            for kept, body in store.select(STEPS, places[begin : begin + TOGETHER]):
                after += 1
                store.check(type(body) is bytes, f"step {after} of the history")
                hash = sha256(hash + body).digest()
                store.check(kept == hash, f"step {after} of the history")
                with store.reading(f"step {after} of the history"):
                    whole = [
                        [what, where, *map(self._whole, more)]
                        for what, where, *more in store.values.read(body)
                    ]
                yield after, hash, whole
        store.check(after >= end, f"step {after + 1} of the history")

    def _places(self, first: int, last: int, place: int) -> list[int]:
        """Return where the steps stand from the *first* to the *last* one, which is at *place*.

        Raises StoreDamaged where one is missing.
        """
        back = self.store.connection.trace(place, last, first)
        if len(back) == last - first + 1:
            return [place for _, place in reversed(back)]
        if back:
            missing = f"step {back[-1][0] - 1} of the history is missing"
        else:
            there = (number for (number,) in self.store.select(NUMBERS, self.number))
            counted = (number for number in there if type(number) is int and number < last)
            before = max(counted, default=0)
            lost = f"{before + 1} to {last}" if before + 1 < last else f"{last}"
            missing = f"the end of the history is missing: step {lost}"
        raise StoreDamaged(self.store.place, missing)

    def ends(self) -> tuple[bytes, int, int]:
        """Return the hash before the first step, the number of the last one and its place."""
        store = self.store
        found, chains = store.select(END, self.number), store.select(CHAIN, self.number)
        if not found or not chains:
            raise StoreDamaged(store.place, "how long a history is does not stand there")
        (last, place), ((chain,),) = found[0], chains
        types = type(chain), type(last), type(place)
        store.check(types == (bytes, int, int), "the end of a history")
        if place > 0 and store.select(BEHIND, place, place + NEXT, self.number, 1):
            message = f"the history goes on behind its end, which is said to be step {last}"
            raise StoreDamaged(store.place, message)
        return chain, last, place

    def _with_text(self, text: bytes) -> list[tuple[int, bytes]]:
        """Return number and body of the steps in which a text stands, the latest first."""
        _, end, place = self.ends()
        places = [place for _, place in self.store.connection.trace(place, end, 1)]
        return self.store.select(WITH_TEXT, places, text)

    def written_records(self, entries: list[Json]) -> Iterator[tuple[str, Json]]:
        """Yield path and JSON of the records among the entries of a step."""
        for what, where, *content in entries:
            if what in RECORDS:
                yield where, self._record(content[0], entries)

    def replayed_records(self, entries: list[Json], reader: RecordReader) -> Iterator[Record]:
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
        with self.store.reading("what a request asks"):
            for number, _ in self._with_text(encode(request)):
                for _, _, entries in self.read(number - 1, number):
                    for what, _, *content in entries:
                        found = self.requested(content[0], entries) if what in RECORDS else ()
                        for id, digest in found:
                            if id == request:
                                return digest
        return None

    def begin(self, reader: RecordReader) -> None:
        """Let *reader* read by the document with which the execution began."""
        for _, body in reversed(self._with_text(b'"replaced":')):
            for what, where, *content in self.store.values.read(body):
                if what == "record" and where == WHOLE_PATH:
                    details = content[0][-1]["json"]
                    if "replaced" in details:
                        reader.begin(details["replaced"])
                        return

    def records(self, reader: RecordReader, last: int = 2**62) -> Iterator[Record]:
        """Yield the records up to a step; *reader* makes them of what is written."""
        self.begin(reader)
        for _, _, entries in self.read(last=last):
            yield from self.replayed_records(entries, reader)

    def outcome(self, last: list[Json], entries: list[Json]) -> Json:
        """Return what a child came to, from its last record."""
        _, time, _, _, result, output, *_ = last
        if type(output) is dict and "=" in output:  # it stands in the record
            output = result
        output = self._slot(output, entries)
        return ["child", time, output["json"] if type(output) is dict else output, None]

    def _whole(self, value: Json) -> Json:
        if type(value) is dict and "large" in value:
            return self.store.values.large(bytes.fromhex(value["large"]))
        return value

    # Writing

    def put(self, *entry: Json) -> int:
        """Add an entry to the next step: what, where and its content; returns its size in bytes."""
        text = encode(entry)
        size = len(text)
        if size >= LARGE:
            text = self._apart(entry)
            size = len(text)
        if not self._entries:
            self.store.write_at_last(self._last_step)
        self._entries.append(text)
        self.gathered += size
        if self.gathered > MOST:
            change, values = self._step()
            self.store.write(change, *values)
        return size

    def _apart(self, entry: tuple[Json, ...]) -> bytes:
        """Return the text of a large entry, which refers to its large values."""
        what, where, first, *more = entry
        is_record = what in RECORDS
        first = [self._referred(slot) for slot in first] if is_record else self._kept(first)
        return encode([what, where, first, *more])

    def _kept(self, value: Json) -> Json:
        """Refer to a large value instead of repeating it."""
        text = encode(value)
        return value if len(text) < LARGE else {"large": self.store.values.put_large(text).hex()}

    def _referred(self, slot: Json) -> Json:
        if type(slot) is dict and "json" in slot:
            kept = self._kept(slot["json"])
            return slot if kept is slot["json"] else kept
        return slot

    def _step(self) -> Write:
        """Return the change that appends what is gathered, chained to all before."""
        body = b"[%s]" % b",".join(self._entries)
        self._entries, self.gathered = [], 0
        self.steps += 1
        self.chain = sha256(self.chain + body).digest()
        return APPEND, (self.number, self.steps, self.chain, body)

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


class LogCompaction:
    """Goes through the entries of a log, in order; its methods have the names of the entries."""

    def __init__(self, positions: dict[str, Json], answers: dict[str, Json]) -> None:
        self.positions = positions
        self.answers = answers
        self._below: dict[str, dict[str, None]] = {}
        """What is kept right below each path, answers and machines."""

    def answer(self, key: str, answer: Json) -> None:
        """Keep an answer."""
        self._hang(key)
        self.answers[key] = answer

    def position(self, path: str, position: Json, kept: str | None) -> None:
        """Keep where a machine stands."""
        self._drop(path, kept)
        self._hang(path)
        self.positions[path] = position

    def void(self, key: str) -> None:
        """Forget an answer."""
        self.answers.pop(key, None)

    def _hang(self, key: str) -> None:
        while key[:1] == "/":  # what belongs to no machine is never past
            path = key.rpartition("/")[0]
            siblings = self._below.setdefault(path, {})
            if key in siblings:
                return
            siblings[key] = None
            key = path

    def _drop(self, path: str, kept: str | None) -> None:
        for key in self._below.pop(path, ()):
            if kept is not None and key.startswith(kept):
                self._hang(key)
            else:
                self._drop(key, None)
                self.positions.pop(key, None)
                self.answers.pop(key, None)


PUT_CHUNK = Insert(LIVE, ("execution", "body"))
CHUNKS_AFTER = Select(LIVE, ("id", "body"), {"execution": PARAMETER, "id": above()}, order=("id",))
DROP_CHUNKS = Delete(LIVE, {"execution": PARAMETER})


def put_chunk(session: Session, number: int, chunk: Json) -> None:
    """Show with the next commit what an agent of an execution says."""
    session.write(PUT_CHUNK, number, encode(chunk))


def chunks_after(session: Session, number: int, last: int) -> list[tuple[int, Json]]:
    """Return what was shown behind the row *last*, each with the id of its row."""
    return [
        (id, session.values.read(body)) for id, body in session.select(CHUNKS_AFTER, number, last)
    ]


def drop_chunks(session: Session, number: int) -> None:
    """Forget with the next commit what was shown of an execution: it is recorded."""
    session.write(DROP_CHUNKS, number)
