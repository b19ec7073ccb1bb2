"""Executions that are kept in a store: started once, gone on with after anything that happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from time import time_ns
from typing import TYPE_CHECKING, TypeAlias, Unpack

from asl.bindings import Bindings, bind, check_name, clock_of, refuse_running_loop
from asl.core.errors import AslError, StateError
from asl.core.values import Json, compact, detached
from asl.documents import program_of
from asl.stores.sqlite import BELOW, SqliteStore, Stored

if TYPE_CHECKING:
    from asl.core.document import Document, What
    from asl.core.profile import Profile
    from asl.engine.checkpoints import Checkpoint
    from asl.engine.execution import Execution
    from asl.engine.history import Event
    from asl.engine.result import Result
    from asl.hosts.children import Begun
    from asl.hosts.clock import Clock
    from asl.program import Program
    from asl.states.decisions import Asked, Verdict
    from asl.states.host import Child
    from asl.stores.journal import SqliteJournal

__all__ = [
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionNotFound",
    "ExecutionNotRedrivable",
    "RequestNotFound",
    "Store",
    "open_store",
]

UNSUCCESSFUL = ("FAILED", "TIMED_OUT", "ABORTED")
FINAL = ("SUCCEEDED", *UNSUCCESSFUL)
REDRIVEN = "ExecutionRedriven"

Again: TypeAlias = Callable[[Stored], None]
"""Lets an execution that has ended begin anew."""


class ExecutionNotFound(AslError):
    """The store has no execution of this name."""


class ExecutionExists(AslError):
    """There is an execution of this name, of another document or another input."""


class RequestNotFound(AslError):
    """The store has no request of this id."""


class ExecutionNotRedrivable(AslError):
    """The execution has nothing to be done again, or the document lacks where it stands."""


class ExecutionBusy(AslError):
    """Another process is at work on the execution."""


class Store:
    """Executions in a file, and those who answer for the names in their documents.

    `bindings` are what `asl.run` takes (`asl.Bindings`); they hold for every execution, those given
    to `start` or `resume` for one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "FULL",
        clock: str | Clock = "wall",
        **bindings: Unpack[Bindings],
    ) -> None:
        self.file = SqliteStore(path, synchronous=synchronous)
        self.clock = clock_of(clock)
        self.bindings = bindings
        self._programs: dict[tuple[str, str], Program] = {}
        self._at_work: set[int] = set()
        self._last = 0

    def close(self) -> None:
        """Write what is left and close the file."""
        self.file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Running

    def start(
        self,
        workflow: Program | Document | What,
        input: Json = None,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Start an execution and run it until it ends or waits for people; blocks the caller.

        Starting the same document on the same input under a name that exists goes on with that
        execution, or returns what it came to. Raises ExecutionExists where they differ.
        """
        from asl.hosts.local import drive

        refuse_running_loop()
        work = self._start(workflow, input, name, profile, express, requestor, bindings, False)
        return drive(work, self.clock)

    async def astart(
        self,
        workflow: Program | Document | What,
        input: Json = None,
        *,
        name: str | None = None,
        profile: str | Profile | None = None,
        express: bool = False,
        requestor: str | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `start` does on the running event loop; many at a time share each commit."""
        return await self._start(workflow, input, name, profile, express, requestor, bindings, True)

    def resume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Document | What | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Go on with an execution, by name or id, until it ends or waits; blocks the caller.

        Returns what it came to where it has ended. One that another execution has started is gone
        on with together with that. With `from_checkpoint` (a name or an id) it goes on from there,
        after a failure or the death of its process; with another `document` only by `force`. Raises
        ExecutionNotFound, ExecutionBusy while another process is at work on it, and
        CheckpointRefused where it cannot go on from the checkpoint.
        """
        from asl.hosts.local import drive

        refuse_running_loop()
        again = self._rewinding(from_checkpoint, document, force, bindings)
        return drive(self._resume(name, bindings, False, again), self.clock)

    async def aresume(
        self,
        name: str,
        *,
        from_checkpoint: str | None = None,
        document: Document | What | None = None,
        force: bool = False,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `resume` does on the running event loop."""
        again = self._rewinding(from_checkpoint, document, force, bindings)
        return await self._resume(name, bindings, True, again)

    def redrive(
        self,
        name: str,
        *,
        document: Document | What | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Go on with an execution from the states that failed or were cut off; blocks the caller.

        What has succeeded is not done again: neither states nor iterations nor branches. With a
        corrected `document` it goes on by that. Raises ExecutionNotRedrivable for one that has not
        ended without success, and for a document without a state at which the execution stands.
        """
        from asl.hosts.local import drive

        refuse_running_loop()
        work = self._resume(name, bindings, False, lambda known: self._redriven(known, document))
        return drive(work, self.clock)

    async def aredrive(
        self,
        name: str,
        *,
        document: Document | What | None = None,
        **bindings: Unpack[Bindings],
    ) -> Result:
        """Do what `redrive` does on the running event loop."""
        again = lambda known: self._redriven(known, document)  # noqa: E731
        return await self._resume(name, bindings, True, again)

    async def _start(
        self,
        workflow: Program | Document | What,
        data: Json,
        name: str | None,
        profile: str | Profile | None,
        express: bool,
        requestor: str | None,
        bindings: Bindings,
        in_event_loop: bool,
    ) -> Result:
        program = program_of(workflow, profile, False)
        check_name(name)
        data = {} if data is None else detached(data)
        name = name or os.urandom(16).hex()
        with self._locked(name):
            document = sha256(compact(program.document).encode()).hexdigest()
            known = self.file.execution(name)
            if known is not None:
                self._check_same(known, document, data)
                return await self._go_on(known, program, bindings, in_event_loop)
            self._programs[document, program.profile.name] = program
            self.file.put_document(document, program.document)
            stored, journal = self._create(name, program, document, data, express, requestor, None)
            return await self._run(stored, program, data, journal, bindings, in_event_loop)

    def _create(
        self,
        name: str,
        program: Program,
        document: str,
        data: Json,
        express: bool,
        requestor: str | None,
        parent: int | None,
    ) -> tuple[Stored, SqliteJournal]:
        import asl
        from asl.stores.journal import SqliteJournal

        number = self._last = max(self._last + 1, (time_ns() // 1000 << 10) + os.getpid() % 1024)
        chain = sha256(f"{document}\n{asl.__version__}\n{name}".encode()).digest()
        started = self.clock.now()
        self.file.write(
            "INSERT INTO execution (number, name, workflow, document, profile, express, input, "
            "requestor, status, started, written_by, chain, parent) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'RUNNING', ?, ?, ?, ?)",
            number,
            name,
            program.name,
            document,
            program.profile.name,
            int(express),
            self.file.packed(compact(data)),
            requestor,
            started,
            asl.__version__,
            chain,
            parent,
        )
        stored = Stored(
            number, name, program.name, document, program.profile.name, express, requestor,
            "RUNNING", started, None, None, None, None, 0, parent, None,
        )  # fmt: skip
        journal = SqliteJournal(self.file, number, chain)
        journal.may_have_started = False
        return stored, journal

    def _keep(self, journal: SqliteJournal, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin an execution that a state of another one starts, or find it begun."""
        from asl.hosts.children import Begun

        known = self.file.execution(child.name)
        if known is None:
            program, journal.may_have_started = find(), True
            document = sha256(compact(program.document).encode()).hexdigest()
            self.file.put_document(document, program.document)
            stored, own = self._create(
                child.name, program, document, child.data, False, None, journal.number
            )
            return Begun(program, child.data, stored.started, own)
        if known.parent != journal.number:
            raise ExecutionExists(f"an execution {child.name!r} exists, which a state is to start")
        if known.status in UNSUCCESSFUL and self._redriven_since(known):
            self._redriven(known, None)
            self.file.flush()
            known = self.get(child.name)
        program, data = self._program(known), self._input(known)
        if known.status in FINAL:
            return Begun(program, data, known.started, result=self._result(known, program))
        return Begun(
            program,
            data,
            known.started,
            self._journal(known),
            redrives=known.redrives,
            redriven=known.redriven,
        )

    def _redriven_since(self, known: Stored) -> bool:
        """Whether the execution that has started this one was redriven after its end."""
        query = "SELECT redriven FROM execution WHERE number = ?"
        ((redriven,),) = self.file.rows(query, known.parent)
        return redriven is not None and known.ended is not None and known.ended <= redriven

    def _check_same(self, known: Stored, document: str, data: Json) -> None:
        if known.document != document:
            raise ExecutionExists(f"an execution {known.name!r} of another document exists already")
        if self._input(known) != data:
            raise ExecutionExists(f"an execution {known.name!r} with another input exists already")

    async def _resume(
        self, name: str, bindings: Bindings, in_event_loop: bool, again: Again | None
    ) -> Result:
        name = self.file.top(self.get(name).name)
        with self._locked(name):
            known = self.get(name)
            if again is not None:
                again(known)
                self.file.flush()
                known = self.get(name)
            return await self._go_on(known, self._program(known), bindings, in_event_loop)

    def _rewinding(
        self,
        checkpoint: str | None,
        document: Document | What | None,
        force: bool,
        bindings: Bindings,
    ) -> Again | None:
        if checkpoint is None:
            if document is not None or force:
                raise AslError("another document, and force, are for going on from a checkpoint")
            return None
        return lambda known: self._rewound(known, checkpoint, document, force, bindings)

    def _rewound(
        self,
        known: Stored,
        name: str,
        document: Document | What | None,
        force: bool,
        bindings: Bindings,
    ) -> None:
        """Put an execution back to a checkpoint; raises CheckpointRefused where it cannot go on."""
        from asl.engine.checkpoints import chosen, definition_hash, refuse_unfit
        from asl.engine.history import RESUMED
        from asl.engine.past import at_checkpoint, refuse_status, resumption

        if known.status != "RUNNING":  # else its process has died
            refuse_status(known.name, known.status)
        key, program = self._other(known, document)
        checkpoint, now = chosen(self._checkpoints(known), name), self.clock.now()
        definition = definition_hash(program.document)
        refuse_unfit(checkpoint, now, definition, program.machine.steps, force)
        checkpoint = self._fetched(checkpoint, bindings)
        journal = self._journal(known)
        position = {
            **at_checkpoint(checkpoint, journal.visits, now),
            "records": journal.recorded.get("", 0),
            "usage": ["0", 0] if journal.spending is None else journal.spending[0],
        }
        journal.put_position("", position)
        journal.close_requests()
        details = resumption(checkpoint, known.redrives + 1)
        self._begin_again(journal, known, key, now, RESUMED, details)

    def _fetched(self, checkpoint: Checkpoint, bindings: Bindings) -> Checkpoint:
        """Return a checkpoint with what another storage holds of it."""
        from dataclasses import replace

        from asl.engine.checkpoints import CheckpointNotFound

        if checkpoint.storage == "default":
            return checkpoint
        try:
            storages = bind(self._given(bindings)).services.storages
            kept = storages[checkpoint.storage][checkpoint.id]
        except KeyError:
            raise CheckpointNotFound(
                f"the storage {checkpoint.storage!r} has no checkpoint {checkpoint.id!r}"
            ) from None
        return replace(checkpoint, data=kept["data"], variables=kept["variables"])

    def _redriven(self, known: Stored, document: Document | What | None) -> None:
        """Let an execution go on from where it failed."""
        from asl.stores.redrive import missing, void

        if known.status not in UNSUCCESSFUL:
            what = f"Execution is {known.status} and cannot be redriven"
            if known.status in ("RUNNING", "PAUSED"):
                what += f": 'asl resume {known.name}' goes on with it"
            raise ExecutionNotRedrivable(what)
        key, program = self._other(known, document)
        journal = self._journal(known)
        lacking = missing(program, journal.positions, journal.answers)
        if lacking:
            raise ExecutionNotRedrivable(
                f"the document has not what the execution {known.name!r} stands at: "
                + ", ".join(lacking)
            )
        for answer in void(journal.positions, journal.answers):
            journal.drop_answer(answer)
        journal.drop_closed_requests()
        details = {"redriveCount": known.redrives + 1}
        self._begin_again(journal, known, key, self.clock.now(), REDRIVEN, details)

    def _begin_again(
        self,
        journal: SqliteJournal,
        known: Stored,
        document: str,
        now: float,
        event: str,
        details: dict[str, Json],
    ) -> None:
        """Write how the execution has ended and that it goes on."""
        from asl.engine.history import ENDINGS

        ending = None
        if known.ended is not None:
            ending = known.ended, ENDINGS[known.status], self._ending(known)
        if document != known.document:
            details = {**details, "document": document, "replaced": known.document}
        journal.put_life(now, known.redrives + 1, event, details, ending, document)

    def _other(self, known: Stored, document: Document | What | None) -> tuple[str, Program]:
        """Return hash and program of the document with which an execution goes on."""
        if document is None:
            return known.document, self._program(known)
        from dataclasses import replace

        from asl.core.profile import PROFILES

        program = program_of(document, PROFILES[known.profile], False)
        program = replace(program, name=known.workflow)
        key = sha256(compact(program.document).encode()).hexdigest()
        self.file.put_document(key, program.document)
        self._programs[key, known.profile] = program
        return key, program

    def _journal(self, known: Stored) -> SqliteJournal:
        """Return the journal of an execution, with what is in it."""
        from asl.stores.journal import SqliteJournal

        journal = SqliteJournal(self.file, known.number, b"")
        journal.programs = self._program_of(known)
        journal.load()
        return journal

    async def _go_on(
        self, known: Stored, program: Program, bindings: Bindings, in_event_loop: bool
    ) -> Result:
        if known.status in FINAL:
            return self._result(known, program)
        journal, data = self._journal(known), self._input(known)
        return await self._run(known, program, data, journal, bindings, in_event_loop)

    async def _run(
        self,
        stored: Stored,
        program: Program,
        data: Json,
        journal: SqliteJournal,
        bindings: Bindings,
        in_event_loop: bool,
    ) -> Result:
        from asl.hosts.run import execute

        bound = bind(self._given(bindings), program)
        bound.services.keep = self._keep
        result = await execute(
            program,
            data,
            bound.find,
            self.clock,
            name=stored.name,
            express=stored.express,
            foreign=True,
            buckets=bound.buckets,
            listener=bound.listener,
            in_event_loop=in_event_loop,
            services=bound.services,
            requestor=stored.requestor,
            started=stored.started,
            redrives=stored.redrives,
            redriven=stored.redriven,
            journal=journal,
        )
        journal.put_result(result)
        await journal.commit(in_event_loop)
        if journal.saved:
            result.checkpoints = self._checkpoints(stored)
        return result

    def _given(self, bindings: Bindings) -> Bindings:
        """Return the bindings of a run: its own, and those of the store."""
        given: Bindings = {**self.bindings, **bindings}
        beside = f"{self.file.path}.checkpoints"
        given["checkpoints"] = {"file": beside, **(given.get("checkpoints") or {})}
        return given

    # Checkpoints

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return what an execution has saved, or all of them have, the oldest first."""
        if name is not None:
            return self._checkpoints(self.get(name))
        return self.file.checkpoints("1 = 1")

    def _checkpoints(self, stored: Stored) -> list[Checkpoint]:
        return self.file.checkpoints("execution = ?", stored.number)

    # People

    def pending(self, name: str | None = None) -> list[dict[str, Json]]:
        """Return the open requests as people see them, the oldest first.

        Those of all executions, or those of one and of all that it has started.
        """
        if name is None:
            found = self.file.requests("status = 'open'")
        else:
            found = self._open(self.get(name))
        return [asked.shown for asked in found]

    def _open(self, stored: Stored) -> list[Asked]:
        """Return what an execution, and all that it has started, ask and nobody has decided."""
        below = f"execution IN ({BELOW} SELECT number FROM below)"
        condition = f"status = 'open' AND (execution = ? OR {below})"
        return self.file.requests(condition, stored.number, stored.number)

    def request(self, request_id: str) -> dict[str, Json]:
        """Return a request as people see it, also one that is not open any more.

        Raises RequestNotFound.
        """
        return self._request(request_id).shown

    def asking(self, request_id: str) -> str:
        """Return the name of the execution that a request is to be answered for: the topmost one.

        Raises RequestNotFound.
        """
        query = "SELECT name FROM execution JOIN request ON execution = number WHERE id = ?"
        found = self.file.rows(query, request_id)
        if not found:
            raise RequestNotFound(f"there is no request {request_id!r} in {self.file.path}")
        return self.file.top(found[0][0])

    def answer(
        self,
        request_id: str,
        approval: str | None = None,
        *,
        by: str | None = None,
        comment: str | None = None,
        edited: Mapping[str, Json] | None = None,
        roles: Sequence[str] = (),
        **more: Json,
    ) -> Json:
        """Answer a request; returns the record of the decision, None while others have to agree.

        The same answer twice is one. Raises AnswerRefused for an answer outside of the rules, or
        one that comes too late; nothing has changed then. `resume` goes on with the execution.
        """
        from asl.states.decisions import AnswerRefused, check_answer

        given = {"approval": approval, "approver": by, "comment": comment, "edited_content": edited}
        answer: dict[str, Json] = {
            **{key: value for key, value in given.items() if value is not None},
            **more,
        }
        if roles:
            answer["roles"] = list(roles)
        text = compact(detached(answer))
        with self.file.transaction():
            asked = self._request(request_id)
            if asked.status != "open":
                return self._repeated(asked, text)
            now = self.clock.now()
            for notice in asked.notices():
                if asked.created + notice.after > now:
                    break
                if notice.final:
                    raise AnswerRefused("the answer comes too late: resume the execution")
            verdict = check_answer(asked.body, answer, asked.received, now, "user")
            self._put_verdict(asked, verdict, text, now)
        return None if verdict.decision is None else verdict.decision["record"]

    def _request(self, id: str) -> Asked:
        found = self.file.requests("id = ?", id)
        if not found:
            raise RequestNotFound(f"there is no request {id!r} in {self.file.path}")
        return found[0]

    def _repeated(self, asked: Asked, text: str) -> Json:
        from asl.states.decisions import AnswerRefused

        ((kept,),) = self.file.rows("SELECT answer FROM request WHERE id = ?", asked.id)
        if kept is None or compact(self.file.unpacked(kept)[0]) != text:
            became = {"answered": "answered", "timeout": "decided by its timeout"}
            raise AnswerRefused(f"the request was {became.get(asked.status, 'closed')} already")
        return self.file.unpacked(kept)[1]

    def _put_verdict(self, asked: Asked, verdict: Verdict, text: str, now: float) -> None:
        """Keep the decision as the answer of the effect, together with what became of the request.

        Where approvals are still collected, only those.
        """
        write, received = self.file.write, self.file.packed(compact(verdict.received))
        if verdict.decision is None:
            write("UPDATE request SET received = ? WHERE id = ?", received, asked.id)
            return
        query = "SELECT execution FROM request WHERE id = ?"
        ((number,),) = self.file.rows(query, asked.id)
        kept = f"[{text},{compact(verdict.decision['record'])}]"
        write(
            "INSERT INTO answer VALUES (?, ?, ?)",
            number,
            asked.key,
            self.file.packed(compact([asked.kind, now, verdict.decision, None])),
        )
        write(
            "UPDATE request SET status = 'answered', wake = NULL, received = ?, answer = ? "
            "WHERE id = ?",
            received,
            self.file.packed(kept),
            asked.id,
        )
        write("UPDATE execution SET wake = 0 WHERE number = ? AND status = 'PAUSED'", number)

    def due(self) -> list[str]:
        """Return the names of the paused executions that have something to go on with.

        A request was answered, or the time for an escalation or a timeout has come.
        """
        query = (
            "SELECT name, parent FROM execution WHERE wake <= ? AND status = 'PAUSED' ORDER BY wake"
        )
        due = self.file.rows(query, self.clock.now())
        tops = [name if parent is None else self.file.top(name) for name, parent in due]
        return list(dict.fromkeys(tops))

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Keep other processes from an execution; its lock ends with this one."""
        place = int.from_bytes(sha256(name.encode()).digest()[:7])
        if place in self._at_work or not self.file.locks.take(place):
            raise ExecutionBusy(f"somebody else is at work on the execution {name!r}")
        self._at_work.add(place)
        try:
            yield
        finally:
            self._at_work.discard(place)
            self.file.locks.leave(place)

    def stop(self, name: str, *, error: str | None = None, cause: str | None = None) -> None:
        """End an execution that nobody is at work on; its status becomes ABORTED.

        Raises ExecutionNotFound, ExecutionBusy, and AslError for one that has ended already.
        """
        from asl.stores.journal import SqliteJournal

        name = self.get(name).name
        with self._locked(name):
            stored = self.get(name)
            if stored.status in FINAL:
                raise AslError(f"the execution {name!r} has ended already: {stored.status}")
            if stored.parent is not None:
                top = self.file.top(name)
                raise AslError(f"the execution {name!r} is a part of {top!r}: stop that one")
            journal = SqliteJournal(self.file, stored.number, b"")
            journal.put_end("ABORTED", self.clock.now(), None, error, cause)
            self.file.flush()

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the file, a sentence for each fault; nothing for a whole one."""
        from asl.stores.doctor import faults

        return faults(self.file)

    # Looking

    def get(self, name: str) -> Stored:
        """Return an execution by its name or its id; raises ExecutionNotFound."""
        found = self.file.execution(name) or self.file.execution(name.rpartition(":")[2])
        if found is None:
            raise ExecutionNotFound(f"there is no execution {name!r} in {self.file.path}")
        return found

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Stored]:
        """Return a page of executions, the newest first, without those that others started."""
        return self.file.executions(status=status, before=before, limit=limit)

    def started_by(self, name: str) -> list[Stored]:
        """Return the executions that one has started, and those that they have, in this order."""
        return self.file.below(self.get(name).number)

    def top(self, name: str) -> str:
        """Return the name of the execution that has led to this one; of a top one its own."""
        return self.file.top(self.get(name).name)

    def events(self, name: str, *, wait: Callable[[], object] | None = None) -> Iterator[Event]:
        """Yield the history of an execution as far as it is written.

        With *wait* it is followed to its end, also while another process is at work on it: *wait*
        is called whenever there is nothing new.
        """
        from asl.engine.history import ENDINGS, Expander
        from asl.engine.journal import RecordReader
        from asl.stores.journal import SqliteJournal

        stored = self.get(name)
        journal = SqliteJournal(self.file, stored.number, b"", 2**62)
        execution = self._execution(stored, self._program(stored))
        reader = RecordReader(execution, (), self._program_of(stored))
        expander, read = Expander(execution), 0
        journal.begin(reader)
        yield expander.start()
        while True:
            stored = self.get(name)  # what was written before its end is read after this
            records = list(journal.history(read))
            for path, body in records:
                yield from expander.feed(reader.read(path, body))
            read += len(records)
            if stored.status in ENDINGS:
                ended = stored.started if stored.ended is None else stored.ended
                yield expander.end(stored.status, ended, self._ending(stored))
                return
            if wait is None:
                return
            if not records:
                wait()

    def _ending(self, stored: Stored) -> dict[str, Json]:
        """Return the details of the last event of an execution."""
        if stored.status == "SUCCEEDED":
            return {"output": self._column(stored, "output")}
        both = {"error": stored.error, "cause": stored.cause}
        return {key: value for key, value in both.items() if value is not None}

    def result(self, name: str) -> Result:
        """Return what an execution has come to, its history so far included."""
        known = self.get(name)
        return self._result(known, self._program(known))

    def _input(self, stored: Stored) -> Json:
        """Return the input; what is gathered is written first, for it may stand there."""
        return self._column(stored, "input")

    def _column(self, stored: Stored, column: str) -> Json:
        query = f"SELECT {column} FROM execution WHERE number = ?"
        ((body,),) = self.file.rows(query, stored.number)
        return None if body is None else self.file.unpacked(body)

    def program(self, name: str) -> Program:
        """Return the program by which an execution goes on; raises ExecutionNotFound."""
        return self._program(self.get(name))

    def _program(self, stored: Stored) -> Program:
        from dataclasses import replace

        import asl

        key = stored.document, stored.profile
        program = self._programs.get(key)
        if program is None:
            program = asl.compile(self.file.document(stored.document), profile=stored.profile)
        if program.name != stored.workflow:  # the same document may have several names
            program = replace(program, name=stored.workflow)
        self._programs[key] = program
        return program

    def _program_of(self, stored: Stored) -> Callable[[str], Program]:
        """Return what gives the program of a document that an execution has had."""
        from dataclasses import replace

        return lambda document: self._program(replace(stored, document=document))

    def _execution(self, stored: Stored, program: Program) -> Execution:
        """Return an execution as it is kept, to read its history."""
        from asl.engine.execution import Execution
        from asl.engine.journal import read_spending

        execution = Execution(
            program, self._input(stored), stored.name, stored.started, [], stored.express
        )
        execution.redrives, execution.redriven = stored.redrives, stored.redriven
        usage = self._column(stored, "usage")
        if usage is not None:
            read_spending(usage, execution)
        return execution

    def _result(self, stored: Stored, program: Program) -> Result:
        from asl.engine.journal import RecordReader
        from asl.engine.records import BROKEN
        from asl.engine.result import Result
        from asl.stores.journal import SqliteJournal

        journal = SqliteJournal(self.file, stored.number, b"", 2**62)
        execution = self._execution(stored, program)
        reader = RecordReader(execution, (), self._program_of(stored))
        records = list(journal.records_of(reader))
        failure = None
        if stored.status in UNSUCCESSFUL:
            failure = StateError(stored.error, stored.cause)
        if stored.status == "FAILED":
            broken = (each[5] for each in reversed(records) if each[0] == BROKEN)
            failure = next(broken, failure)
        flat = [item for record in records for item in record]
        ended = self.clock.now() if stored.ended is None else stored.ended
        output = self._column(stored, "output")
        result = Result(execution, flat, stored.status, ended, output, failure)
        result.checkpoints = self._checkpoints(stored)
        if stored.status == "PAUSED":
            result.asked = self._open(stored)
        return result


def open_store(
    path: str | os.PathLike[str],
    *,
    synchronous: str = "FULL",
    clock: str | Clock = "wall",
    **bindings: Unpack[Bindings],
) -> Store:
    """Open a file of executions that survive their process; it is made where there is none.

    `bindings` are those of `run` (agents, resources, ...) and hold for every execution of the
    store. `synchronous` is SQLite's: with `FULL` what is acknowledged survives a loss of power,
    with `NORMAL` the death of the process. Raises StoreError for a file that cannot be used.
    """
    return Store(path, synchronous=synchronous, clock=clock, **bindings)
