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

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asl.core.errors import AslError, StateError
from asl.core.values import Json, measure
from asl.engine.amounts import kept, read_back, summed
from asl.engine.checkpoints import Names
from asl.engine.events import RESUMED
from asl.engine.execution import NO_USAGE, Execution, Usage
from asl.engine.frame import Frame as EngineFrame
from asl.engine.journal import WHOLE_PATH, Journal
from asl.engine.ledger import Ledger
from asl.engine.record_reading import RecordReader
from asl.engine.record_writing import written_whole
from asl.engine.records import ADVANCED, EXITED, NOTED, STRETCH, TOLD, WHOLE, each_record
from asl.engine.written import (
    read_error,
    read_spending,
    read_usage,
    written_error,
    written_spending,
    written_usage,
)
from asl.hosts.clock import WallClock
from asl.hosts.local import LocalHost
from asl.hosts.machine_log import MachineLog
from asl.hosts.timed import interpret_in_time
from asl.states.blocks.budget import Amounts
from asl.states.blocks.progress import Told
from asl.states.blocks.streaming import CHUNK
from asl.states.errors import Suspended
from asl.states.host import Record

if TYPE_CHECKING:
    from asyncio import TimerHandle

__all__ = ["FAIL_POINTS", "PATIENCE", "ForeignAnswer", "KeptHost"]

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
BEGAN = "!"
"""Ends the key under which the beginning of a machine is kept that has no history."""
PRICES = "!prices"
"""The key under which the prices of an execution are recorded."""
RIGHTS = "!rights"
"""The key under which the tool policies are kept that bind an execution from outside."""


class ForeignAnswer(AslError):
    """The journal holds the answer to another question: the document was changed, or is not it."""


def _earlier(journal: Journal, execution: Execution, flat: list[Any]) -> list[Any]:
    """Return the records that were there before this process, as a flat history."""
    reader = RecordReader(execution, each_record(flat), journal.program)
    return [item for record in journal.records_of(reader) for item in record]


class KeptHost(LocalHost):
    """Runs the machines of one execution that is kept in a journal."""

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

    def keep(self, journal: Journal, frame: EngineFrame) -> None:
        """Keep the execution of its top machine in *journal*, and go on from what is there."""
        self.journal = journal
        execution = self.execution = frame.execution
        self.history = execution.emit
        self.top = frame
        self.paused = journal.paused
        self.names = Names(journal.saved)
        execution.emit, execution.of_children = self._emit, self._emit_of_child
        if journal.spending is not None:
            read_spending(journal.spending, execution)
        if journal.recorded:
            execution.earlier = lambda flat: _earlier(journal, execution, flat)
        if self.in_event_loop:
            self._look_later()
        self._keep_rights()
        self._keep_prices()
        self.fresh = not (journal.positions or journal.answers or journal.recorded)
        self._recover(frame, self._log(frame))

    def enter_event_loop(self) -> None:
        """Go on under the event loop that is running now, and look there for a cancellation."""
        super().enter_event_loop()
        self._look_later()

    def _look_later(self) -> None:
        """Look for a cancellation now and then, to end what is under way."""
        if self.journal.watched is None or not isinstance(self.clock, WallClock):
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
        self.holds = True

    async def close(self) -> None:
        """End what agents still hold, and the looks for a cancellation."""
        for timer in (self._looking, self._showing):
            if timer is not None:
                timer.cancel()
        await super().close()

    def _keep_rights(self) -> None:
        """Keep the tool policies of whoever has started the execution, or find them."""
        journal, execution = self.journal, self.execution
        known = journal.answers.pop(RIGHTS, None)
        if not execution.rights and known is None:
            return
        from asl.hosts.rights import read_rights, written_rights

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
        from asl.hosts.prices import FixedPrices

        execution.prices = FixedPrices(
            execution.prices, recorded, lambda prices: journal.put_answer(PRICES, dict(prices))
        )

    def watch(self, ledger: Ledger) -> None:
        """Hold the calls of agents against a ledger, which goes on from what is there."""
        super().watch(ledger)
        ledger.keeps = True
        if self.top.usage == NO_USAGE:  # it begins anew: nothing is spent, all may be
            most = ledger.workflow.most.get("MaxCost")
            self.top.seen_usage(Usage(max_cost=None if most is None else Decimal(most)))
        spending = self.journal.spending
        if spending is not None and len(spending) > 3:
            ledger.restore(spending[3])

    # Machines

    def _log(self, frame: Any) -> MachineLog:
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
                return self._given("child", log.path, outcome, frame)
            self._recover(frame, log)
        if frame.filled is not None and not self.journal.recorded.get(log.path):
            self.journal.put_filled(log.path, frame.filled)
        try:
            value = await interpret_in_time(frame)
        except StateError as error:
            if self._cut(frame, log, failed=True):
                self._put(frame, log, log.path, "child", None, error)
                self.journal.reached("child.done")
            raise
        except BaseException as stop:
            if self.ends(stop):  # otherwise it goes on from what stands in the journal
                self._cut(frame, log, failed=False)
            raise
        if log.began:
            if not log.over:
                self._put(frame, log, log.path, "child", value, None)
            self.journal.reached("child.done")
        frame.log = None
        return value

    timed_machine = machine

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
        self.journal.stand(*self._standing(frame, self._log(frame), failed))

    # The history

    def _emit(self, record: Record) -> None:
        if record[0] is WHOLE:
            self.history(record)
            _, time, _, _, _, event, details = record
            self.journal.put_record(WHOLE_PATH, written_whole(time, event, details))
            return
        log = record[2].log or self._log(record[2])
        if log.aside is not None or record[0] is STRETCH:
            self._remember(log, record)
        self._write(log, record)

    def _emit_of_child(self, record: Record) -> None:
        """Take a record of a child execution: it is not written, but what it tells is."""
        log = self._log(record[2])
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
                self.tell(self.top, RESUMED)
            self.history(record)
            if log.aside is not None and record[0] in (NOTED, TOLD):
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
            self.holds = True

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

    def suspend(self, frame: EngineFrame) -> None:
        """Say that the execution is paused, if it has gone on since it last was."""
        if not self.paused:
            super().suspend(frame)

    # Effects

    def count_effect(self, at: Any) -> None:
        """Leave the counting to whatever performs an effect once."""

    async def _once(
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
        log, journal = self._log(at), self.journal
        key = at.next_effect(log.path)
        if not self.fresh:
            answer = journal.answers.pop(key, None)
            if answer is not None:
                return self._given(kind, key, answer, at)
            self.insist_on_time()  # what led here may lie far back
        self._prepare(at, log)
        if not metered:
            if not self.shares:
                journal.flush()
                await self._let_others_run()
            elif self._is_free(log):
                journal.commit_soon()
            elif log.owes:
                await journal.commit(True)
            else:
                journal.flush()
                await self._sleep(0)
            journal.reached("effect.ready")
        log.aside = {}
        try:
            value = await perform(at, *given)
        except StateError as error:
            self._put(at, log, key, kind, None, error)
            raise
        except Suspended:
            if metered:  # its reservation has ended with it
                self.keep_spending()
            raise
        journal.reached("effect.done")
        self._put(at, log, key, kind, value, None)
        return value

    @property
    def shares(self) -> bool:
        """Whether others may put something into the next transaction, which then is worth a wait.

        One machine by itself makes durable at once what it has put, when it is about to act.
        """
        return self.in_event_loop and (
            bool(self.forks) or self.first is not None or len(self.journal.at_work) > 1
        )

    def _is_free(self, log: MachineLog) -> bool:
        """Whether a machine that is not alone may act at once, with nothing made durable."""
        return not log.owes and self.journal.gathered <= MUCH

    async def _let_others_run(self) -> None:
        """Give way now and then: a machine by itself waits for nothing that lets others run."""
        self.unshared += 1
        if self.unshared > PATIENCE:
            self.unshared = 0
            if self.in_event_loop:
                await self._sleep(0)

    def _prepare(self, at: Any, log: MachineLog) -> None:
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

    def _put_position(self, at: Any, log: MachineLog) -> None:
        """Keep where a machine stands; what an earlier process did in this visit is no past."""
        position = at.position()
        position |= {"records": log.stretch, "usage": written_usage(at.usage)}
        kept = None if self.fresh else at.visit_key
        self.kept += self.journal.put_position(log.path, position, kept)
        log.stands()
        self.journal.reached("position.put")

    def _put(
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
        size = measure(["answer", key, answer], 2**62)  # as when it was put
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
        if "began" in aside:
            self._log(at).attempt = at.visit, at.retries, aside["began"]
        if "progress" in aside:
            update, reached = aside["progress"]
            at.progress = Told(at.visit, update, tuple(reached))
        if "used" in aside and self.meter is not None:
            self.meter.ledger.recall(at, read_back(aside["used"]))

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

    def used(self, at: Any, used: Amounts) -> None:
        """Keep what a call counts as with its answer."""
        aside = self._log(at).aside
        assert aside is not None
        known = read_back(aside.get("used", {}))  # of calls within this one
        aside["used"] = kept({**known, **summed(known, used)})

    async def admitted(self, at: Any) -> None:
        """Keep that a call is under way, and what is held for it, before it is made."""
        self.keep_spending()
        await self.journal.commit(self.shares)
        self.journal.reached("effect.ready")

    def keep_spending(self) -> None:
        """Keep what the execution has spent."""
        self.journal.put_spending(written_spending(self.execution))
