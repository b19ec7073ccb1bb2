"""The positions and the history of an execution's machines in its journal."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.clock import WallClock
from asl.effects.journaled.log import MachineLog, log_of
from asl.effects.journaled.results import BEGAN, JournaledResults
from asl.effects.local import LocalEffects
from asl.effects.time_limits import interpret_in_time
from asl.engine.checkpoints import Checkpoint, CheckpointNames
from asl.engine.events import RESUMED
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.journal import Journal
from asl.engine.journal_values import (
    check_position,
    read_spending,
    read_time,
    read_usage,
    write_usage,
)
from asl.engine.ledger import Ledger
from asl.engine.record_reader import RecordReader
from asl.engine.record_writer import write_execution_record
from asl.engine.records import (
    ADVANCED,
    EXITED,
    NOTED,
    STRETCH,
    TOLD,
    WHOLE,
    WHOLE_PATH,
    each_record,
)
from asl.engine.usage import NO_USAGE, UNSPENT, UsageTotals
from asl.states.blocks.streaming import CHUNK
from asl.states.effects import Record

if TYPE_CHECKING:
    from asyncio import TimerHandle
from asl.effects.policy_levels import read_levels, write_levels
from asl.effects.prices import FixedPrices

__all__ = ["JournaledExecution", "record_terms"]

SHOWN = 0.05
"""Seconds for which streamed text is collected before it is published."""
LOOK = 0.5
"""Seconds between two checks for a cancellation."""


class JournaledExecution:
    """Records an execution in its journal (protocol `ExecutionPersistence`)."""

    _cancellation_timer: TimerHandle | None = None
    _chunk_timer: TimerHandle | None = None

    def __init__(self, answers: JournaledResults, effects: LocalEffects, frame: Frame) -> None:
        """Attach the journal and restore the top machine."""
        self.answers = answers
        journal = self.journal = answers.journal
        self.effects, self.runtime = effects, answers.runtime
        execution = self.execution = answers.execution
        self.history = execution.emit
        self.top = frame
        self.paused = journal.paused
        effects.names = CheckpointNames(journal.checkpoint_names)
        effects.machine = effects.timed_machine = self.machine
        execution.emit, execution.child_records = self.emit, self._emit_of_child
        if journal.spending is not None:
            with journal.damage_reports():
                read_spending(journal.spending, execution)
        if journal.recorded:
            execution.read_earlier_records = lambda flat: _earlier(journal, execution, flat)
        if self.runtime.in_event_loop:
            self._look_later()
        with journal.damage_reports():
            self._recover(frame, log_of(frame))

    def enter_event_loop(self) -> None:
        """Start checking for a cancellation on the running event loop."""
        self._look_later()

    def _look_later(self) -> None:
        """Check for a cancellation periodically, to end running work."""
        if self.journal.watched is None or not isinstance(self.runtime.clock, WallClock):
            return
        from asyncio import current_task, get_running_loop

        loop, task = get_running_loop(), current_task()
        assert task is not None

        def look() -> None:
            if self.journal.is_cancelled():
                task.cancel()
            else:
                self._cancellation_timer = loop.call_later(LOOK, look)

        self._cancellation_timer = loop.call_later(LOOK, look)
        self.runtime.holds = True

    def close(self) -> None:
        """Stop checking for a cancellation."""
        for timer in (self._cancellation_timer, self._chunk_timer):
            if timer is not None:
                timer.cancel()

    def restore_ledger(self, ledger: Ledger) -> None:
        """Restore the ledger of an earlier process."""
        ledger.is_recoverable = True
        if self.top.usage == NO_USAGE:  # a new start: the whole budget is available
            most = ledger.workflow.limit_amounts.get("MaxCost")
            self.top.show_usage(UsageTotals(max_cost=None if most is None else Decimal(most)))
        spending = self.journal.spending
        if spending is not None and len(spending) > 3:
            with self.journal.damage_reports():
                ledger.restore(spending[3])

    def _recover(self, frame: Frame, log: MachineLog) -> None:
        """Restore the position of a machine."""
        position = self.journal.positions.pop(log.path, None)
        if position is not None:
            check_position(position)
            frame.restore(position)
            log.records = position["records"]
            log.has_start = True
            frame.show_usage(read_usage(position["usage"]))
        elif log.has_start:  # the top machine had spent nothing before its first answer
            frame.show_usage(UsageTotals())
        else:
            found = self.journal.answers.pop(log.path + BEGAN, None)
            began = found or self.journal.child_starts.get(log.path)
            if began is not None:
                now, usage = began
                frame.now = read_time(now)
                frame.show_usage(read_usage(usage))
                if frame.begins_execution:
                    frame.execution.started = frame.now
                log.has_start = True
            life = self.journal.redrive_counts.get(log.path)
            if life is not None:  # an ended child: its expressions have their former values
                frame.execution = frame.execution.with_redrives(*life)

    async def machine(self, frame: Frame) -> Json:
        """Run a child machine, or return its recorded outcome."""
        assert frame.parent is not None
        within, owes = frame.parent.log.forks
        log = frame.log = MachineLog(f"{within}{frame.index}]", owes)
        if not self.answers.is_new:
            outcome = self.journal.answers.pop(log.path, None)
            if outcome is not None:
                return self.answers.recorded_answer("child", log.path, outcome, frame)
            with self.journal.damage_reports():
                self._recover(frame, log)
        if frame.parameter_values is not None and not self.journal.recorded.get(log.path):
            self.journal.put_filled(log.path, frame.parameter_values)
        try:
            value = await self._outcome(frame, log)
        except StateError as error:
            if self._cut(frame, log, failed=True):
                self.answers.put(frame, log, log.path, "child", None, error)
                self.journal.on_fail_point("child.done")
            raise
        except (
            BaseException
        ) as stop:  # any exception is recorded as the child's end, and propagates
            if self.runtime.ends(stop):  # otherwise it is resumed from the journal
                self._cut(frame, log, failed=False)
            raise
        if log.has_start:
            if not log.is_complete:
                self.answers.put(frame, log, log.path, "child", value, None)
            self.journal.on_fail_point("child.done")
        frame.log = None
        return value

    async def _outcome(self, frame: Frame, log: MachineLog) -> Json:
        """Run a child machine, here or elsewhere."""
        assert frame.parent is not None
        run_elsewhere = self.runtime.current_services().run_elsewhere
        if run_elsewhere is not None and frame.execution is not frame.parent.execution:
            outcome = await run_elsewhere(frame)
            if outcome is not None:
                log.has_start, frame.now = True, self.runtime.now()
                frame.execution.absorb(frame.step.name, outcome.spent, UNSPENT)
                if outcome.error is not None:
                    raise outcome.error
                return outcome.value
        return await interpret_in_time(self.runtime, frame)

    def _cut(self, frame: Frame, log: MachineLog, *, failed: bool) -> bool:
        """Record the position of an interrupted child; return whether there is one."""
        if not (log.has_start or log.records):
            return False
        position, kept = self._standing(frame, log, failed)
        self.answers.stored_size += self.journal.put_position(log.path, position, kept)
        self.journal.on_fail_point("position.put")
        log.note_position()
        return True

    def _standing(self, frame: Frame, log: MachineLog, failed: bool) -> tuple[Json, str]:
        """Return the position of a stopped machine, and the prefix of its children's paths."""
        if log.pending_events:
            log.write_notes(self.journal)
        position = frame.interrupted_position(failed)
        position |= {"records": log.records, "usage": write_usage(frame.usage)}
        return position, f"{frame.visit_key}.{position.get('ordinal', 0)}["

    def record_position(self, frame: Frame, failed: bool) -> None:
        """Record the position of the top machine when the execution fails or times out."""
        self.journal.put_final_position(*self._standing(frame, log_of(frame), failed))

    # The history

    def emit(self, record: Record) -> None:
        if record[0] is WHOLE:
            self.history(record)
            _, time, _, _, _, event, details = record
            self.journal.put_record(WHOLE_PATH, write_execution_record(time, event, details))
            return
        log = record[2].log or log_of(record[2])
        if log.side_data is not None or record[0] is STRETCH:
            self._remember(log, record)
        self._write(log, record)

    def _emit_of_child(self, record: Record) -> None:
        """Take a record of a child execution; only the events that follow from it are written."""
        log = log_of(record[2])
        if record[0] is not ADVANCED:
            self._remember(log, record)
        for told in record[2].execution.run.reported_records(record):
            self._write(log, told)

    @staticmethod
    def _remember(log: MachineLog, record: Record) -> None:
        """Update a machine's log from a record."""
        kind, aside = record[0], log.side_data
        if kind is STRETCH:
            log.stretch = log.records
        elif aside is not None:
            if kind is NOTED:
                aside.setdefault("notes", []).append([record[1], *record[5:]])
            elif kind is ADVANCED:
                aside["advanced"] = aside.get("advanced", 0) + 1

    def _write(self, log: MachineLog, record: Record) -> None:
        """Write a record unless it is written already, and pass it to the history."""
        number, log.records = log.records, log.records + 1
        if self.answers.is_new or number >= self.journal.recorded.get(log.path, 0):
            if self.paused:
                self.paused = False
                self.effects.tell(self.top, RESUMED)
            self.history(record)
            if log.side_data is not None and record[0] in (NOTED, TOLD):
                log.pending_events = [*log.pending_events, record]
                if record[0] is NOTED and record[5] == CHUNK:
                    self._show(record)
            else:
                if log.pending_events:
                    log.write_notes(self.journal)
                if record[0] is EXITED and self._is_outcome(log, record):
                    size = log.write_last(self.journal, record)
                    log.weight += size
                    self.answers.stored_size += size
                else:
                    log.write(self.journal, record)

    def _show(self, chunk: Record) -> None:
        """Publish streamed text of an agent; the history has it with the complete answer."""
        _, time, frame, visit, step, _, details = chunk
        if step.redact is not None:
            return
        place = [*frame.place, step.name]
        self.journal.show([place, visit, frame.retries, time, details])
        if self._chunk_timer is None:
            from asyncio import get_running_loop

            self._chunk_timer = get_running_loop().call_later(SHOWN, self._show_all)
            self.runtime.holds = True

    def _show_all(self) -> None:
        self._chunk_timer = None
        self.journal.commit_soon()

    def _is_outcome(self, log: MachineLog, exited: Record) -> bool:
        """Return whether the end of a state is also the recorded outcome of a child."""
        ends = exited[-1] is None and log.path != ""
        return ends and not self.answers.has_spent(exited[2].execution)

    def is_paused(self) -> bool:
        """Return whether the history has recorded the current pause."""
        return self.paused

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record a new checkpoint."""
        self.journal.put_checkpoint(checkpoint)

    def abandon_children(self, frame: Frame, now: float) -> None:
        """Close the requests and executions of the children of a failed fork."""
        self.journal.cut_off(f"{frame.key}[", now)

    def keep_spending(self) -> None:
        """Record the spending of the execution."""
        self.answers.keep_spending()


def _earlier(journal: Journal, execution: Execution, flat: list[Any]) -> list[Any]:
    """Return the records from before this process, as a flat history."""
    reader = RecordReader(execution, each_record(flat), journal.program)
    return [item for record in journal.records_of(reader) for item in record]


PRICES = "!prices"
"""Key of the recorded prices."""
RIGHTS = "!rights"
"""Key of the recorded tool policies of the parent execution."""


def record_terms(journal: Journal, execution: Execution) -> None:
    """Record the tool policies and prices of an execution, or restore the recorded ones."""
    _keep_rights(journal, execution)
    _keep_prices(journal, execution)


def _keep_rights(journal: Journal, execution: Execution) -> None:
    """Record the tool policies of the parent execution, or restore them."""
    known = journal.answers.pop(RIGHTS, None)
    if not execution.rights and known is None:
        return
    if not execution.rights:
        with journal.damage_reports():
            execution.identity = execution.identity._replace(rights=read_levels(known))
    elif known is None:
        journal.put_answer(RIGHTS, write_levels(execution.rights))


def _keep_prices(journal: Journal, execution: Execution) -> None:
    """Record the prices of the execution, or restore them."""
    recorded = journal.answers.pop(PRICES, None)
    if recorded is None:
        recorded = {
            model: [str(price.input), str(price.output)]
            for model, price in execution.prices.items()
        }
        if recorded:
            journal.put_answer(PRICES, recorded)
    execution.prices = FixedPrices(
        execution.prices, recorded, lambda prices: journal.put_answer(PRICES, dict(prices))
    )
