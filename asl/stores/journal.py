"""The journal of one execution in a store (protocol `asl.engine.journal.Journal`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asl.core.values import Json, encoded
from asl.engine.journal import STARTED, WHOLE_PATH, written_whole
from asl.stores.schema import LARGE
from asl.stores.sqlite import BELOW

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.engine.checkpoints import Checkpoint
    from asl.engine.journal import RecordReader
    from asl.engine.result import Result
    from asl.program import Program
    from asl.states.decisions import Asked
    from asl.states.host import Record
    from asl.stores.sqlite import SqliteStore

__all__ = ["FAIL_POINTS", "SqliteJournal", "addressed", "linked", "put_outcome", "put_sign"]

FAIL_POINTS = ("pause.put", "end.put")
"""The instants at the end of a run at which a process may die; see `SqliteJournal.reached`."""

POSITION = (
    "INSERT INTO position VALUES (?, ?, ?) "
    "ON CONFLICT (execution, path) DO UPDATE SET body = excluded.body"
)
ANSWER = (
    "INSERT INTO answer VALUES (?, ?, ?) "
    "ON CONFLICT (execution, key) DO UPDATE SET body = excluded.body"
)
REQUEST = (
    "INSERT INTO request (id, execution, key, kind, status, created, wake, body, received, digest, "
    "told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
    "SET status = excluded.status, wake = excluded.wake, told = excluded.told"
)
TASK = (
    "INSERT INTO request (id, execution, key, kind, status, created, wake, body, received, digest, "
    "told) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, 0)"
)
SETTLED = "UPDATE request SET status = ?, wake = ?, answer = ? WHERE id = ? AND status = 'open'"
SIGN = "UPDATE request SET received = ?, wake = ? WHERE id = ? AND status = 'open'"
"""What becomes of a request by task token."""
TAKEN_UP = "UPDATE request SET wake = NULL WHERE id = ? AND status = 'answered'"
"""Its answer has been gone on with."""
WHILE_OPEN = " WHERE request.status = 'open'"
PAUSE = (
    "UPDATE execution SET status = 'PAUSED', wake = ("
    "SELECT min(due) FROM (SELECT ? AS due UNION ALL "
    "SELECT wake FROM request WHERE execution = ? AND status IN ('open', 'answered'))) "
    "WHERE number = ?"
)
"""An answer that nobody has gone on with yet is due at once: its `wake` is 0."""
ABORTED = (
    f"{BELOW} UPDATE execution SET status = 'ABORTED', ended = ?, wake = NULL "
    "WHERE number IN below AND status IN ('RUNNING', 'PAUSED')"
)
CLOSED = (
    f"{BELOW} UPDATE request SET status = 'closed' WHERE execution IN below AND status = 'open'"
)
"""What the end of an execution means to those that it has started."""
CUT_OFF = (
    "WITH RECURSIVE below (number) AS ("
    "SELECT number FROM execution WHERE parent = ?1 AND name IN ("
    "SELECT json_extract(CAST(substr(body, 10) AS TEXT), '$[0]') FROM answer "  # after its checksum
    f"WHERE execution = ?1 AND substr(key, 1, ?2) = ?3 AND key LIKE '%{STARTED}') UNION ALL "
    "SELECT e.number FROM execution e JOIN below ON e.parent = below.number)"
)
"""The executions that the machines below some path have started, and those that they have."""
CUT = (
    f"{CUT_OFF} UPDATE execution SET status = 'ABORTED', ended = ?4, wake = NULL "
    "WHERE number IN below AND status IN ('RUNNING', 'PAUSED')"
)
CUT_REQUESTS = (
    f"{CUT_OFF} UPDATE request SET status = 'closed', wake = NULL "
    "WHERE execution IN below AND status = 'open'"
)
PAST = (
    f"{BELOW} DELETE FROM position WHERE execution IN below",
    f"{BELOW} DELETE FROM answer WHERE execution IN below",
)
"""What its success means to them."""
RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?)"


def addressed(target: str) -> str:
    """Return that by which the requests for a resource are found."""
    return sha256(target.encode()).hexdigest()


def put_sign(store: SqliteStore, task: Awaited) -> None:
    """Keep that somebody has taken a task, or is at work on it."""
    store.write(SIGN, store.packed(encoded(_signs(task))), task.due, task.token)


def put_outcome(store: SqliteStore, task: Awaited) -> None:
    """Keep what became of a task that was open."""
    if task.outcome is None:
        store.write(SETTLED, task.status, None, None, task.token)
    else:
        store.write(SETTLED, task.status, 0.0, store.packed(encoded(task.outcome)), task.token)


def _signs(task: Awaited) -> Json:
    return [task.taken, task.worker, task.beat]


class _Done(Awaitable[None]):
    """What needs not be waited for."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


_DONE = _Done()


def linked(chain: bytes, path: str, body: bytes) -> bytes:
    """Return the hash of a record and of all before it, of which *chain* is the hash."""
    return sha256(b"%s%s\n%s" % (chain, path.encode(), body)).digest()


class SqliteJournal:
    """Writes one execution; reads what an earlier process has written."""

    def __init__(self, store: SqliteStore, number: int, chain: bytes, records: int = 0) -> None:
        self.store = store
        self.number = number
        self.chain = chain
        """The hash of the last record."""
        self.records = self.found = records
        """How many records there are, and how many there were at first."""
        self.positions: dict[str, Json] = {}
        self.answers: dict[str, Json] = {}
        self.requests: dict[str, Asked] = {}
        self.tasks: dict[str, Awaited] = {}
        self.recorded: dict[str, int] = {}
        self._first: dict[str, int] = {}
        """The number of the first record of each machine."""
        self.spending: Json = None
        self.may_have_started = True
        """Whether there may be executions that this one has started."""
        self.saved: list[tuple[str, str]] = []
        self.paused = False
        self.programs: Callable[[str], Program] | None = None
        """Gives the program of a document by its hash."""
        self._standing: tuple[Json, str] | None = None

    @property
    def reached(self) -> Callable[[str], object]:
        """What is called at the instants at which a test may end the process."""
        return self.store.reached

    def load(self) -> None:
        """Read what an earlier process has written."""
        store, number = self.store, self.number
        rows, unpacked = store.rows, store.unpacked
        for path, body in rows("SELECT path, body FROM position WHERE execution = ?", number):
            self.positions[path] = unpacked(body, path)
        for key, body in rows("SELECT key, body FROM answer WHERE execution = ?", number):
            self.answers[key] = unpacked(body, key)
        found = "SELECT usage, status, chain FROM execution WHERE number = ?"
        for body, status, self.chain in rows(found, number):
            self.spending = None if body is None else unpacked(body)
            self.paused = status == "PAUSED"
        checkpoints = "SELECT id, name FROM checkpoint WHERE execution = ? ORDER BY number"
        self.saved = [(id, name) for id, name in rows(checkpoints, number)]
        for asked in store.requests("execution = ?", number):
            self.requests[asked.key] = asked
        for task in store.tasks("execution = ?", number):
            self.tasks[task.key] = task
        counts = "SELECT path, count(*), min(number) FROM record WHERE execution = ? GROUP BY path"
        for path, count, first in rows(counts, number):
            self.recorded[path], self._first[path] = count, first
        last = "SELECT number, hash FROM record WHERE execution = ? ORDER BY number DESC LIMIT 1"
        for self.records, self.chain in rows(last, number):
            self.found = self.records

    def history(self, after: int = 0) -> Iterator[tuple[str, Json]]:
        """Yield path and JSON of the records that were there at first, in order.

        Those up to the number *after* are left out. Raises StoreDamaged for one that was changed.
        """
        rows = self.store.rows
        chain = "SELECT chain FROM execution WHERE number = ?"
        before = "SELECT hash FROM record WHERE execution = ? AND number = ?"
        last = (rows(before, self.number, after) if after else rows(chain, self.number))[0][0]
        query = (
            "SELECT number, path, body, hash FROM record "
            "WHERE execution = ? AND number > ? AND number <= ? ORDER BY number"
        )
        found = rows(query, self.number, after, self.found)
        for expected, (number, path, body, kept) in enumerate(found, after + 1):
            last = linked(last, path, body)
            self.store.check(number == expected and last == kept, f"record {expected}")
            yield path, self._record(body)

    def _record(self, body: bytes) -> Json:
        return [self._whole(slot) for slot in self.store.unpacked(body)]

    def begin(self, reader: RecordReader) -> None:
        """Let *reader* read by the document with which the execution began."""
        query = "SELECT body FROM record WHERE execution = ? AND path = ? ORDER BY number"
        for (body,) in self.store.rows(query, self.number, WHOLE_PATH):
            details = self._record(body)[-1]["json"]
            if "replaced" in details:
                reader.begin(details["replaced"])
                return

    @property
    def visits(self) -> int:
        """How many states the top machine has entered."""
        query = (
            "SELECT body FROM record WHERE execution = ? AND path = '' ORDER BY number DESC LIMIT 1"
        )
        for (body,) in self.store.rows(query, self.number):
            return int(self.store.unpacked(body)[2]) + 1
        return 0

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has had, by its hash."""
        assert self.programs is not None
        return self.programs(document)

    def records_of(self, reader: RecordReader) -> Iterator[Record]:
        """Yield the records that were there at first; *reader* makes them of what is written."""
        self.begin(reader)
        for path, body in self.history():
            yield reader.read(path, body)

    def drop_answer(self, key: str) -> None:
        """Forget an answer."""
        query = "DELETE FROM answer WHERE execution = ? AND key = ?"
        self.store.write(query, self.number, key)

    def close_requests(self, within: str = "") -> None:
        """Let nobody decide any more on what is open, of machines whose paths begin so."""
        closed = (
            "UPDATE request SET status = 'closed', wake = NULL "
            "WHERE execution = ? AND status = 'open' AND substr(key, 1, ?) = ?"
        )
        self.store.write(closed, self.number, len(within), within)

    def cut_off(self, within: str, now: float) -> None:
        """Give up the machines whose paths begin so: what they ask, what they have started."""
        self.close_requests(within)
        if self.may_have_started:
            for statement, *values in ((CUT, now), (CUT_REQUESTS,)):
                self.store.write(statement, self.number, len(within), within, *values)

    def take_up(self, id: str) -> None:
        """Say that the answer to a request has been gone on with."""
        self.store.write(TAKEN_UP, id)

    def drop_closed_requests(self) -> None:
        """Forget the requests that nobody has decided on: people are asked again."""
        closed = "DELETE FROM request WHERE execution = ? AND status = 'closed'"
        self.store.write(closed, self.number)

    def first_record(self, path: str) -> Json:
        """Return the first record of a machine that was there at first, None for none."""
        if path not in self._first:
            return None
        query = "SELECT body FROM record WHERE execution = ? AND number = ?"
        ((body,),) = self.store.rows(query, self.number, self._first[path])
        return self.store.unpacked(body)

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Keep where a machine stands; its earlier answers, and all below it, are past.

        Of the machines that it has forked, those whose paths begin with *kept* stay. Returns the
        size of the position in bytes.
        """
        store, number = self.store, self.number
        below, beyond = f"{path}/", f"{path}0"  # "0" is the character after "/"
        for table, column in (("answer", "key"), ("position", "path")):
            past = f"DELETE FROM {table} WHERE execution = ? AND {column} >= ? AND {column} < ?"
            if kept is None:
                store.write(past, number, below, beyond)
            else:
                spared = f" AND substr({column}, 1, ?) <> ?"
                store.write(past + spared, number, below, beyond, len(kept), kept)
        text = encoded(position)
        store.write(POSITION, number, path, store.packed(text, path))
        return len(text)

    def stand(self, position: Json, kept: str) -> None:
        """Say where the top machine stands at the end, if the execution has not succeeded."""
        self._standing = position, kept

    def put_answer(self, key: str, answer: Json) -> int:
        """Keep an answer; returns its size in bytes."""
        text, store = encoded(answer), self.store
        store.write(ANSWER, self.number, key, store.packed(text, key))
        return len(text)

    @property
    def latest(self) -> tuple[int, int]:
        """Stands for what was put last, as long as it is not written."""
        return self.store.latest

    def put_child(self, path: str, outcome: Json, instead: tuple[int, int] | None) -> int:
        """Keep what a child came to, *instead* of its last answer where that is not written yet."""
        text, store = encoded(outcome), self.store
        if instead is None:
            store.write(ANSWER, self.number, path, store.packed(text, path))
        else:
            store.replace(instead, ANSWER, self.number, path, store.packed(text, path))
        return len(text)

    def put_record(self, path: str, record: Json) -> None:
        """Append a record, chained to the one before it."""
        text = encoded(record)
        if len(text) >= LARGE:
            text = encoded([self._large(slot) for slot in record])
        body = self.store.packed(text)
        self.records += 1
        self.chain = linked(self.chain, path, body)
        self.store.append(RECORD, self.number, self.records, path, body, self.chain)

    def _large(self, slot: Json) -> Json:
        """Refer to a large value instead of repeating it in every record."""
        if type(slot) is dict and "json" in slot:
            body = self.store.packed(encoded(slot["json"]))
            if body[:1] == b"#":
                return {"large": body[1:].hex()}
        return slot

    def _whole(self, slot: Json) -> Json:
        if type(slot) is dict and "large" in slot:
            return {"json": self.store.unpacked(b"#" + bytes.fromhex(slot["large"]))}
        return slot

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; what another storage holds is not kept twice."""
        kept = checkpoint.kept()
        if checkpoint.storage != "default":
            kept |= {"data": None, "variables": {}}
        self.saved.append((checkpoint.id, checkpoint.name))
        self.store.write(
            "INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?)",
            self.number,
            len(self.saved),
            checkpoint.id,
            checkpoint.name,
            self.store.packed(encoded(kept)),
        )

    def put_spending(self, spending: Json) -> None:
        """Keep what the execution has spent."""
        body = self.store.packed(encoded(spending))
        self.store.write("UPDATE execution SET usage = ? WHERE number = ?", body, self.number)

    def put_request(self, asked: Asked, received: bool = False) -> None:
        """Keep a request, or what became of an open one.

        Approvals may come meanwhile by another process; *received* puts those that came here.
        """
        body = encoded([asked.body, asked.plan])
        answers = self.store.packed(encoded(asked.received))
        self.store.write(
            REQUEST + (", received = excluded.received" if received else "") + WHILE_OPEN,
            asked.id,
            self.number,
            asked.key,
            asked.kind,
            asked.status,
            asked.created,
            asked.wake,
            self.store.packed(body),
            answers,
            asked.digest,
            asked.told,
        )

    def put_task(self, task: Awaited) -> None:
        """Keep a new request that is answered by its token."""
        body = [task.target, task.state, task.payload, task.timeout, task.heartbeat]
        packed = self.store.packed
        self.store.write(
            TASK,
            task.token,
            self.number,
            task.key,
            task.kind,
            task.created,
            task.due,
            packed(encoded(body)),
            packed(encoded(_signs(task))),
            addressed(task.target),
        )

    def put_sign(self, task: Awaited) -> None:
        """Keep that somebody has taken a task, or is at work on it."""
        put_sign(self.store, task)

    def put_outcome(self, task: Awaited) -> None:
        """Keep what became of a task that was open."""
        put_outcome(self.store, task)

    def look(self, task: Awaited) -> None:
        """Read what others have said of a task meanwhile."""
        for seen in self.store.tasks("id = ?", task.token):
            task.status, task.outcome = seen.status, seen.outcome
            task.taken, task.worker, task.beat = seen.taken, seen.worker, seen.beat

    def put_result(self, result: Result, until: float | None = None) -> None:
        """Say what the execution came to, or that it waits: *until* something happens, at most."""
        if result.status == "PAUSED":
            ends = (result.execution.deadline, until)
            self.put_pause(min((each for each in ends if each is not None), default=None))
        else:
            self.put_end(result.status, result.ended, result.output, result.error, result.cause)

    def put_pause(self, deadline: float | None) -> None:
        """Say that the execution waits for people, and when it is worth to go on."""
        self.store.write(PAUSE, deadline, self.number, self.number)
        self.reached("pause.put")

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Say what the execution came to; after a success nothing can go on any more."""
        store, number = self.store, self.number
        if status == "SUCCEEDED":
            for table in ("position", "answer"):
                store.write(f"DELETE FROM {table} WHERE execution = ?", number)
        elif self._standing is not None:
            position, kept = self._standing
            self.put_position("", position, kept)
        store.write(
            "UPDATE execution SET status = ?, ended = ?, wake = NULL, output = ?, error = ?, "
            "cause = ? WHERE number = ?",
            status,
            ended,
            store.packed(encoded(output)),
            error,
            cause,
            number,
        )
        self.close_requests()
        if self.may_have_started:
            store.write(ABORTED, number, ended)
            for statement in (CLOSED, *PAST) if status == "SUCCEEDED" else (CLOSED,):
                store.write(statement, number)
        self.reached("end.put")

    def put_life(
        self,
        now: float,
        redrives: int,
        event: str,
        details: dict[str, Json],
        ending: tuple[float, str, dict[str, Json]] | None,
        document: str,
    ) -> None:
        """Let an execution begin anew after its *ending*; None where its process has died."""
        write, number = self.store.write, self.number
        if ending is not None:
            self.put_record(WHOLE_PATH, written_whole(*ending))
        self.put_record(WHOLE_PATH, written_whole(now, event, details))
        write(
            "UPDATE execution SET status = 'RUNNING', ended = NULL, wake = NULL, output = NULL, "
            "error = NULL, cause = NULL, redrives = ?, redriven = ?, document = ? WHERE number = ?",
            redrives,
            now,
            document,
            number,
        )

    def flush(self) -> None:
        """Make all that was put durable at once."""
        self.store.flush()

    def commit(self, in_event_loop: bool) -> Awaitable[None]:
        """Return what is done when all that was put is durable."""
        if not in_event_loop:
            self.store.flush()
            return _DONE
        return self.store.flush_soon()

    def commit_soon(self) -> None:
        """Make all that was put durable by the end of this turn of the event loop."""
        self.store.flush_soon()
