"""The journal of one execution in a store (protocol `asl.engine.journal.Journal`).

It is a log and nothing else. What an execution puts between two commits is one *step*: a row with a
JSON array of entries, and a hash of them and of all steps before.

    ["record", path of the machine, record]     told by the history
    ["answer", key of the effect, answer]       or the outcome of a child, under its path
    ["position", path, position, kept]          what stood below the path is past, but for *kept*
    ["void", key]                               the answer does not count any more

A content from 64 KiB on is `{"large": hash}`. A record may say `{"entry": n}` for the value of the
answer that is the entry *n* of the same step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asl.core.values import Json, compact, encoded
from asl.engine.journal import STARTED, WHOLE_PATH, read_beginning, written_whole
from asl.stores.schema import LARGE, MOST
from asl.stores.sqlite import BELOW, StoreDamaged

if TYPE_CHECKING:
    from asl.engine.awaited import Awaited
    from asl.engine.checkpoints import Checkpoint
    from asl.engine.journal import RecordReader
    from asl.engine.result import Result
    from asl.program import Program
    from asl.states.decisions import Asked
    from asl.states.host import Record
    from asl.stores.sqlite import SqliteStore, Write

__all__ = ["FAIL_POINTS", "SqliteJournal", "addressed", "put_outcome", "put_sign"]

FAIL_POINTS = ("pause.put", "end.put")
"""The instants at the end of a run at which a process may die; see `SqliteJournal.reached`."""

BEGINNING = "SELECT chain, step FROM execution JOIN head ON execution = number WHERE number = ?"
"""The hash before the first step, and the number of the last one."""
STEP = "INSERT INTO step (execution, number, hash, body) VALUES (?, ?, ?, ?)"
STEPS = (
    "SELECT number, hash, body FROM step WHERE execution = ? AND number > ? AND number <= ? "
    "ORDER BY number LIMIT 100"
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
    "SELECT number FROM execution WHERE parent = ?1 AND name IN (SELECT value FROM json_each(?2)) "
    "UNION ALL SELECT e.number FROM execution e JOIN below ON e.parent = below.number)"
)
"""The executions of these names that one has started, and those that they have."""
CUT = (
    f"{CUT_OFF} UPDATE execution SET status = 'ABORTED', ended = ?3, wake = NULL "
    "WHERE number IN below AND status IN ('RUNNING', 'PAUSED')"
)
CUT_REQUESTS = (
    f"{CUT_OFF} UPDATE request SET status = 'closed', wake = NULL "
    "WHERE execution IN below AND status = 'open'"
)


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


class SqliteJournal:
    """Writes one execution; reads what an earlier process has written."""

    chain: bytes
    """The hash of the last step, known to whoever adds one."""

    def __init__(self, store: SqliteStore, number: int, found: int = 0) -> None:
        self.store = store
        self.number = number
        self.steps = 0
        """How many steps there are."""
        self.found = found
        """How many there were at first."""
        self._entries: list[bytes] = []
        """Those of the next one."""
        self._size = 0
        """Their bytes."""
        self._is_due = False
        """Whether the next transaction asks for a step."""
        self.positions: dict[str, Json] = {}
        self.answers: dict[str, Json] = {}
        self.requests: dict[str, Asked] = {}
        self.tasks: dict[str, Awaited] = {}
        self.recorded: dict[str, int] = {}
        self.began: dict[str, Json] = {}
        self.visits = 0
        """How many states the top machine has entered."""
        self.spending: Json = None
        self.may_have_started = True
        """Whether there may be executions that this one has started."""
        self._started: dict[str, str] = {}
        """The names of those that states have, by the key of the effect."""
        self._decided: dict[str, tuple[str, Json]] = {}
        """What people have decided that is no answer of the journal yet; see `take_up`."""
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
        self.chain, _ = self._ends()
        found = "SELECT usage, status FROM execution WHERE number = ?"
        for body, status in store.rows(found, number):
            self.spending = None if body is None else store.unpacked(body)
            self.paused = status == "PAUSED"
        checkpoints = "SELECT id, name FROM checkpoint WHERE execution = ? ORDER BY number"
        self.saved = [(id, name) for id, name in store.rows(checkpoints, number)]
        for asked in store.requests("execution = ?", number):
            self.requests[asked.key] = asked
        for task in store.tasks("execution = ?", number):
            self.tasks[task.key] = task
        alive = _Alive(self.positions, self.answers)
        for steps, chain, entries in self.read():
            self.steps, self.chain = steps, chain
            for what, where, *content in entries:
                if what == "record":
                    self._count(where, *content)
                else:
                    getattr(alive, what)(where, *content)
        self.found = self.steps
        for key, answer in self.answers.items():
            self._remember(key, answer)
        self._decided = store.decisions(number)
        self.answers |= dict(self._decided.values())

    def _count(self, path: str, record: Json) -> None:
        known = self.recorded.get(path, 0)
        self.recorded[path] = known + 1
        if path == "":
            self.visits = record[2] + 1
        elif known == 0 and path != WHOLE_PATH:
            self.began[path] = read_beginning(record)

    def read(self, after: int = 0, last: int = 2**62) -> Iterator[tuple[int, bytes, list[Json]]]:
        """Yield number, hash and entries of each step behind the one *after*, up to the *last*.

        Raises StoreDamaged for a step that was changed.
        """
        store, number = self.store, self.number
        hash, end = self._ends()
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

    def _ends(self) -> tuple[bytes, int]:
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

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has had, by its hash."""
        assert self.programs is not None
        return self.programs(document)

    def records_of(self, reader: RecordReader) -> Iterator[Record]:
        """Yield the records that were there at first; *reader* makes them of what is written."""
        self.begin(reader)
        for _, _, entries in self.read(last=self.found):
            for path, record in self.told(entries):
                yield reader.read(path, record)

    def drop_answer(self, key: str) -> None:
        """Forget an answer."""
        self._put("void", key)

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
            names = [name for key, name in self._started.items() if key.startswith(within)]
            for statement, *values in ((CUT, now), (CUT_REQUESTS,)):
                self.store.write(statement, self.number, compact(names), *values)

    def take_up(self, id: str) -> None:
        """Say that the answer to a request has been gone on with."""
        self.store.write(TAKEN_UP, id)
        if id in self._decided:
            self.put_answer(*self._decided.pop(id))

    def drop_closed_requests(self) -> None:
        """Forget the requests that nobody has decided on: people are asked again."""
        closed = "DELETE FROM request WHERE execution = ? AND status = 'closed'"
        self.store.write(closed, self.number)

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Keep where a machine stands; its earlier answers, and all below it, are past.

        Of the machines that it has forked, those whose paths begin with *kept* stay. Returns the
        size of the position in bytes.
        """
        return self._put("position", path, position, kept)

    def stand(self, position: Json, kept: str) -> None:
        """Say where the top machine stands at the end, if the execution has not succeeded."""
        self._standing = position, kept

    def put_answer(self, key: str, answer: Json) -> int:
        """Keep an answer; returns its size in bytes."""
        self._remember(key, answer)
        return self._put("answer", key, answer)

    def _remember(self, key: str, answer: Json) -> None:
        if key.endswith(STARTED):
            self._started[key] = answer[0]

    @property
    def latest(self) -> tuple[int, int]:
        """Stands for what was put last: its step, and which entry of that it is."""
        return self.steps, len(self._entries) - 1

    def put_child(self, path: str, outcome: Json, instead: tuple[int, int] | None) -> int:
        """Keep what a child came to, *instead* of its last answer where that is not written yet."""
        if instead is None or instead[0] != self.steps:
            return self._put("answer", path, outcome)
        self._entries[instead[1]] = text = self._text("answer", path, outcome)
        return len(text)

    def reference(self, answer: tuple[int, int]) -> Json:
        """Return what stands in a record for the value of an answer, None once that is written."""
        step, entry = answer
        return {"entry": entry} if step == self.steps else None

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        self._put("record", path, record)

    def _put(self, what: str, where: str, *content: Json) -> int:
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

    def _whole(self, value: Json) -> Json:
        if type(value) is dict and "large" in value:
            return self.store.large(bytes.fromhex(value["large"]))
        return value

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
        if status != "SUCCEEDED" and self._standing is not None:
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
            store.write(CLOSED, number)
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


class _Alive:
    """The positions and answers that count: those behind which no position stands."""

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
