"""Running the machines of an execution that is kept: every effect is asked once, its answer stays.

An effect first makes durable all that was put before it (the position of its machine, earlier
answers, records of the history), then acts. Its own answer is durable by the end of the turn of the
event loop, at the latest before the next effect of its machine. What led to the first effect of a
child was durable when the fork began, so it acts at once; where only so many children may be in
flight, it waits for the answers of those before it. A machine with which nobody shares a
transaction makes one itself when it is about to act. At recovery each machine runs again from its
position; effects that have an answer give it instead of acting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asl.core.errors import AslError, StateError, lost
from asl.core.values import Json, measure
from asl.effects.agent_caller import AgentCaller
from asl.effects.agent_turn import DEADLINE, REQUESTS, TOLD, AgentTurn
from asl.effects.children import Begun
from asl.effects.clock import WallClock
from asl.effects.jobs import Ending, Job
from asl.effects.local import LocalEffects
from asl.effects.machine_log import MachineLog
from asl.effects.services import Started
from asl.effects.timed import interpret_in_time
from asl.engine.agent import Call
from asl.engine.awaited import TOKEN, Awaited
from asl.engine.checkpoints import Checkpoint, Names
from asl.engine.events import RESUMED
from asl.engine.execution import Execution
from asl.engine.frame import Frame as EngineFrame
from asl.engine.journal import STARTED, Journal
from asl.engine.ledger import Ledger
from asl.engine.record_reading import RecordReader
from asl.engine.record_writing import written_whole
from asl.engine.records import ADVANCED, EXITED, NOTED, STRETCH, WHOLE, WHOLE_PATH, each_record
from asl.engine.records import TOLD as TOLD_RECORD
from asl.engine.usage import (
    NO_USAGE,
    UNSPENT,
    Spent,
    Usage,
    add_amounts,
    read_amounts,
    write_amounts,
)
from asl.engine.written import (
    read_error,
    read_spending,
    read_spent,
    read_usage,
    written_error,
    written_spending,
    written_spent,
    written_usage,
)
from asl.program import Program
from asl.states.blocks.budget import Amounts
from asl.states.blocks.progress import Told
from asl.states.blocks.streaming import CHUNK
from asl.states.calls import Handover, Options
from asl.states.decisions import Asked
from asl.states.effects import Child, Frame, Record
from asl.states.errors import Raised, Suspended

if TYPE_CHECKING:
    from asyncio import TimerHandle

__all__ = ["FAIL_POINTS", "PATIENCE", "UNHEARD", "ForeignAnswer", "JournalKeeping", "task_of"]

FAIL_POINTS = (
    "effect.ready",
    "effect.done",
    "answer.put",
    "position.put",
    "request.put",
    "child.done",
)
"""The instants of a step at which a process may die; see `Journal.reached`."""

SHOWN = 0.05
"""Seconds in which what agents say is gathered before it is shown."""
LOOK = 0.5
"""Seconds between two looks at whether the execution is to be cancelled."""
MUCH = 256 * 1024
"""Bytes that are put from which on they are made durable, and others run, before anybody acts."""
PATIENCE = 16
"""Transactions of a machine by itself until all else on the event loop may run."""
UNHEARD = "!"
"""Ends the key of a request under which it is kept which notices could not be sent."""
BEGAN = "!"
"""Ends the key under which the beginning of a machine is kept that has no history."""
PRICES = "!prices"
"""The key under which the prices of an execution are recorded."""
RIGHTS = "!rights"
"""The key under which the tool policies are kept that bind an execution from outside."""


class ForeignAnswer(AslError):
    """The journal holds the answer to another question: the document was changed, or is not it."""


def _counted(child: Child) -> str:
    """Return the key under which it is kept what of a child's spending is counted."""
    return f"!child.{child.name.rpartition('.')[2]}"


def _earlier(journal: Journal, execution: Execution, flat: list[Any]) -> list[Any]:
    """Return the records that were there before this process, as a flat history."""
    reader = RecordReader(execution, each_record(flat), journal.program)
    return [item for record in journal.records_of(reader) for item in record]


class JournalKeeping:
    """Keeps one execution in a journal (protocol `asl.effects.keeping.Keeping`)."""

    keeps = True

    journal: Journal
    execution: Execution
    """The whole, which counts what the children of distributed Maps spend, too."""
    fresh = True
    """Whether there was nothing in the journal."""
    unshared = PATIENCE
    """Transactions made for this execution alone since others could run; at first they may, for
    those that begin together are to share theirs."""
    _looking: TimerHandle | None = None
    _showing: TimerHandle | None = None
    kept = 0
    """The size of all answers and positions of the execution so far."""

    def __init__(self, journal: Journal, effects: LocalEffects, frame: EngineFrame) -> None:
        """Keep the execution of its top machine in *journal*, and go on from what is there."""
        self.journal = journal
        self.effects, self.runtime, self.caller = effects, effects.runtime, effects.caller
        execution = self.execution = frame.execution
        self.history = execution.emit
        self.top = frame
        self.paused = journal.paused
        effects.names = Names(journal.saved)
        effects.machine = effects.timed_machine = self.machine
        execution.emit, execution.of_children = self.emit, self._emit_of_child
        if journal.spending is not None:
            read_spending(journal.spending, execution)
        if journal.recorded:
            execution.earlier = lambda flat: _earlier(journal, execution, flat)
        if self.runtime.in_event_loop:
            self._look_later()
        self._keep_rights()
        self._keep_prices()
        self.fresh = not (journal.positions or journal.answers or journal.recorded)
        self._recover(frame, self.log(frame))

    def enter_event_loop(self) -> None:
        """Look under the event loop that is running now for a cancellation."""
        self._look_later()

    def _look_later(self) -> None:
        """Look for a cancellation now and then, to end what is under way."""
        if self.journal.watched is None or not isinstance(self.runtime.clock, WallClock):
            return
        from asyncio import current_task, get_running_loop

        loop, task = get_running_loop(), current_task()
        assert task is not None

        def look() -> None:
            if self.journal.is_cancelled():
                task.cancel()
            else:
                self._looking = loop.call_later(LOOK, look)

        self._looking = loop.call_later(LOOK, look)
        self.runtime.holds = True

    def close(self) -> None:
        """End the looks for a cancellation."""
        for timer in (self._looking, self._showing):
            if timer is not None:
                timer.cancel()

    def _keep_rights(self) -> None:
        """Keep the tool policies of whoever has started the execution, or find them."""
        journal, execution = self.journal, self.execution
        known = journal.answers.pop(RIGHTS, None)
        if not execution.rights and known is None:
            return
        from asl.effects.rights import read_rights, written_rights

        if not execution.rights:
            execution.identity = execution.identity._replace(rights=read_rights(known))
        elif known is None:
            journal.put_answer(RIGHTS, written_rights(execution.rights))

    def _keep_prices(self) -> None:
        """Record the prices of the execution, or find those with which it began."""
        journal, execution = self.journal, self.execution
        recorded = journal.answers.pop(PRICES, None)
        if recorded is None:
            recorded = {
                model: [str(price.input), str(price.output)]
                for model, price in execution.prices.items()
            }
            if recorded:
                journal.put_answer(PRICES, recorded)
        from asl.effects.prices import FixedPrices

        execution.prices = FixedPrices(
            execution.prices, recorded, lambda prices: journal.put_answer(PRICES, dict(prices))
        )

    def watch(self, ledger: Ledger) -> None:
        """Bring a new ledger to where that of an earlier process was."""
        ledger.keeps = True
        if self.top.usage == NO_USAGE:  # it begins anew: nothing is spent, all may be
            most = ledger.workflow.most.get("MaxCost")
            self.top.seen_usage(Usage(max_cost=None if most is None else Decimal(most)))
        spending = self.journal.spending
        if spending is not None and len(spending) > 3:
            ledger.restore(spending[3])

    # Machines

    def log(self, frame: Any) -> MachineLog:
        log: MachineLog | None = frame.log
        if log is None:
            log = frame.log = MachineLog(frame.path)
        return log

    def _recover(self, frame: EngineFrame, log: MachineLog) -> None:
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
            life = self.journal.lives.get(log.path)
            if life is not None:  # it is over: its expressions give what they gave then
                frame.execution = frame.execution.as_of(*life)

    async def machine(self, frame: EngineFrame) -> Json:
        """Run a child machine, or give what came of it before."""
        assert frame.parent is not None
        within, owes = frame.parent.log.forks
        log = frame.log = MachineLog(f"{within}{frame.index}]", owes)
        if not self.fresh:
            outcome = self.journal.answers.pop(log.path, None)
            if outcome is not None:
                return self.given("child", log.path, outcome, frame)
            self._recover(frame, log)
        if frame.filled is not None and not self.journal.recorded.get(log.path):
            self.journal.put_filled(log.path, frame.filled)
        try:
            value = await interpret_in_time(self.runtime, frame)
        except StateError as error:
            if self._cut(frame, log, failed=True):
                self.put(frame, log, log.path, "child", None, error)
                self.journal.reached("child.done")
            raise
        except BaseException as stop:
            if self.runtime.ends(stop):  # otherwise it goes on from what stands in the journal
                self._cut(frame, log, failed=False)
            raise
        if log.began:
            if not log.over:
                self.put(frame, log, log.path, "child", value, None)
            self.journal.reached("child.done")
        frame.log = None
        return value

    def _cut(self, frame: EngineFrame, log: MachineLog, *, failed: bool) -> bool:
        """Keep where a child stands that does not go on now; whether there is anything to keep."""
        if not (log.began or log.records):
            return False
        position, kept = self._standing(frame, log, failed)
        self.kept += self.journal.put_position(log.path, position, kept)
        self.journal.reached("position.put")
        log.stands()
        return True

    def _standing(self, frame: EngineFrame, log: MachineLog, failed: bool) -> tuple[Json, str]:
        """Return where a machine stands that was cut off, and what its children's paths begin with.

        Its records up to now are past; whatever it does from here is told anew.
        """
        if log.noted:
            log.write_notes(self.journal)
        position = frame.cut(failed)
        position |= {"records": log.records, "usage": written_usage(frame.usage)}
        return position, f"{frame.visit_key}.{position.get('ordinal', 0)}["

    def leave(self, frame: EngineFrame, failed: bool) -> None:
        """Keep where the top machine stands when the execution ends without success."""
        self.journal.stand(*self._standing(frame, self.log(frame), failed))

    # The history

    def emit(self, record: Record) -> None:
        if record[0] is WHOLE:
            self.history(record)
            _, time, _, _, _, event, details = record
            self.journal.put_record(WHOLE_PATH, written_whole(time, event, details))
            return
        log = record[2].log or self.log(record[2])
        if log.aside is not None or record[0] is STRETCH:
            self._remember(log, record)
        self._write(log, record)

    def _emit_of_child(self, record: Record) -> None:
        """Take a record of a child execution: it is not written, but what it tells is."""
        log = self.log(record[2])
        if record[0] is not ADVANCED:
            self._remember(log, record)
        for told in record[2].execution.run.tells(record):
            self._write(log, told)

    @staticmethod
    def _remember(log: MachineLog, record: Record) -> None:
        """Know from a record where its machine stands, and what an effect has noted."""
        kind, aside = record[0], log.aside
        if kind is STRETCH:
            log.stretch = log.records
        elif aside is not None:
            if kind is NOTED:
                aside.setdefault("notes", []).append([record[1], *record[5:]])
            elif kind is ADVANCED:
                aside["advanced"] = aside.get("advanced", 0) + 1

    def _write(self, log: MachineLog, record: Record) -> None:
        """Write a record unless it is there, and hand it on to the history."""
        number, log.records = log.records, log.records + 1
        if self.fresh or number >= self.journal.recorded.get(log.path, 0):
            if self.paused:
                self.paused = False
                self.effects.tell(self.top, RESUMED)
            self.history(record)
            if log.aside is not None and record[0] in (NOTED, TOLD_RECORD):
                log.noted = [*log.noted, record]
                if record[0] is NOTED and record[5] == CHUNK:
                    self._show(record)
            else:
                if log.noted:
                    log.write_notes(self.journal)
                if record[0] is EXITED and self._is_outcome(log, record):
                    size = log.write_last(self.journal, record)
                    log.weight += size
                    self.kept += size
                else:
                    log.write(self.journal, record)

    def _show(self, chunk: Record) -> None:
        """Show what an agent says while it does; the history has it with the whole answer."""
        _, time, frame, visit, step, _, details = chunk
        if step.redact is not None:
            return
        place = [*frame.place, step.name]
        self.journal.show([place, visit, frame.retries, time, details])
        if self._showing is None:
            from asyncio import get_running_loop

            self._showing = get_running_loop().call_later(SHOWN, self._show_all)
            self.runtime.holds = True

    def _show_all(self) -> None:
        self._showing = None
        self.journal.commit_soon()

    def _is_outcome(self, log: MachineLog, exited: Record) -> bool:
        """Whether the end of a state is that of a child, and says all that is kept of it."""
        ends = exited[-1] is None and log.path != ""
        return ends and not self._has_spent(exited[2].execution)

    def _has_spent(self, execution: Execution) -> bool:
        """Whether an answer has to say what was spent by then."""
        usage = execution.usage
        return bool(usage.tokens or usage.cost) or self.execution.ledger is not None

    def is_paused(self) -> bool:
        """Whether the history says already that the execution is paused."""
        return self.paused

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a new checkpoint."""
        self.journal.put_checkpoint(checkpoint)

    def cut_off(self, at: Frame, now: float) -> None:
        """Give up what the children of a fork that has failed have asked and started."""
        self.journal.cut_off(f"{at.key}[", now)

    # Effects

    async def once(
        self,
        at: Any,
        kind: str,
        perform: Callable[..., Awaitable[Json]],
        *given: Any,
        metered: bool = False,
    ) -> Json:
        """Perform an effect of the machine *at*, or give the answer that it had.

        What is *metered* is durable when it is admitted.
        """
        log, journal = self.log(at), self.journal
        key = at.next_effect(log.path)
        if not self.fresh:
            answer = journal.answers.pop(key, None)
            if answer is not None:
                return self.given(kind, key, answer, at)
            self.runtime.insist_on_time()  # what led here may lie far back
        self.prepare(at, log)
        if not metered:
            if not self.shares:
                journal.flush()
                await self._let_others_run()
            elif self.is_free(log):
                journal.commit_soon()
            elif log.owes:
                await journal.commit(True)
            else:
                journal.flush()
                await self.runtime.pause(0)
            journal.reached("effect.ready")
        log.aside = {}
        try:
            value = await perform(at, *given)
        except StateError as error:
            self.put(at, log, key, kind, None, error)
            raise
        except Suspended:
            if metered:  # its reservation has ended with it
                self.keep_spending()
            raise
        journal.reached("effect.done")
        self.put(at, log, key, kind, value, None)
        return value

    @property
    def shares(self) -> bool:
        """Whether others may put something into the next transaction, which then is worth a wait.

        One machine by itself makes durable at once what it has put, when it is about to act.
        """
        return self.runtime.in_event_loop and (
            bool(self.runtime.forks)
            or self.runtime.first is not None
            or len(self.journal.at_work) > 1
        )

    def is_free(self, log: MachineLog) -> bool:
        """Whether a machine that is not alone may act at once, with nothing made durable."""
        return not log.owes and self.journal.gathered <= MUCH

    async def _let_others_run(self) -> None:
        """Give way now and then: a machine by itself waits for nothing that lets others run."""
        self.unshared += 1
        if self.unshared > PATIENCE:
            self.unshared = 0
            if self.runtime.in_event_loop:
                await self.runtime.pause(0)

    def prepare(self, at: Any, log: MachineLog) -> None:
        """Put what led to an effect."""
        if log.weight > log.least and at.ordinal == 0:
            size = measure(at.data, log.weight) + measure(at.variables, log.weight)
            if size <= log.weight:
                self.put_position(at, log)
            else:
                log.least = 2 * log.weight
        if not log.began:
            log.began = True
            if at.execution is not self.execution:  # which leaves no history
                self.journal.put_answer(log.path + BEGAN, [at.now, written_usage(at.usage)])
        at.seen_usage(None)

    def put_position(self, at: Any, log: MachineLog) -> None:
        """Keep where a machine stands; what an earlier process did in this visit is no past."""
        position = at.position()
        position |= {"records": log.stretch, "usage": written_usage(at.usage)}
        kept = None if self.fresh else at.visit_key
        self.kept += self.journal.put_position(log.path, position, kept)
        log.stands()
        self.journal.reached("position.put")

    def put(
        self, at: Any, log: MachineLog, key: str, kind: str, value: Json, error: StateError | None
    ) -> None:
        """Keep the answer of an effect, or the outcome of a child, and what was spent by then."""
        if log.noted:
            log.write_notes(self.journal)
        answer = [kind, at.now, value, None if error is None else written_error(error)]
        aside, log.aside = log.aside, None
        if aside or self._has_spent(at.execution):
            answer.append(written_usage(at.execution.usage))
            self.journal.put_spending(written_spending(self.execution))
        if aside:
            answer.append(aside)
        journal = self.journal
        size = journal.put_answer(key, answer)
        if key is not log.path:
            log.answered(journal.latest, value)
        log.weight += size
        self.kept += size
        journal.reached("answer.put")
        if self.shares:
            journal.commit_soon()

    def given(self, kind: str, key: str, answer: Json, at: Any) -> Json:
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
        size = measure(["answer", key, answer], 2**62)  # as when it was put
        self.log(at).weight += size
        self.kept += size
        if error is not None:
            raise read_error(error)
        return value

    def _recalled(self, at: Any, aside: dict[str, Any]) -> None:
        """Tell and count again what an effect came to beside its answer."""
        self.log(at).records += aside.get("advanced", 0)  # they stand in the history
        for time, event, details in aside.get("notes", ()):
            at.now = time
            at.note(event, details)
        at.said = aside.get("said")
        if "began" in aside:
            self.log(at).attempt = at.visit, at.retries, aside["began"]
        if "progress" in aside:
            update, reached = aside["progress"]
            at.progress = Told(at.visit, update, tuple(reached))
        if "used" in aside and self.caller.meter is not None:
            self.caller.meter.ledger.recall(at, read_amounts(aside["used"]))

    def unshown(self, at: Any, said: str | None) -> None:
        """Keep what an agent has said that may not be shown yet with its answer."""
        aside = self.log(at).aside
        assert aside is not None
        aside["said"] = said

    def progressed(self, at: Any) -> None:
        """Keep the progress of a call with its answer."""
        aside = self.log(at).aside
        assert aside is not None
        aside["progress"] = [at.progress.update, list(at.progress.reached)]

    def used(self, at: Any, used: Amounts) -> None:
        """Keep what a call counts as with its answer."""
        aside = self.log(at).aside
        assert aside is not None
        known = read_amounts(aside.get("used", {}))  # of calls within this one
        aside["used"] = write_amounts({**known, **add_amounts(known, used)})

    async def admitted(self, at: Any) -> None:
        """Keep that a call is under way, and what is held for it, before it is made."""
        self.keep_spending()
        await self.journal.commit(self.shares)
        self.journal.reached("effect.ready")

    def keep_spending(self) -> None:
        """Keep what the execution has spent."""
        self.journal.put_spending(written_spending(self.execution))

    def begin_attempt(self, call: Call, options: Options) -> None:
        """Set when an attempt began, which may have been in an earlier process.

        What an execution was started for began then; so did what is left of an attempt that has
        called before. A redrive begins anew.

        Raises:
            StateError: States.Timeout, if its time is over.
        """
        started = self.journal.answers.get(call.at.key + STARTED)
        if started is not None and options.timeout is not None:
            options.began = max(started[1], self.execution.redriven or 0.0)
            call.deadline = options.began + options.timeout
        deadline = self.recorded(call.at.key + DEADLINE)
        if deadline is not None and options.timeout is not None:
            options.began, call.deadline = deadline - options.timeout, deadline
            if self.runtime.now() >= deadline:  # the agent is not called any more
                raise lost(Raised("States.Timeout", options.cause("answer", options.timeout)))
        if options.again:
            self._keep_beginning(call.at, call, options)

    def _keep_beginning(self, at: Any, call: Call, options: Options) -> None:
        """Keep when an attempt began, or find it."""
        log = self.log(at)
        if options.began is None:
            options.began = self.runtime.now()
            if log.attempt is not None and log.attempt[:2] == (at.visit, at.retries):
                options.began = log.attempt[2]
                if options.timeout is not None:
                    call.deadline = options.began + options.timeout
        assert log.aside is not None
        log.aside["began"] = options.began

    # Requests to people

    def told(self, asked: Asked) -> None:
        """Keep which notices were sent: what the history says of them depends on it."""
        if asked.told in asked.unheard:
            self.journal.put_answer(asked.key + UNHEARD, list(asked.unheard.items()))
        self.journal.put_request(asked)

    def recorded_decision(self, asked: Asked) -> Json:
        """Take up the decision on a request that another process has recorded, None without one."""
        decided = self.journal.decision(asked)
        if decided is not None:
            self.journal.take_up(asked.id)
        return decided

    async def decide(
        self,
        at: Frame,
        key: str,
        ask: Callable[[Asked], Awaitable[Json]],
        new: Callable[[], Asked],
    ) -> Json:
        """Return the decision on a request about the whole execution, asked for once."""
        journal = self.journal
        answer, known = journal.answers.pop(key, None), journal.requests.pop(key, None)
        asked = known or new()
        if answer is not None:
            if journal.take_up(asked.id):
                journal.put_answer(key, answer)
            return answer[2]
        if known is None:
            journal.put_request(asked)
            await journal.commit(self.shares)
        try:
            decision = await ask(asked)
            journal.put_answer(key, [asked.kind, at.now, decision, None])
            return decision
        finally:
            journal.put_request(asked)

    def is_replaced(self, known: Asked, asked: Asked) -> bool:
        """Whether a redrive has changed what is asked; then no answer to the former counts."""
        if not self.execution.redrives or known.content_digest == asked.content_digest:
            return False
        self.journal.drop_request(known)
        return True

    # The turns of agents that need consent to their tool calls

    def begin_turn(self, turn: AgentTurn) -> Mapping[str, int]:
        """Return how many events of a turn the history has, by what they are about."""
        told = self.recorded(turn.key + TOLD)
        if told is None:
            return {}
        log = self.log(turn.at)
        log.records += told[0]
        assert log.aside is not None
        log.aside["advanced"] = told[0]
        noted: Mapping[str, int] = told[1]
        return noted

    def pause_turn(self, turn: AgentTurn, noted: Mapping[str, int]) -> None:
        """Write the events of a turn that is paused: its agent may do something else next time."""
        log, key = self.log(turn.at), turn.key + TOLD
        told = self.recorded(key)
        count = len(log.noted) + (0 if told is None else told[0])
        log.write_notes(self.journal)
        self.journal.put_answer(key, [count, dict(noted)])

    async def awaits_consent(self, turn: AgentTurn) -> bool:
        """Whether a turn was paused, and people have not decided since."""
        waiting: dict[str, list[Asked]] = {}
        for key, asked in self.journal.requests.items():
            use = key.rpartition(".")[0]
            if key.startswith(turn.key + REQUESTS) and self.recorded(use) is None:
                waiting.setdefault(use, []).append(asked)
        services = self.runtime.services
        handler = services is not None and services.approvals is not None
        if not waiting or handler:
            return False
        undecided = [
            [each for each in asked if not self._is_decided(each)] for asked in waiting.values()
        ]
        if not all(undecided):
            return False
        for asked in (each for group in undecided for each in group):
            if await self._is_over(turn, asked):
                return False
        self.runtime.pending += tuple((each.key, each) for group in undecided for each in group)
        return True

    def _is_decided(self, asked: Asked) -> bool:
        answers = self.journal.answers
        return asked.key in answers or self.journal.decision(asked) is not None

    async def _is_over(self, turn: AgentTurn, asked: Asked) -> bool:
        """Whether the time for a decision is over; what is due until then happens."""
        from asl.effects.asking import ToolAsking

        asking = ToolAsking(turn.caller, turn, asked)
        await asking.begin()
        return await asking.catch_up(self.runtime.now()) is not None

    async def consent(self, turn: AgentTurn, asked: Asked) -> Json:
        """Ask people for consent to a tool call, once; the request is durable beforehand."""
        from asl.effects.asking import ToolAsking

        journal, key = self.journal, asked.key
        known, answer = journal.requests.get(key), journal.answers.get(key)
        if known is not None and self.is_replaced(known, asked):
            known = answer = None
        if known is None:
            journal.put_request(asked)
            journal.reached("request.put")
            await journal.commit(self.shares)
        else:
            asked = known
            asked.unheard = dict(journal.answers.get(key + UNHEARD, ()))
            answer = answer or journal.decision(asked)
            if answer is not None:
                if journal.take_up(asked.id):
                    journal.put_answer(key, answer)
                asked.told = 2**62  # no notification is needed any more
                return await ToolAsking(turn.caller, turn, asked).repeated(answer)
        before, asking = asked.received, ToolAsking(turn.caller, turn, asked)
        try:
            decision = await asking.decision()
        except StateError as error:
            journal.put_answer(key, [asked.kind, asking.time, None, written_error(error)])
            raise
        else:
            journal.put_answer(key, [asked.kind, asking.time, decision, None])
            return decision
        finally:
            journal.put_request(asked, asked.received is not before)

    def withdraw(self, within: str, now: float) -> None:
        """Close the requests whose keys begin so: nothing depends on them any more."""
        self.journal.cut_off(within, now)

    def recorded(self, key: str) -> Json:
        """Return what was recorded within the effect under way, maybe by an earlier process."""
        return self.journal.answers.get(key)

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Record something within the effect under way, with what was spent by then."""
        log, journal = self.log(at), self.journal
        size = journal.put_answer(key, value)
        log.weight += size
        self.kept += size
        journal.put_spending(written_spending(self.execution))
        await journal.commit(self.shares)
        journal.reached("answer.put")

    # Executions of their own

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin it, or find it where an earlier process has begun it."""
        keeper = self.runtime.serving().keeper
        assert keeper is not None  # whoever keeps an execution keeps what it starts
        return keeper.child(self.journal, at.key, child, find)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Begin it once, or find it; None where another execution has its name."""
        keeper = self.runtime.serving().keeper
        assert keeper is not None
        return keeper.started(self.journal, at.key, program, child)

    def counted(self, child: Child) -> Spent:
        """Return what of a child's spending was counted before it went on."""
        written = self.journal.answers.get(_counted(child))
        return UNSPENT if written is None else read_spent(written)

    def count(self, child: Child, spent: Spent) -> None:
        """Keep what of a child's spending is counted."""
        self.journal.put_answer(_counted(child), written_spent(spent))

    def detach(self, begun: Begun) -> None:
        """Let a job go on by itself: the state that has started it has ended without it."""
        keeper = self.runtime.serving().keeper
        assert keeper is not None
        keeper.detach(self.journal, begun.journal)

    async def await_job(self, caller: AgentCaller, call: Call, job: Job) -> Ending:
        """Return the result of a job, or the answer to the token of its state, once and for all."""
        from asl.effects.jobs import KeptJob

        request = Handover(call.target, job.payload, job.options)
        task = task_of(call.at, request, TOKEN, job.began)
        task.beat = None  # a job need not give signs of life, but may
        task = await self.opened(call.at, task)
        with self.settling(task):
            return await KeptJob(self, task, job).ending(call)

    # Task tokens

    async def opened(self, at: Frame, task: Awaited) -> Awaited:
        """Return a task of the journal: the one that is there, or the new one, made durable."""
        known = self.journal.tasks.pop(at.key, None)
        if known is not None:
            return known
        self.journal.put_task(task)
        self.journal.reached("request.put")
        await self.journal.commit(self.shares)
        return task

    @contextmanager
    def settling(self, task: Awaited) -> Iterator[None]:
        """Keep what became of a task when the block ends."""
        try:
            yield
        except StateError:
            task.status = "closed" if task.status == "open" else task.status
            raise
        finally:
            if task.outcome is not None:
                self.journal.take_up(task.token)
            elif task.status != "open":
                self.journal.put_outcome(task)


def task_of(at: Frame, request: Handover, kind: str, created: float) -> Awaited:
    """Return a new request that is answered by its token."""
    target, options = request.target, request.options
    limits = (None, None) if options is None else (options.timeout, options.heartbeat)
    return Awaited(
        at.token, at.key, kind, target.name, target.state, request.payload, created, *limits
    )
