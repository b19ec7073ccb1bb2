"""The journal of one execution in a store (protocol `asl.engine.journal.Journal`).

What the execution does is put into its log; beside it stand the rows that others look for: its
requests, its checkpoints, what it has spent and what it came to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import Any

from asl.core.values import Json, encode
from asl.engine.checkpoints import Checkpoint
from asl.engine.journal import STARTED
from asl.engine.pending_callback import PendingCallback
from asl.engine.record_reader import RecordReader, read_beginning
from asl.engine.record_writer import includes_next_stretch, write_execution_record
from asl.engine.records import STRETCH, TOLD, WHOLE_PATH
from asl.engine.result import Result
from asl.program import Program
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import Record
from asl.states.errors import Cancelled
from asl.stores import log, requests
from asl.stores.backend import Write
from asl.stores.checkpoints import checkpoint_names, put_checkpoint
from asl.stores.executions import end_descendants
from asl.stores.log import RECORDS, Log, LogCompaction
from asl.stores.session import Session
from asl.stores.statements import PARAMETER, Select, Update, is_set, one_of
from asl.stores.tables import EXECUTION, REQUEST
from asl.stores.workers import Workers

__all__ = ["FAIL_POINTS", "StoreJournal"]

FAIL_POINTS = ("pause.put", "end.put")
"""The instants at the end of a run at which a process may die; see `StoreJournal.reached`."""

USAGE = Update(EXECUTION, {"usage": PARAMETER}, {"number": PARAMETER})
END = Update(
    EXECUTION,
    {
        "status": PARAMETER,
        "ended": PARAMETER,
        "wake": None,
        "output": PARAMETER,
        "error": PARAMETER,
        "cause": PARAMETER,
    },
    {"number": PARAMETER},
)
BEGIN_ANEW = Update(
    EXECUTION,
    {
        "status": "RUNNING",
        "ended": None,
        "wake": None,
        "output": None,
        "error": None,
        "cause": None,
        "redrives": PARAMETER,
        "redriven": PARAMETER,
        "document": PARAMETER,
    },
    {"number": PARAMETER},
)
PAUSE = Update(EXECUTION, {"status": "PAUSED", "wake": PARAMETER}, {"number": PARAMETER})
WAKES = Select(
    REQUEST,
    ("wake",),
    {"execution": PARAMETER, "status": one_of("open", "answered"), "wake": is_set()},
)
FOUND = Select(EXECUTION, ("usage", "status"), {"number": PARAMETER})


def _pause(session: Session, number: int, deadline: float | None) -> Iterator[Write]:
    """Yield the change that says until when an execution waits, at most.

    An answer that nobody has gone on with yet is due at once: its `wake` is 0.
    """
    wakes = [wake for (wake,) in session.connection.select(WAKES, (number,))]
    if deadline is not None:
        wakes.append(deadline)
    yield PAUSE, (min(wakes, default=None), number)


class _Done(Awaitable[None]):
    """What needs not be waited for."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


_DONE = _Done()


class StoreJournal(Log):
    """Writes one execution; reads what an earlier process has written."""

    def __init__(self, store: Session, number: int, name: str) -> None:
        super().__init__(store, number)
        self.name = name
        """The name of the execution, for messages."""
        self.at_work, self.reached = store.at_work, store.reached
        self.commit_soon: Callable[[], object] = store.flush_soon
        self.found = 0
        """How many steps there were at first."""
        self.positions: dict[str, Json] = {}
        self.answers: dict[str, Json] = {}
        self.requests: dict[str, ApprovalRequest] = {}
        self.tasks: dict[str, PendingCallback] = {}
        self.recorded: dict[str, int] = {}
        self.began: dict[str, Json] = {}
        self.lives: dict[str, tuple[int, float | None]] = {}
        self._life: tuple[int, float | None] = 0, None
        """How often the execution had been redriven by the record read last, and when."""
        self.visits = 0
        """How many states the top machine has entered."""
        self.spending: Json = None
        self.may_have_started = True
        """Whether there may be executions that this one has started."""
        self.may_have_asked = True
        """Whether there may be requests of it."""
        self._started: dict[str, str] = {}
        """The names of those that states have, by the key of the effect."""
        self._decided: set[str] = set()
        """The requests that people have decided and nobody has gone on with."""
        self.saved: list[tuple[str, str]] = []
        self.paused = False
        self.programs: Callable[[str], Program] | None = None
        """Gives the program of a document by its hash."""
        self.reader_session: Callable[[], Session] | None = None
        """Return the session of the thread that reads the records found at recovery."""
        self._standing: tuple[Json, str] | None = None
        self._has_shown = False
        self.watched: int | None = None
        """The execution whose cancellation ends this one, None where a runner looks for that."""
        self.cancellation: tuple[str | None, str | None] | None = None
        """Error and cause of the cancellation, once it was seen."""
        self._version = -1

    def begin_anew(self, chain: bytes) -> None:
        """Know that the execution is new; *chain* stands for the step before its first."""
        self.chain = chain
        self.may_have_started = self.may_have_asked = False

    # What an earlier process has written

    def load(self) -> None:
        """Read what an earlier process has written."""
        store, number = self.store, self.number
        self.chain, last, _ = self.ends()
        if not last:  # it has done nothing yet
            return
        for body, status in store.select(FOUND, number):
            self.spending = None if body is None else store.values.unpack(body)
            self.paused = status == "PAUSED"
        self.saved += checkpoint_names(store, number)
        asked_of = requests.find_requests(store, requests.OF_EXECUTION, number)
        self.requests.update((asked.key, asked) for asked in asked_of)
        for task in requests.find_tasks(store, requests.OF_EXECUTION, number):
            self.tasks[task.key] = task
        alive, digests = LogCompaction(self.positions, self.answers), dict[str, str]()
        for steps, chain, entries in self.read():
            self.steps, self.chain = steps, chain
            for what, where, *content in entries:
                if what in RECORDS:
                    self._count(where, *content)
                    digests.update(self.requested(content[0], entries))
                    if what == "last":
                        alive.answer(where, self.outcome(content[0], entries))
                elif what != "filled":
                    getattr(alive, what)(where, *content)
        self.found = self.steps
        for asked in asked_of:
            store.check(
                asked.content_digest == digests.get(asked.id, asked.content_digest),
                f"what the request {asked.id} asks",
            )
        for key, answer in self.answers.items():
            if key.endswith(STARTED):
                self._started[key.removesuffix(STARTED)] = answer[0]
        decisions = requests.find_decisions(store, requests.OF_EXECUTION, number)
        self._decided = set(decisions)
        self.answers |= dict(decisions.values())

    def _count(self, path: str, record: Json) -> None:
        known, more = self.recorded.get(path, 0), includes_next_stretch(record)
        self.recorded[path] = known + 1 + more
        if path == "":
            self.visits = record[2] + 1 + more
        elif path == WHOLE_PATH:
            details = record[-1]["json"]
            if "redriveCount" in details:
                self._life = details["redriveCount"], record[1]
        elif known == 0 and record[0] != TOLD:
            self.began[path] = read_beginning(record)
            if record[0] == STRETCH and record[3] is None:
                self.lives[path] = self._life

    def program(self, document: str) -> Program:
        """Return the program of a document that the execution has had, by its hash."""
        assert self.programs is not None
        return self.programs(document)

    def records_of(self, reader: RecordReader) -> Iterator[Record]:
        """Yield the records that were there at first; *reader* makes them of what is written."""
        store = self.store if self.reader_session is None else self.reader_session()
        return Log(store, self.number).records(reader, self.found)

    def reading(self) -> AbstractContextManager[None]:
        """Return a context that raises StoreDamaged for content of an unexpected shape."""
        return self.store.reading(f"the execution {self.name!r}")

    # The log

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Keep where a machine stands; its earlier answers, and all below it, are past.

        Of what is below it, that stays whose key begins with *kept*. Returns the size of the
        position in bytes.
        """
        return self.put("position", path, position, kept)

    def stand(self, position: Json, kept: str) -> None:
        """Say where the top machine stands at the end, if the execution has not succeeded."""
        self._standing = position, kept

    def put_answer(self, key: str, answer: Json) -> int:
        """Keep an answer; returns its size in bytes."""
        return self.put("answer", key, answer)

    def put_started(self, key: str, name: str, started: float) -> None:
        """Keep which execution an effect has started, and when."""
        self._started[key] = name
        self.put_answer(key + STARTED, [name, started])

    def drop_answer(self, key: str) -> None:
        """Forget an answer."""
        self.put("void", key)

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        self.put("record", path, record)

    def put_last_record(self, path: str, record: Json) -> int:
        """Append a child's last record, which says what it came to; returns its size in bytes."""
        return self.put("last", path, record)

    def put_filled(self, path: str, values: Json) -> None:
        """Keep what the data has filled in, in the machine of an included document."""
        self.put("filled", path, values)

    # Requests

    def put_request(self, asked: ApprovalRequest, received: bool = False) -> None:
        """Keep a request, or what became of an open one; with *received* its answers, too."""
        self.may_have_asked = True
        requests.put_request(self.store, self.number, asked, received)

    def put_task(self, task: PendingCallback) -> None:
        """Keep a new request that is answered by its token."""
        self.may_have_asked = True
        requests.put_task(self.store, self.number, task)

    def put_sign(self, task: PendingCallback) -> None:
        """Keep that somebody has taken a task, or is at work on it."""
        requests.put_sign(self.store, task)

    def put_outcome(self, task: PendingCallback) -> None:
        """Keep what became of a task that was open."""
        requests.put_outcome(self.store, task)

    def look(self, task: PendingCallback) -> None:
        """Read what others have said of a task meanwhile."""
        for seen in requests.find_tasks(self.store, requests.BY_ID, task.token):
            task.status, task.outcome = seen.status, seen.outcome
            task.taken, task.worker, task.beat = seen.taken, seen.worker, seen.beat

    def take_up(self, id: str) -> bool:
        """Say that the answer to a request has been gone on with.

        Whether it is a decision of people that has to be put into the journal yet.
        """
        requests.take_up(self.store, id)
        is_new = id in self._decided
        self._decided.discard(id)
        return is_new

    def drop_request(self, asked: ApprovalRequest) -> None:
        """Forget a request and its answer."""
        requests.drop_request(self.store, asked.id)
        self.drop_answer(asked.key)

    def decision(self, asked: ApprovalRequest) -> Json:
        """Return the recorded decision on a request, None while there is none.

        People may decide in another process at any time.
        """
        found = requests.find_decisions(self.store, requests.BY_ID, asked.id)
        for id, (_, decided) in found.items():
            self._decided.add(id)
            return decided
        return None

    def close_requests(self) -> None:
        """Let nobody decide any more on what is open."""
        if self.may_have_asked:
            requests.close_requests(self.store, self.number)

    def drop_vain_requests(self) -> None:
        """Forget the requests that came to nothing: they are made again."""
        requests.drop_vain_requests(self.store, self.number)

    def cut_off(self, within: str, now: float) -> None:
        """Give up the machines whose paths begin so: what they ask, what they have started."""
        if self.may_have_asked:
            requests.close_requests(self.store, self.number, within)
        if self.may_have_started:
            names = [name for key, name in self._started.items() if key.startswith(within)]
            if names:
                self.store.write(end_descendants, self.store, self.number, now, names)

    # What the execution saves, spends and comes to

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint; what another storage holds is not kept twice."""
        kept = checkpoint.kept()
        if checkpoint.storage != "default":
            kept |= {"data": None, "variables": {}}
        self.saved.append((checkpoint.id, checkpoint.name))
        put_checkpoint(self.store, self.number, len(self.saved), checkpoint, kept)

    def put_spending(self, spending: Json) -> None:
        """Keep what the execution has spent."""
        body = self.store.values.pack(encode(spending))
        self.store.write(USAGE, body, self.number)

    def put_result(self, result: Result, until: float | None = None) -> None:
        """Say what the execution came to, or that it waits: *until* something happens, at most."""
        if self._has_shown:
            log.drop_chunks(self.store, self.number)
        if result.status == "PAUSED":
            Workers(self.store).put_timer(self.number, result.wake)
            ends = (result.execution.deadline, until, result.wake)
            self.put_pause(min((each for each in ends if each is not None), default=None))
        else:
            self.put_end(result.status, result.ended, result.value, result.error, result.cause)

    def put_pause(self, deadline: float | None) -> None:
        """Say that the execution waits for people, and when it is worth to go on."""
        self.store.write(_pause, self.store, self.number, deadline)
        self.reached("pause.put")

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Say what the execution came to; after a success nothing can go on any more."""
        store, number = self.store, self.number
        if status != "SUCCEEDED" and self._standing is not None:
            position, kept = self._standing
            self.put_position("", position, kept)
        store.write(END, status, ended, store.values.pack(encode(output)), error, cause, number)
        self.close_requests()
        if self.may_have_started:
            store.write(end_descendants, store, number, ended)
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
        if ending is not None:
            self.put_record(WHOLE_PATH, write_execution_record(*ending))
        self.put_record(WHOLE_PATH, write_execution_record(now, event, details))
        self.store.write(BEGIN_ANEW, redrives, now, document, self.number)

    def show(self, chunk: Json) -> None:
        """Show what an agent says to those who follow the execution, before it is recorded."""
        self._has_shown = True
        log.put_chunk(self.store, self.number, chunk)

    # Its end from outside

    def is_cancelled(self) -> bool:
        """Whether another process has asked for the end of the execution that is watched."""
        if self.watched is None:
            return False
        version = self.store.foreign_version
        if self.cancellation is None and version != self._version:
            self._version = version
            self.cancellation = Workers(self.store).cancellation(self.watched)
        return self.cancellation is not None

    def _heed(self) -> None:
        if self.is_cancelled():
            raise Cancelled

    def flush(self) -> None:
        """Make all that was put durable at once; raises Cancelled for what is to end."""
        self._heed()
        self.store.flush()

    def commit(self, together: bool) -> Awaitable[None]:
        """Return what is done when all that was put is durable.

        *together* with what others put in this turn of the event loop, otherwise at once.
        Raises Cancelled for an execution that is to end.
        """
        self._heed()
        if not together:
            self.store.flush()
            return _DONE
        return self.store.flush_soon()
