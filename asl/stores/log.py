"""The log of one execution, and its streamed chunks that are not in the log yet.

All entries between two commits form a *step*: a row with a JSON array of entries, and a hash of
them and of all earlier steps.

    ["record", path of the machine, record]     an event of the history
    ["last", path, record]                      the last record of a child, with its output
    ["answer", key of the effect, answer]       or the outcome of a child, under its path
    ["position", path, position, kept]          discards entries below the path except *kept*
    ["void", key]                               discards an answer
    ["filled", path, values]                    parameters of the included document at the path
    ["brief", "", content]                      what earlier steps led to, instead of them

Content of 64 KiB or more is `{"large": hash}`. In a record `{"entry": n}` refers to the value of
the answer that is entry *n* of the same step. The steps of all executions share one table in the
order of their commits; each has the place of its predecessor. The table `head` has number and place
of the last step of each execution, so that a log without its end is detected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    between,
    contains,
    one_of,
)
from asl.stores.tables import EXECUTION, HEAD, LARGE, LIVE, MOST, STEP

__all__ = ["RECORDS", "Log", "LogCompaction", "chunks_after", "drop_chunks", "put_chunk"]

NEXT = 1000
"""Number of rows after the last step that are searched for further steps of the execution."""
CHAIN = Select(EXECUTION, ("chain",), {"number": PARAMETER})
END = Select(HEAD, ("step", "place"), {"execution": PARAMETER})
BEHIND = Select(STEP, ("place",), {"place": between(), "execution": PARAMETER}, limited=True)
HASH = Select(STEP, ("hash",), {"place": PARAMETER})
STEPS = Select(STEP, ("hash", "body"), {"place": one_of()}, order=("number",))
NUMBERS = Select(STEP, ("number",), {"execution": PARAMETER})
WITH_TEXT = Select(
    STEP, ("number", "body"), {"place": one_of(), "body": contains()}, order=("-number",)
)
REQUESTED = "ApprovalRequested"
"""The event of an approval request."""
RECORDS = ("record", "last")
"""The kinds of entries with a record."""
TOGETHER = 100
"""Number of steps that are read together."""


class Log:
    """Reads and appends the steps of one execution."""

    chain: bytes
    """The hash of the last step, set before a step is added."""

    def __init__(self, store: Session, number: int) -> None:
        self.store = store
        self.number = number
        self.steps = 0
        """The number of steps."""
        self._entries: list[bytes] = []
        """The entries of the next step."""
        self.uncommitted_bytes = 0
        """Their size in bytes."""

    # Reading

    def read(self, after: int = 0, last: int = 2**62) -> Iterator[tuple[int, bytes, list[Json]]]:
        """Yield number, hash and entries of the steps after number *after*, up to number *last*.

        Raises:
            StoreDamaged: A step was changed or is missing.
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
                with store.damage_reports(f"step {after} of the history"):
                    whole = [
                        [what, where, *map(self._whole, more)]
                        for what, where, *more in store.values.read(body)
                    ]
                yield after, hash, whole
        store.check(after >= end, f"step {after + 1} of the history")

    def _places(self, first: int, last: int, place: int) -> list[int]:
        """Return the places of the steps from *first* to *last*, which is at *place*.

        Raises:
            StoreDamaged: A step is missing.
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
        """Return the hash before the first step, and number and place of the last one.

        Raises:
            StoreDamaged: The log has no head, or steps after it.
        """
        store = self.store
        found, chains = store.select(END, self.number), store.select(CHAIN, self.number)
        if not found or not chains:
            raise StoreDamaged(store.place, "the recorded end of a history is missing")
        (last, place), ((chain,),) = found[0], chains
        types = type(chain), type(last), type(place)
        store.check(types == (bytes, int, int), "the end of a history")
        if place > 0 and store.select(BEHIND, place, place + NEXT, self.number, 1):
            message = f"the history has steps after its recorded end, step {last}"
            raise StoreDamaged(store.place, message)
        return chain, last, place

    def _with_text(self, text: bytes) -> list[tuple[int, bytes]]:
        """Return number and body of the steps that contain a text, latest first."""
        _, end, place = self.ends()
        places = [place for _, place in self.store.connection.trace(place, end, 1)]
        return self.store.select(WITH_TEXT, places, text)

    def written_records(self, entries: list[Json]) -> Iterator[tuple[str, Json]]:
        """Yield path and JSON of the records of a step."""
        for what, where, *content in entries:
            if what in RECORDS:
                yield where, self._record(content[0], entries)

    def replayed_records(self, entries: list[Json], reader: RecordReader) -> Iterator[Record]:
        """Yield the records of a step, decoded by *reader*."""
        for what, where, *content in entries:
            if what == "filled":
                reader.fill(where, content[0])
            elif what in RECORDS:
                yield from reader.read(where, self._record(content[0], entries))

    def _record(self, written: list[Json], entries: list[Json]) -> list[Json]:
        return [self._slot(slot, entries) for slot in written]

    def _slot(self, slot: Json, entries: list[Json]) -> Json:
        """Return the value of a slot of a record."""
        if type(slot) is dict:
            if "large" in slot:
                return {"json": self._whole(slot)}
            if "entry" in slot:
                value = entries[slot["entry"]][2][2]
                return value if type(value) is str else {"json": value}
        return slot

    def find_requests(self, record: list[Json], entries: list[Json]) -> Iterator[tuple[str, str]]:
        """Yield id and digest of the approval request that a record reports."""
        if record[0] == NOTED and record[4] == REQUESTED:
            details = self._slot(record[5], entries)["json"]
            if "digest" in details:  # older stores have none
                yield details["requestId"], details["digest"]

    def digest_of(self, request: str) -> str | None:
        """Return the recorded digest of a request, None if the log has none."""
        with self.store.damage_reports("what a request asks"):
            for number, _ in self._with_text(encode(request)):
                for _, _, entries in self.read(number - 1, number):
                    for what, _, *content in entries:
                        found = self.find_requests(content[0], entries) if what in RECORDS else ()
                        for id, digest in found:
                            if id == request:
                                return digest
        return None

    def begin(self, reader: RecordReader) -> None:
        """Make *reader* use the document with which the execution began."""
        for _, body in reversed(self._with_text(b'"replaced":')):
            for what, where, *content in self.store.values.read(body):
                if what == "record" and where == WHOLE_PATH:
                    details = content[0][-1]["json"]
                    if "replaced" in details:
                        reader.begin(details["replaced"])
                        return

    def records(self, reader: RecordReader, last: int = 2**62) -> Iterator[Record]:
        """Yield the records up to a step, decoded by *reader*."""
        self.begin(reader)
        for _, _, entries in self.read(last=last):
            yield from self.replayed_records(entries, reader)

    def outcome(self, last: list[Json], entries: list[Json]) -> Json:
        """Return the outcome of a child from its last record."""
        _, time, _, _, result, output, *_ = last
        if type(output) is dict and "=" in output:  # the record contains it
            output = result
        output = self._slot(output, entries)
        return ["child", time, output["json"] if type(output) is dict else output, None]

    def _whole(self, value: Json) -> Json:
        if type(value) is dict and "large" in value:
            return self.store.values.large(bytes.fromhex(value["large"]))
        return value

    # Writing

    def put(self, *entry: Json) -> int:
        """Add an entry (kind, path and content) to the next step and return its size in bytes."""
        text = encode(entry)
        size = len(text)
        if size >= LARGE:
            text = self._apart(entry)
            size = len(text)
        if not self._entries:
            self.store.write_at_last(self._last_step)
        self._entries.append(text)
        self.uncommitted_bytes += size
        if self.uncommitted_bytes > MOST:
            change, values = self._step()
            self.store.write(change, *values)
        return size

    def _apart(self, entry: tuple[Json, ...]) -> bytes:
        """Return the text of a large entry, with references to its large values."""
        what, where, first, *more = entry
        is_record = what in RECORDS
        first = [self._referred(slot) for slot in first] if is_record else self._kept(first)
        return encode([what, where, first, *more])

    def _kept(self, value: Json) -> Json:
        """Return a reference to a large value, a small one unchanged."""
        text = encode(value)
        return value if len(text) < LARGE else {"large": self.store.values.put_large(text).hex()}

    def _referred(self, slot: Json) -> Json:
        if type(slot) is dict and "json" in slot:
            kept = self._kept(slot["json"])
            return slot if kept is slot["json"] else kept
        return slot

    def _step(self) -> Write:
        """Return the change that appends the gathered entries as a step."""
        body = b"[%s]" % b",".join(self._entries)
        self._entries, self.uncommitted_bytes = [], 0
        self.steps += 1
        self.chain = sha256(self.chain + body).digest()
        return APPEND, (self.number, self.steps, self.chain, body)

    def _last_step(self) -> Iterator[Write]:
        if self._entries:
            yield self._step()

    @property
    def latest(self) -> tuple[int, int] | None:
        """Step and index of the last pending entry, None once it is written.

        A full step is written immediately.
        """
        return (self.steps, len(self._entries) - 1) if self._entries else None

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return the reference to the value of an answer for a record, None once it is written."""
        step, entry = answer
        return {"entry": entry} if step == self.steps else None


class LogCompaction:
    """Applies the entries of a log in order, and stores the live ones."""

    def __init__(self, positions: dict[str, Json], answers: dict[str, Json]) -> None:
        self.positions = positions
        self.answers = answers
        self._below: dict[str, dict[str, None]] = {}
        """Keys of answers and machines directly below each path."""
        self._kinds: dict[str, Callable[..., None]] = {
            "answer": self.answer,
            "position": self.position,
            "void": self.discard_answer,
        }

    def apply(self, kind: str, key: str, *content: Json) -> None:
        """Apply an entry; a KeyError or TypeError means that it is not one."""
        self._kinds[kind](key, *content)

    def answer(self, key: str, answer: Json) -> None:
        """Apply an answer."""
        self._hang(key)
        self.answers[key] = answer

    def position(self, path: str, position: Json, kept: str | None) -> None:
        """Apply a position."""
        self._drop(path, kept)
        self._hang(path)
        self.positions[path] = position

    def discard_answer(self, key: str) -> None:
        """Discard an answer."""
        self.answers.pop(key, None)

    def _hang(self, key: str) -> None:
        while key[:1] == "/":  # other keys belong to no machine and remain
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
    """Publish a streamed chunk with the next commit."""
    session.write(PUT_CHUNK, number, encode(chunk))


def chunks_after(session: Session, number: int, last: int) -> list[tuple[int, Json]]:
    """Return the chunks after the row *last*, each with the id of its row."""
    return [
        (id, session.values.read(body)) for id, body in session.select(CHUNKS_AFTER, number, last)
    ]


def drop_chunks(session: Session, number: int) -> None:
    """Delete the chunks of an execution with the next commit: the log has them."""
    session.write(DROP_CHUNKS, number)
