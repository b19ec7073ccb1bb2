"""The host of executions that survive their process: every effect is asked once, its answer kept.

An effect first makes durable all that was put before it (the position of its machine, earlier
answers, records of the history), then acts. Its own answer is durable by the end of the turn of the
event loop, at the latest before the next effect. At recovery each machine runs again from its
position; effects that have an answer give it instead of acting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from asl.core.errors import AslError, StateError
from asl.core.values import Json, measure
from asl.engine.agent import Agent, Call, Messenger
from asl.engine.awaited import ACTIVITY, TOKEN, Awaited
from asl.engine.checkpoints import Checkpoint, Names
from asl.engine.events import RESUMED
from asl.engine.execution import Execution, Spent, Usage, Used
from asl.engine.frame import Frame as EngineFrame
from asl.engine.interpreter import interpret
from asl.engine.journal import (
    STARTED,
    WHOLE_PATH,
    Journal,
    RecordReader,
    read_error,
    read_spending,
    read_spent,
    read_usage,
    read_used,
    written_error,
    written_record,
    written_spending,
    written_spent,
    written_usage,
    written_used,
    written_whole,
)
from asl.engine.ledger import Ledger
from asl.engine.records import ADVANCED, NOTED, STRETCH, WHOLE, each_record
from asl.hosts.callbacks import Polled
from asl.hosts.children import Begun
from asl.hosts.kept_tasks import kept_agent
from asl.hosts.local import LocalHost
from asl.hosts.meter import BudgetAsking
from asl.hosts.services import Started
from asl.program import Program, Step
from asl.states.blocks.progress import Told
from asl.states.decisions import Asked
from asl.states.host import (
    Child,
    Exhausted,
    Expired,
    Fan,
    Frame,
    Joined,
    Options,
    Question,
    Record,
    Request,
    Saving,
    Target,
)

__all__ = ["FAIL_POINTS", "WORTH", "DurableHost", "ForeignAnswer"]

FAIL_POINTS = (
    "effect.ready",
    "effect.done",
    "answer.put",
    "position.put",
    "request.put",
    "child.done",
)
"""The instants of a step at which a process may die; see `Journal.reached`."""

WORTH = 4096
"""Bytes of answers up to which no position is taken: they are gone through again at once."""
LONG = 32
"""Characters from which on a text is not repeated in the records behind it."""
BEGAN = "!"
"""Ends the key under which the beginning of a machine is kept that has no history."""
RIGHTS = "!rights"
"""The key under which the tool policies are kept that bind an execution from outside."""
UNHEARD = "!"
"""Ends the key of a request under which it is kept which notices could not be sent."""


class ForeignAnswer(AslError):
    """The journal holds the answer to another question: the document was changed, or is not it."""


def _is_worth_referring(value: Json) -> bool:
    of = type(value)
    return of is dict or of is list or (of is str and len(value) > LONG)


def _counted(child: Child) -> str:
    """Return the key under which it is kept what of a child's spending is counted."""
    return f"!child.{child.name.rpartition('.')[2]}"


class _Log:
    """What the host remembers of one machine: how much of it is in the journal."""

    __slots__ = (
        "aside", "began", "given", "last", "latest", "least", "noted", "path", "records",
        "stretch", "weight",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        self.path = path
        self.records = 0
        """How many records the machine has emitted."""
        self.stretch = 0
        """The number of the record with which the present visit began."""
        self.weight = 0
        """The size of the answers since the last position, with all that the children have kept."""
        self.least = WORTH
        """How much they must weigh before it is worth to see whether a position is smaller."""
        self.began = not path
        """Whether it is known when the machine began; of the top one the execution knows."""
        self.last: tuple[Record | None, Mapping[int, int]] = None, {}
        """The last record that was written, and the places of the containers in it."""
        self.latest: tuple[int, int] | None = None
        """Stands for the last answer, which the outcome of the machine may make superfluous."""
        self.given: Json = None
        """The value of that answer, if it is worth to refer to it."""
        self.aside: dict[str, Any] | None = None
        """What an effect under way has come to beside its answer: `notes`, `used`, `said`
        and `progress`, and how many records say that it was `advanced`."""
        self.noted: list[Record] = []
        """The notes of an effect under way. They are written with its answer: should there be
        none, the effect is performed again, and tells something else perhaps."""


def _earlier(journal: Journal, execution: Execution, flat: list[Any]) -> list[Any]:
    """Return the records that were there before this process, as a flat history."""
    reader = RecordReader(execution, each_record(flat), journal.program)
    return [item for record in journal.records_of(reader) for item in record]


class DurableHost(LocalHost):
    """Performs the effects of one execution that is kept in a journal."""

    journal: Journal
    execution: Execution
    """The whole, which counts what the children of distributed Maps spend, too."""
    fresh = True
    """Whether there was nothing in the journal."""
    kept = 0
    """The size of all answers and positions of the execution so far."""

    def keep(self, journal: Journal, frame: EngineFrame) -> None:
        """Keep the execution of its top machine in *journal*, and go on from what is there."""
        self.journal = journal
        execution = self.execution = frame.execution
        self.history = execution.emit
        self.top = frame
        self.paused = journal.paused
        self.names = Names(journal.saved)
        execution.emit = self._emit
        if journal.spending is not None:
            read_spending(journal.spending, execution)
        if journal.recorded:
            execution.earlier = lambda flat: _earlier(journal, execution, flat)
        self._keep_rights()
        self.fresh = not (journal.positions or journal.answers or journal.recorded)
        self._recover(frame, self._log(frame))

    def _keep_rights(self) -> None:
        """Keep the tool policies of whoever has started the execution, or find them."""
        journal, execution = self.journal, self.execution
        known = journal.answers.pop(RIGHTS, None)
        if not execution.rights and known is None:
            return
        from asl.hosts.rights import read_rights, written_rights

        if not execution.rights:
            execution.identity = replace(execution.identity, rights=read_rights(known))
        elif known is None:
            journal.put_answer(RIGHTS, written_rights(execution.rights))

    def watch(self, ledger: Ledger) -> None:
        """Hold the calls of agents against a ledger, which goes on from what is there."""
        super().watch(ledger)
        spending = self.journal.spending
        if spending is not None and len(spending) > 3:
            ledger.restore(spending[3])

    # Machines

    def _log(self, frame: Any) -> _Log:
        log: _Log | None = frame.log
        if log is None:
            log = frame.log = _Log(frame.path)
        return log

    def _recover(self, frame: EngineFrame, log: _Log) -> None:
        """Put a machine where it stood."""
        position = self.journal.positions.pop(log.path, None)
        if position is not None:
            frame.restore(position)
            log.records = position["records"]
            log.began = True
            frame.seen_usage(read_usage(position["usage"]))
        elif log.began:  # of the top machine: before its first answer nothing was spent
            frame.seen_usage(Usage())
        else:
            found = self.journal.answers.pop(log.path + BEGAN, None)
            began = found or self.journal.began.get(log.path)
            if began is not None:
                frame.now, usage = began
                frame.seen_usage(read_usage(usage))
                log.began = True

    async def machine(self, frame: EngineFrame) -> Json:
        """Run a child machine, or give what came of it before."""
        log = frame.log = _Log(frame.path)
        if not self.fresh:
            outcome = self.journal.answers.pop(log.path, None)
            if outcome is not None:
                return self._given("child", log.path, outcome, frame)
            self._recover(frame, log)
        try:
            value = await interpret(frame)
        except StateError as error:
            if self._cut(frame, log, failed=True):
                log.latest = None
                self._put(frame, log, log.path, "child", None, error)
                self.journal.reached("child.done")
            raise
        except BaseException as stop:
            if isinstance(stop, Expired | Exhausted) or type(stop).__name__ == "CancelledError":
                self._cut(frame, log, failed=False)
            raise
        if log.began:
            self._put(frame, log, log.path, "child", value, None)
            self.journal.reached("child.done")
        return value

    def _cut(self, frame: EngineFrame, log: _Log, *, failed: bool) -> bool:
        """Keep where a child stands that does not go on now; whether there is anything to keep."""
        if not (log.began or log.records):
            return False
        position, kept = self._standing(frame, log, failed)
        self.kept += self.journal.put_position(log.path, position, kept)
        self.journal.reached("position.put")
        log.weight, log.least = 0, WORTH
        return True

    def _standing(self, frame: EngineFrame, log: _Log, failed: bool) -> tuple[Json, str]:
        """Return where a machine stands that was cut off, and what its children's paths begin with.

        Its records up to now are past; whatever it does from here is told anew.
        """
        if log.noted:
            self._write_notes(log)
        position = frame.cut(failed)
        position |= {"records": log.records, "usage": written_usage(frame.usage)}
        return position, f"{frame.visit_key}.{position.get('ordinal', 0)}["

    def leave(self, frame: EngineFrame, failed: bool) -> None:
        """Keep where the top machine stands when the execution ends without success."""
        self.journal.stand(*self._standing(frame, self._log(frame), failed))

    # The history

    def _emit(self, record: Record) -> None:
        if record[0] is WHOLE:
            self.history(record)
            _, time, _, _, _, event, details = record
            self.journal.put_record(WHOLE_PATH, written_whole(time, event, details))
            return
        log = self._log(record[2])
        if record[0] is STRETCH:
            log.stretch = log.records
        elif record[0] is NOTED and log.aside is not None:
            log.aside.setdefault("notes", []).append([record[1], *record[5:]])
        elif record[0] is ADVANCED and log.aside is not None:
            log.aside["advanced"] = log.aside.get("advanced", 0) + 1
        number, log.records = log.records, log.records + 1
        if number >= self.journal.recorded.get(log.path, 0):
            if self.paused:
                self.paused = False
                self.tell(self.top, RESUMED)
            self.history(record)
            if record[0] is NOTED and log.aside is not None:
                log.noted.append(record)
            else:
                if log.noted:
                    self._write_notes(log)
                self._write(log, record)

    def _write(self, log: _Log, record: Record) -> None:
        """Put a record, which refers to what stands there already."""
        journal, reference = self.journal, None
        if log.given is not None and log.latest is not None:
            reference = journal.reference(log.latest)
        given = None if reference is None else log.given
        written, places = written_record(record, log.last[1], given, reference)
        log.last = record, places
        journal.put_record(log.path, written)

    def _write_notes(self, log: _Log) -> None:
        notes, log.noted = log.noted, []
        for record in notes:
            self._write(log, record)

    def suspend(self, frame: EngineFrame) -> None:
        """Say that the execution is paused, if it has gone on since it last was."""
        if not self.paused:
            super().suspend(frame)

    # Effects

    async def _once(
        self, at: Any, kind: str, perform: Callable[..., Awaitable[Json]], *given: Any
    ) -> Json:
        """Perform an effect of the machine *at*, or give the answer that it had."""
        log, journal = self._log(at), self.journal
        key = at.next_effect(log.path)
        if not self.fresh:
            answer = journal.answers.pop(key, None)
            if answer is not None:
                return self._given(kind, key, answer, at)
        self._prepare(at, log)
        await journal.commit(self.in_event_loop)
        journal.reached("effect.ready")
        log.aside = {}
        try:
            value = await perform(at, *given)
        except StateError as error:
            self._put(at, log, key, kind, None, error)
            raise
        journal.reached("effect.done")
        self._put(at, log, key, kind, value, None)
        return value

    def _prepare(self, at: Any, log: _Log) -> None:
        """Put what led to an effect."""
        if log.weight > log.least and at.ordinal == 0:
            size = measure(at.data, log.weight) + measure(at.variables, log.weight)
            if size <= log.weight:
                self._put_position(at, log)
            else:
                log.least = 2 * log.weight
        if not log.began:
            log.began = True
            if at.execution is not self.execution:  # which leaves no history
                self.journal.put_answer(log.path + BEGAN, [at.now, written_usage(at.usage)])
        at.seen_usage(None)

    def _put_position(self, at: Any, log: _Log) -> None:
        position = at.position()
        position |= {"records": log.stretch, "usage": written_usage(at.usage)}
        self.kept += self.journal.put_position(log.path, position)
        log.weight, log.least = 0, WORTH
        self.journal.reached("position.put")

    def _put(
        self, at: Any, log: _Log, key: str, kind: str, value: Json, error: StateError | None
    ) -> None:
        """Keep the answer of an effect, or the outcome of a child, and what was spent by then."""
        if log.noted:
            self._write_notes(log)
        answer = [kind, at.now, value, None if error is None else written_error(error)]
        usage = at.execution.usage
        aside, log.aside = log.aside, None
        if usage.tokens or usage.cost or aside:
            answer.append(written_usage(usage))
            self.journal.put_spending(written_spending(self.execution))
        if aside:
            answer.append(aside)
        journal = self.journal
        if key is log.path:
            instead = log.latest if log.given is None or value is log.given else None
            size = journal.put_child(key, answer, instead)
        else:
            size = journal.put_answer(key, answer)
            log.latest = journal.latest
            log.given = value if _is_worth_referring(value) else None
        log.weight += size
        self.kept += size
        journal.reached("answer.put")
        if self.in_event_loop:
            journal.commit_soon()

    def _given(self, kind: str, key: str, answer: Json, at: Any) -> Json:
        """Return or raise what is in the journal."""
        of, now, value, error, *more = answer
        if of != kind:
            raise ForeignAnswer(
                f"{key}: the journal has the answer of a {of}, where a {kind} is asked now"
            )
        at.seen_usage(read_usage(more[0]) if more else Usage())
        if len(more) > 1:
            self._recalled(at, more[1])
        at.now = now
        size = measure(value, 2**62)
        self._log(at).weight += size
        self.kept += size
        if error is not None:
            raise read_error(error)
        return value

    def _recalled(self, at: Any, aside: dict[str, Any]) -> None:
        """Tell and count again what an effect came to beside its answer."""
        self._log(at).records += aside.get("advanced", 0)  # they stand in the history
        for time, event, details in aside.get("notes", ()):
            at.now = time
            at.note(event, details)
        at.said = aside.get("said")
        if "progress" in aside:
            update, reached = aside["progress"]
            at.progress = Told(at.visit, update, tuple(reached))
        if "used" in aside and self.meter is not None:
            self.meter.ledger.recall(at, read_used(aside["used"]))

    def unshown(self, at: Any, said: str | None) -> None:
        """Keep what an agent has said that may not be shown yet with its answer."""
        super().unshown(at, said)
        aside = self._log(at).aside
        assert aside is not None
        aside["said"] = said

    def progressed(self, at: Any) -> None:
        """Keep the progress of a call with its answer."""
        aside = self._log(at).aside
        assert aside is not None
        aside["progress"] = [at.progress.update, list(at.progress.reached)]

    def used(self, at: Any, used: Used) -> None:
        """Keep what a call has used with its answer."""
        aside = self._log(at).aside
        assert aside is not None
        known = read_used(aside.get("used", {}))  # of calls within this one
        aside["used"] = {
            name: str(each + known.get(name, 0))
            for name, each in read_used(written_used(used)).items()
        }

    async def decide(self, at: Frame, key: str, question: Question) -> Json:
        """Ask people about the execution as a whole, once."""
        journal = self.journal
        answer, known = journal.answers.pop(key, None), journal.requests.pop(key, None)
        if answer is not None:
            journal.take_up(f"{at.execution_id}:{key}")
            return answer[2]
        asked = known or Asked(f"{at.execution_id}:{key}", key, *question, self.now())
        if known is None:
            journal.put_request(asked)
            await journal.commit(self.in_event_loop)
        try:
            decision = await BudgetAsking(self, at, asked).decision()
            journal.put_answer(key, [asked.kind, at.now, decision, None])
            return decision
        finally:
            journal.put_request(asked)

    def begin(self, at: Frame, step: Step, data: Json) -> None:
        """Leave it to the work: a call that is kept needs more."""

    def invoke(
        self,
        at: Frame,
        target: Target,
        payload: Json,
        options: Options | None = None,
        agent: Agent | None = None,
        account: Callable[[str, Json], object] | None = None,
    ) -> Coroutine[Any, Any, Json]:
        """Call an agent, once and for all."""
        return self._once(at, "call", super().invoke, target, payload, options, agent, account)

    async def tick(self, at: Frame) -> None:
        """Keep where a machine stands that computes for long: from here on it is later."""
        await super().tick(at)
        if at.step.work is None:
            log = self._log(at)
            log.stretch, log.began = log.records, True
            self._put_position(at, log)
            await self.journal.commit(self.in_event_loop)

    async def start(self, at: Frame, child: Child) -> Json:
        """Run an execution of another workflow, which is kept beside this one."""
        return await self._once(at, "workflow", super().start, child)

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin it, or find it where an earlier process has begun it."""
        keeper = self.serving().keeper
        assert keeper is not None  # whoever keeps an execution keeps what it starts
        return keeper.child(self.journal, at.key, child, find)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Begin it once, or find it; None where another execution has its name."""
        keeper = self.serving().keeper
        assert keeper is not None
        return keeper.started(self.journal, at.key, program, child)

    def counted(self, child: Child) -> Spent | None:
        """Return what of a child's spending was counted before it was redriven."""
        written = self.journal.answers.get(_counted(child))
        return None if written is None else read_spent(written)

    def count(self, child: Child, spent: Spent) -> None:
        """Keep what of a child's spending is counted."""
        self.journal.put_answer(_counted(child), written_spent(spent))

    async def _in_time(self, agent: Agent, payload: Json, call: Call, options: Options) -> Json:
        """Call with the limits of the state; what an execution was started for began then."""
        started = self.journal.answers.get(call.at.key + STARTED)
        if started is not None and options.timeout is not None:
            options.began = started[1]
            call.deadline = started[1] + options.timeout
        return await super()._in_time(agent, payload, call, options)

    async def resolve(self, at: Frame, targets: Sequence[Target]) -> None:
        """Find every agent, once: who was there at first is called later, or fails then."""
        await self._once(at, "names", super().resolve, targets)

    async def sleep_until(self, at: Frame, when: float) -> None:
        """Return when the clock has reached *when*; what was awaited before is not again."""
        await self._once(at, "sleep", super().sleep_until, when)

    async def save(self, at: Any, saving: Saving) -> Json:
        """Save the execution, once; the checkpoint is durable with what follows it."""
        made: list[Checkpoint] = []

        async def perform(at: Any) -> Json:
            made.append(self.saved(at, saving))
            return made[0].record

        record = await self._once(at, "checkpoint", perform)
        return made[0].data if made else saving.leave(record)

    def saved(self, at: Any, saving: Saving) -> Checkpoint:
        """Return a new checkpoint, which is put into the journal."""
        checkpoint = super().saved(at, saving)
        self.journal.put_checkpoint(checkpoint)
        return checkpoint

    async def ask(self, at: Frame, question: Question) -> Json:
        """Ask people, once; the request is durable before anybody sees it."""
        asked = self.request(at, question)
        journal = self.journal
        answer = journal.answers.pop(asked.key, None)
        known = journal.requests.pop(asked.key, None)
        if known is not None:
            known.unheard = dict(journal.answers.pop(asked.key + UNHEARD, ()))
        if answer is not None:
            return await self._decided(at, known or asked, answer)
        log = self._log(at)
        if known is None:
            self._prepare(at, log)
            journal.put_request(asked)
            journal.reached("request.put")
            await journal.commit(self.in_event_loop)
        else:  # no position is taken: somebody else may answer just now
            asked = known
        before = asked.received
        try:
            decision = await self.inquire(at, asked)
        except StateError as error:
            self._put(at, log, asked.key, asked.kind, None, error)
            raise
        else:
            self._put(at, log, asked.key, asked.kind, decision, None)
            return decision
        finally:
            journal.put_request(asked, asked.received is not before)

    def told(self, asked: Asked) -> None:
        """Keep which notices were sent: what the history says of them depends on it."""
        if asked.told in asked.unheard:
            self.journal.put_answer(asked.key + UNHEARD, list(asked.unheard.items()))
        self.journal.put_request(asked)

    async def _decided(self, at: Frame, asked: Asked, answer: Json) -> Json:
        """Give a decision that is there, and tell the history again what led to it."""
        from asl.hosts.asking import Asking

        asking = Asking(self, at, asked)
        asked.told = 2**62  # nobody needs to be told any more
        await asking.begin()
        over = await asking.catch_up(answer[1])
        if over is not None:
            return await asking.ended(over)
        self.journal.take_up(asked.id)
        decision = self._given(asked.kind, asked.key, answer, at)
        asking.decided(decision, at.now)
        return decision

    async def receive(self, at: Frame, request: Request) -> Json:
        """Hand a request over, once; the answer to a task token may come while nobody runs."""
        return await self._once(at, "call", self._received, request)

    async def _received(self, at: Frame, request: Request) -> Json:
        task = self.journal.tasks.pop(at.key, None)
        agent = self._answers(request.target, task)
        if isinstance(agent, Messenger | Polled):
            return await self._awaited(at, request, agent, task)
        return await super().receive(at, request)

    def _answers(self, target: Target, task: Awaited | None) -> Agent:
        """Return who answers: elsewhere the workers of an activity that nobody is bound to.

        The same holds for a task that was handed over before, by whomever.
        """
        try:
            return self.find(target)
        except StateError:
            if target.is_activity or (task is not None and task.taken is not None):
                return Polled(target.name)
            raise

    async def _awaited(
        self, at: Frame, request: Request, agent: Messenger | Polled, task: Awaited | None
    ) -> Json:
        options = request.options
        if task is None:
            task = self._task(at, request, agent)
            self.journal.put_task(task)
            self.journal.reached("request.put")
            await self.journal.commit(self.in_event_loop)
        if options is not None:
            options.began = task.created
        kept = kept_agent(self, task, options, agent)
        try:
            return await super().invoke(at, request.target, request.payload, options, kept)
        except StateError:
            task.status = "closed" if task.status == "open" else task.status
            raise
        finally:
            at.now = self.now() if kept.ended is None else kept.ended
            if task.outcome is not None:
                self.journal.take_up(task.token)
            elif task.status != "open":
                self.journal.put_outcome(task)

    def _task(self, at: Frame, request: Request, agent: Messenger | Polled) -> Awaited:
        target, options = request.target, request.options
        kind = TOKEN if isinstance(agent, Messenger) else ACTIVITY
        limits = (None, None) if options is None else (options.timeout, options.heartbeat)
        return Awaited(
            at.token, at.key, kind, target.name, target.state, request.payload, self.now(), *limits
        )

    def cut_off(self, at: Frame) -> None:
        """Ask nobody any more for the children of a fork that has failed."""
        super().cut_off(at)
        self.journal.cut_off(f"{at.key}[", self.now())

    async def fork(self, at: Frame, fan: Fan) -> Joined:
        """Run the children of *fan*, each from where it stood; what follows begins at the join."""
        log, run, before = self._log(at), super().fork, self.kept
        joined: Joined | None = None

        async def join(at: Frame) -> None:
            nonlocal joined
            log.aside = None  # what the fork has to tell, it tells again
            joined = await run(at, fan)

        await self._once(at, "fork", join)
        if joined is None:  # it was over before: all children have what they need to end again
            now = at.now
            joined = await run(at, fan)
            at.now = now
        log.weight += self.kept - before
        return joined
