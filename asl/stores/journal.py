"""The journal of one execution in a store (protocol `asl.engine.journal.Journal`).

The log records the execution. Further rows hold its requests, checkpoints, usage and result, for
queries.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from math import inf
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
from asl.states.errors import ExecutionCancellation
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
"""Points at the end of a run at which tests kill the process; see `StoreJournal.reached`."""

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
_TOP_VISIT = re.compile(r"/[^@]*@(\d+)")


def _top_visit(path: str) -> float:
    """Return the visit of the top machine that a machine belongs to; infinite for the top one."""
    found = _TOP_VISIT.match(path)
    return inf if found is None else int(found[1])


def _pause(session: Session, number: int, deadline: float | None) -> Iterator[Write]:
    """Yield the change that pauses an execution until its earliest wake time.

    The `wake` of an unused answer is 0, which is due immediately.
    """
    wakes = [wake for (wake,) in session.connection.select(WAKES, (number,))]
    if deadline is not None:
        wakes.append(deadline)
    yield PAUSE, (min(wakes, default=None), number)


class _Done(Awaitable[None]):
    """An awaitable that is done."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


_DONE = _Done()


class StoreJournal(Log):
    """The journal of one stored execution."""

    def __init__(self, store: Session, number: int, name: str) -> None:
        super().__init__(store, number)
        self.name = name
        """The name of the execution, for messages."""
        self.running_locks, self.on_fail_point = store.running_locks, store.on_fail_point
        self.commit_soon: Callable[[], object] = store.flush_soon
        self.found = 0
        """The number of steps found at recovery."""
        self.positions: dict[str, Json] = {}
        self.answers: dict[str, Json] = {}
        self.requests: dict[str, ApprovalRequest] = {}
        self.tasks: dict[str, PendingCallback] = {}
        self.recorded: dict[str, int] = {}
        self.child_starts: dict[str, Json] = {}
        self.redrive_counts: dict[str, tuple[int, float | None]] = {}
        self._redrive_state: tuple[int, float | None] = 0, None
        """Number of redrives, and time of the latest, at the record read last."""
        self.visits = 0
        """Number of states that the top machine has entered."""
        self.spending: Json = None
        self.may_have_started = True
        """Whether there may be child executions."""
        self.may_have_asked = True
        """Whether there may be requests."""
        self._started: dict[str, str] = {}
        """Names of the started executions, by key of the effect."""
        self._unused_decisions: set[str] = set()
        """Decided requests whose decision the execution has not used."""
        self.checkpoint_names: list[tuple[str, str]] = []
        self.paused = False
        self.programs: Callable[[str], Program] | None = None
        """Returns the program of a document by its hash."""
        self.reader_session: Callable[[], Session] | None = None
        """Returns the session of the thread that reads the records found at recovery."""
        self._final_position: tuple[Json, str] | None = None
        self._has_live_chunks = False
        self.watched: int | None = None
        """The execution whose cancellation ends this one, None if a runner watches it."""
        self.cancellation: tuple[str | None, str | None] | None = None
        """Error and cause of the cancellation, once it was read."""
        self._version = -1

    def begin_anew(self, chain: bytes) -> None:
        """Begin the log of a new execution, with *chain* as the hash before its first step."""
        self.chain = chain
        self.may_have_started = self.may_have_asked = False

    # Recovery

    def load(self) -> None:
        """Load the records of earlier processes."""
        store, number = self.store, self.number
        self.chain, last, _ = self.ends()
        if not last:  # it has not started
            return
        for body, status in store.select(FOUND, number):
            self.spending = None if body is None else store.values.unpack(body)
            self.paused = status == "PAUSED"
        self.checkpoint_names += checkpoint_names(store, number)
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
                    digests.update(self.find_requests(content[0], entries))
                    if what == "last":
                        alive.answer(where, self.outcome(content[0], entries))
                elif what == "brief":
                    digests.update(self._resume_brief(content[0], alive))
                elif what != "filled":
                    alive.apply(what, where, *content)
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
        self._unused_decisions = set(decisions)
        self.answers |= dict(decisions.values())

    def _count(self, path: str, record: Json) -> None:
        known, more = self.recorded.get(path, 0), includes_next_stretch(record)
        self.recorded[path] = known + 1 + more
        if path == "":
            self.visits = record[2] + 1 + more
        elif path == WHOLE_PATH:
            details = record[-1]["json"]
            if "redriveCount" in details:
                self._redrive_state = details["redriveCount"], record[1]
        elif known == 0 and record[0] != TOLD:
            self.child_starts[path] = read_beginning(record)
            if record[0] == STRETCH and record[3] is None:
                self.redrive_counts[path] = self._redrive_state

    def brief(self) -> Json:
        """Return what the loaded steps have led to, for a log that begins with it."""
        return {
            "positions": self.positions,
            "answers": self.answers,
            "recorded": self._of_present(self.recorded),
            "childStarts": self._of_present(self.child_starts),
            "redriveCounts": self._of_present(self.redrive_counts),
            "redriveState": self._redrive_state,
            "visits": self.visits,
            "digests": {asked.id: asked.content_digest for asked in self.requests.values()},
        }

    def _of_present(self, by_path: Mapping[str, Json]) -> dict[str, Json]:
        """Return the entries of machines that may still run: not of earlier visits at the top."""
        visit = self.positions.get("", {}).get("visit", 0)
        return {path: value for path, value in by_path.items() if _top_visit(path) >= visit}

    def _resume_brief(self, brief: dict[str, Json], alive: LogCompaction) -> dict[str, str]:
        """Apply a brief; return the digests of the requests by id."""
        for path in sorted(brief["positions"], key=len):
            alive.position(path, brief["positions"][path], None)
        for key, answer in brief["answers"].items():
            alive.answer(key, answer)
        self.recorded.update(brief["recorded"])
        self.child_starts.update(brief["childStarts"])
        for path, (count, time) in brief["redriveCounts"].items():
            self.redrive_counts[path] = count, time
        count, time = brief["redriveState"]
        self._redrive_state = count, time
        self.visits = brief["visits"]
        digests: dict[str, str] = brief["digests"]
        return digests

    def program(self, document: str) -> Program:
        """Return the program of a document of the execution, by its hash."""
        assert self.programs is not None
        return self.programs(document)

    def records_of(self, reader: RecordReader) -> Iterator[Record]:
        """Yield the records found at recovery, decoded by *reader*."""
        store = self.store if self.reader_session is None else self.reader_session()
        return Log(store, self.number).records(reader, self.found)

    def damage_reports(self) -> AbstractContextManager[None]:
        """Return a context that raises StoreDamaged for content of an unexpected shape."""
        return self.store.damage_reports(f"the execution {self.name!r}")

    # The log

    def put_position(self, path: str, position: Json, kept: str | None = None) -> int:
        """Record the position of a machine, which discards earlier answers and all entries below
        it.

        Args:
            path: Path of the machine.
            position: The position.
            kept: Prefix of the keys below it that remain; None for none.

        Returns:
            The size of the position in bytes.
        """
        return self.put("position", path, position, kept)

    def put_final_position(self, position: Json, kept: str) -> None:
        """Set the position of the top machine to record if the execution does not succeed."""
        self._final_position = position, kept

    def put_answer(self, key: str, answer: Json) -> int:
        """Record an answer and return its size in bytes."""
        return self.put("answer", key, answer)

    def put_started(self, key: str, name: str, started: float) -> None:
        """Record the execution that an effect started, and its start time."""
        self._started[key] = name
        self.put_answer(key + STARTED, [name, started])

    def drop_answer(self, key: str) -> None:
        """Discard an answer."""
        self.put("void", key)

    def put_record(self, path: str, record: Json) -> None:
        """Append a record to the history."""
        self.put("record", path, record)

    def put_last_record(self, path: str, record: Json) -> int:
        """Append the final record of a child, with its outcome, and return its size in bytes."""
        return self.put("last", path, record)

    def put_filled(self, path: str, values: Json) -> None:
        """Record the parameter values of the included document of a machine."""
        self.put("filled", path, values)

    # Requests

    def put_request(self, request: ApprovalRequest, received: bool = False) -> None:
        """Store a request or the new status of an open one, with *received* its answers too."""
        self.may_have_asked = True
        requests.put_request(self.store, self.number, request, received)

    def put_task(self, task: PendingCallback) -> None:
        """Store a new task token."""
        self.may_have_asked = True
        requests.put_task(self.store, self.number, task)

    def put_heartbeat(self, task: PendingCallback) -> None:
        """Store the worker and the heartbeat of a task."""
        requests.put_heartbeat(self.store, task)

    def put_outcome(self, task: PendingCallback) -> None:
        """Store the outcome of an open task."""
        requests.put_outcome(self.store, task)

    def read_callback(self, task: PendingCallback) -> None:
        """Update a task with the answers and heartbeats of other processes."""
        for seen in requests.find_tasks(self.store, requests.BY_ID, task.token):
            task.status, task.outcome = seen.status, seen.outcome
            task.taken_at, task.worker, task.last_heartbeat = (
                seen.taken_at,
                seen.worker,
                seen.last_heartbeat,
            )

    def take_answer(self, id: str) -> bool:
        """Mark the answer to a request as used.

        Returns:
            Whether it is a decision that is not in the journal yet.
        """
        requests.take_answer(self.store, id)
        is_new = id in self._unused_decisions
        self._unused_decisions.discard(id)
        return is_new

    def drop_request(self, request: ApprovalRequest) -> None:
        """Delete a request and its answer."""
        requests.drop_request(self.store, request.id)
        self.drop_answer(request.key)

    def decision(self, request: ApprovalRequest) -> Json:
        """Return the decision on a request, None without one; it may come at any time."""
        found = requests.find_decisions(self.store, requests.BY_ID, request.id)
        for id, (_, decided) in found.items():
            self._unused_decisions.add(id)
            return decided
        return None

    def close_requests(self) -> None:
        """Close the open requests."""
        if self.may_have_asked:
            requests.close_requests(self.store, self.number)

    def drop_vain_requests(self) -> None:
        """Delete the requests without a usable answer; a redrive creates them again."""
        requests.drop_vain_requests(self.store, self.number)

    def cut_off(self, within: str, now: float) -> None:
        """Close the requests and abort the children of the machines below a path."""
        if self.may_have_asked:
            requests.close_requests(self.store, self.number, within)
        if self.may_have_started:
            names = [name for key, name in self._started.items() if key.startswith(within)]
            if names:
                self.store.write(end_descendants, self.store, self.number, now, names)

    # Checkpoints, usage and results

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint, without the data that another storage holds."""
        kept = checkpoint.to_record()
        if checkpoint.storage != "default":
            kept |= {"data": None, "variables": {}}
        self.checkpoint_names.append((checkpoint.id, checkpoint.name))
        put_checkpoint(self.store, self.number, len(self.checkpoint_names), checkpoint, kept)

    def put_spending(self, spending: Json) -> None:
        """Store the usage of the execution."""
        body = self.store.values.pack(encode(spending))
        self.store.write(USAGE, body, self.number)

    def put_result(self, result: Result, until: float | None = None) -> None:
        """Record the result or a pause.

        Args:
            result: The result.
            until: Epoch second at which the pause ends at the latest; None for no such time.
        """
        if self._has_live_chunks:
            log.drop_chunks(self.store, self.number)
        if result.status == "PAUSED":
            Workers(self.store).put_timer(self.number, result.wake)
            ends = (result.execution.deadline, until, result.wake)
            self.put_pause(min((each for each in ends if each is not None), default=None))
        else:
            self.put_end(result.status, result.ended, result.value, result.error, result.cause)

    def put_pause(self, deadline: float | None) -> None:
        """Record that the execution is paused, and when it is due."""
        self.store.write(_pause, self.store, self.number, deadline)
        self.on_fail_point("pause.put")

    def put_end(
        self, status: str, ended: float, output: Json, error: str | None, cause: str | None
    ) -> None:
        """Record the end of the execution; a successful one cannot continue."""
        store, number = self.store, self.number
        if status != "SUCCEEDED" and self._final_position is not None:
            position, kept = self._final_position
            self.put_position("", position, kept)
        store.write(END, status, ended, store.values.pack(encode(output)), error, cause, number)
        self.close_requests()
        if self.may_have_started:
            store.write(end_descendants, store, number, ended)
        self.on_fail_point("end.put")

    def put_life(
        self,
        now: float,
        redrives: int,
        event: str,
        details: dict[str, Json],
        ending: tuple[float, str, dict[str, Json]] | None,
        document: str,
    ) -> None:
        """Record the restart of an execution after its *ending* (None: its process died)."""
        if ending is not None:
            self.put_record(WHOLE_PATH, write_execution_record(*ending))
        self.put_record(WHOLE_PATH, write_execution_record(now, event, details))
        self.store.write(BEGIN_ANEW, redrives, now, document, self.number)

    def show(self, chunk: Json) -> None:
        """Publish a streamed chunk to followers of the execution, before it is recorded."""
        self._has_live_chunks = True
        log.put_chunk(self.store, self.number, chunk)

    # Cancellation

    def is_cancelled(self) -> bool:
        """Return whether another process cancelled the watched execution."""
        if self.watched is None:
            return False
        version = self.store.foreign_version
        if self.cancellation is None and version != self._version:
            self._version = version
            self.cancellation = Workers(self.store).cancellation(self.watched)
        return self.cancellation is not None

    def _heed(self) -> None:
        if self.is_cancelled():
            raise ExecutionCancellation

    def flush(self) -> None:
        """Commit all pending changes before returning.

        Raises:
            ExecutionCancellation: The execution is cancelled.
        """
        self._heed()
        self.store.flush()

    def commit(self, together: bool) -> Awaitable[None]:
        """Commit all pending changes; the returned awaitable is done when they are durable.

        Args:
            together: Whether to share the commit with other executions of this turn of the event
                loop; otherwise it happens now.

        Raises:
            ExecutionCancellation: The execution is cancelled.
        """
        self._heed()
        if not together:
            self.store.flush()
            return _DONE
        return self.store.flush_soon()
