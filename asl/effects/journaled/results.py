"""The results of effects in a journal: each effect is performed once.

An effect first commits all entries before it (the position of its machine, earlier answers, records
of the history), then acts. Its own answer is durable by the end of the turn of the event loop, at
the latest before the next effect of its machine. The entries before the first effect of a child
were committed when the fork began, so it acts immediately; with limited concurrency it waits for
the answers of earlier children. A machine without concurrent ones commits its entries itself when
it is about to act. At recovery each machine runs again from its position; effects with an answer
return it instead of acting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asl.core.errors import AslError, StateError
from asl.core.values import Json, measure
from asl.effects.agent_turn import TOLD
from asl.effects.caller import Caller
from asl.effects.journaled.log import MachineLog, log_of
from asl.engine.execution import Execution
from asl.engine.frame import Frame
from asl.engine.journal import Journal
from asl.engine.journal_values import (
    read_error,
    read_time,
    read_usage,
    write_error,
    write_spending,
    write_usage,
)
from asl.engine.usage import UsageTotals, read_amounts
from asl.states.blocks.progress import ReportedProgress
from asl.states.errors import Suspension

__all__ = ["FAIL_POINTS", "PATIENCE", "JournalMismatch", "JournaledResults"]

FAIL_POINTS = (
    "effect.ready",
    "effect.done",
    "answer.put",
    "position.put",
    "request.put",
    "child.done",
)
"""Points of a step at which tests kill the process; see `Journal.on_fail_point`."""

MUCH = 256 * 1024
"""Bytes of entries from which on they are committed, and others run, before the next effect."""
PATIENCE = 16
"""Commits of a single machine until it yields to the event loop."""
BEGAN = "!"
"""Suffix of the key of a machine's start, for a machine without a history."""


class JournalMismatch(AslError):
    """The journal has the result of another effect: the document was changed."""


class JournaledResults:
    """Performs effects once, and records the results of effects and child machines.

    Args:
        journal: The journal.
        execution: The whole execution, which also counts the spending of children of distributed
            Maps.
        caller: Calls the agents of the execution.
    """

    own_commits = PATIENCE
    """Commits for this execution alone since it last yielded; initially at the limit, so that
    executions that start together share commits."""
    stored_size = 0
    """Size of all answers and positions of the execution so far."""

    def __init__(self, journal: Journal, execution: Execution, caller: Caller) -> None:
        self.journal = journal
        self.execution = execution
        self.caller = caller
        self.runtime = caller.runtime
        self.is_new = not (journal.positions or journal.answers or journal.recorded)
        """Whether the journal was empty."""

    async def perform_once(
        self,
        frame: Frame,
        kind: str,
        perform: Callable[..., Awaitable[Json]],
        *given: Any,
        metered: bool = False,
    ) -> Json:
        """Perform an effect of the machine *frame*, or return its recorded result.

        Args:
            frame: The machine.
            kind: Kind of the effect.
            perform: Performs it.
            metered: Whether the budget gate commits at its admission.
        """
        log, journal = log_of(frame), self.journal
        key = frame.next_effect(log.path)
        if not self.is_new:
            answer = journal.answers.pop(key, None)
            if answer is not None:
                return self.recorded_answer(kind, key, answer, frame)
            self.runtime.raise_if_expired()  # the entries before it may be much older
        self.prepare(frame, log)
        if not metered:
            if not self.shares:
                journal.flush()
                await self._let_others_run()
            elif self.is_free(log):
                journal.commit_soon()
            elif log.must_commit:
                await journal.commit(True)
            else:
                journal.flush()
                await self.runtime.pause(0)
            journal.on_fail_point("effect.ready")
        log.side_data = {}
        try:
            try:
                value = await perform(frame, *given)
            finally:
                self.pass_noted(log, key)
        except StateError as error:
            self.put(frame, log, key, kind, None, error)
            raise
        except Suspension:
            if metered:  # its reservation has ended
                self.keep_spending()
            raise
        journal.on_fail_point("effect.done")
        self.put(frame, log, key, kind, value, None)
        return value

    def pass_noted(self, log: MachineLog, key: str) -> Json:
        """Count the events that a paused turn has recorded, once.

        Returns:
            Their number and those by subject, None without a paused turn.
        """
        noted = None if self.is_new else self.journal.answers.get(key + TOLD)
        aside = log.side_data
        if noted is not None and aside is not None and "advanced" not in aside:
            log.records += noted[0]
            aside["advanced"] = noted[0]
        return noted

    @property
    def shares(self) -> bool:
        """Return whether others may write in the next transaction, so that waiting for it pays.

        A single machine commits its entries when it is about to act.
        """
        return self.runtime.in_event_loop and (
            bool(self.runtime.forks)
            or self.runtime.first is not None
            or len(self.journal.running_locks) > 1
        )

    def is_free(self, log: MachineLog) -> bool:
        """Return whether a machine among others may act before a commit."""
        return not log.must_commit and self.journal.uncommitted_bytes <= MUCH

    async def _let_others_run(self) -> None:
        """Yield periodically, because a single machine never waits otherwise."""
        self.own_commits += 1
        if self.own_commits > PATIENCE:
            self.own_commits = 0
            if self.runtime.in_event_loop:
                await self.runtime.pause(0)

    def prepare(self, frame: Frame, log: MachineLog) -> None:
        """Write the entries that precede an effect."""
        if log.weight > log.position_weight and frame.ordinal == 0:
            size = measure(frame.data, log.weight) + measure(frame.variables, log.weight)
            if size <= log.weight:
                self.put_position(frame, log)
            else:
                log.position_weight = 2 * log.weight
        if not log.has_start:
            log.has_start = True
            if frame.execution is not self.execution:  # which has no history
                self.journal.put_answer(log.path + BEGAN, [frame.now, write_usage(frame.usage)])
        frame.show_usage(None)

    def put_position(self, frame: Frame, log: MachineLog) -> None:
        """Record the position of a machine."""
        position = frame.position()
        position |= {"records": log.stretch, "usage": write_usage(frame.usage)}
        kept = None if self.is_new else frame.visit_key
        self.stored_size += self.journal.put_position(log.path, position, kept)
        log.note_position()
        self.journal.on_fail_point("position.put")

    def put(
        self,
        frame: Frame,
        log: MachineLog,
        key: str,
        kind: str,
        value: Json,
        error: StateError | None,
    ) -> None:
        """Record the answer of an effect, or the outcome of a child, with the spending so far."""
        if log.pending_events:
            log.write_notes(self.journal)
        answer = [kind, frame.now, value, None if error is None else write_error(error)]
        aside, log.side_data = log.side_data, None
        if aside or self.has_spent(frame.execution):
            answer.append(write_usage(frame.execution.usage))
            self.journal.put_spending(write_spending(self.execution))
        if aside:
            answer.append(aside)
        journal = self.journal
        size = journal.put_answer(key, answer)
        if key is not log.path:
            log.note_answer(journal.latest, value)
        log.weight += size
        self.stored_size += size
        journal.on_fail_point("answer.put")
        if self.shares:
            journal.commit_soon()

    def recorded_answer(self, kind: str, key: str, answer: Json, frame: Frame) -> Json:
        """Return a recorded answer.

        Raises:
            StateError: The effect failed.
            JournalMismatch: The journal has the answer of another effect.
        """
        with self.journal.damage_reports():
            of, now, value, error, *more = answer
            if of != kind:
                raise JournalMismatch(
                    f"{key}: the journal has the answer of a {of}, where a {kind} is asked now"
                )
            frame.show_usage(read_usage(more[0]) if more else UsageTotals())
            notes = self._restore_aside(frame, more[1]) if len(more) > 1 else []
            now = read_time(now)
            size = measure(["answer", key, answer], 2**62)  # as at the time of recording
            failure = None if error is None else read_error(error)
        for time, event, details in notes:
            frame.now = time
            frame.note(event, details)
        frame.now = now
        log_of(frame).weight += size
        self.stored_size += size
        if failure is not None:
            raise failure
        return value

    def _restore_aside(
        self, frame: Frame, side_data: dict[str, Any]
    ) -> list[tuple[float, str, dict[str, Json]]]:
        """Restore the usage and progress recorded with an answer, and return its events."""
        log_of(frame).records += side_data.get("advanced", 0)  # the history has them already
        frame.partial_answer = side_data.get("said")
        if "began" in side_data:
            log_of(frame).attempt = frame.visit, frame.retries, side_data["began"]
        if "progress" in side_data:
            update, reached = side_data["progress"]
            frame.progress = ReportedProgress(frame.visit, update, tuple(reached))
        if "used" in side_data and self.caller.budget_gate is not None:
            self.caller.budget_gate.ledger.restore_tool_usage(
                frame, read_amounts(side_data["used"]), side_data.get("assumed", False)
            )
        notes = side_data.get("notes", ())
        return [(read_time(time), event, {**details}) for time, event, details in notes]

    def has_spent(self, execution: Execution) -> bool:
        """Return whether an answer has to include the spending so far."""
        usage = execution.usage
        return bool(usage.tokens or usage.cost) or self.execution.ledger is not None

    def keep_spending(self) -> None:
        """Record the spending of the execution."""
        self.journal.put_spending(write_spending(self.execution))
