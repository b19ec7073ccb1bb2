"""Journal entries about a running call."""

from __future__ import annotations

from collections.abc import Mapping

from asl.core.errors import mark_usage_unknown
from asl.core.values import Json
from asl.effects.agent_turn import DEADLINE, TOLD
from asl.effects.journaled.log import log_of
from asl.effects.journaled.requests import FAILED_NOTICES
from asl.effects.journaled.results import JournaledResults
from asl.engine.agent import Call
from asl.engine.frame import Frame
from asl.engine.journal import STARTED
from asl.engine.journal_values import write_spending
from asl.engine.usage import add_amounts, read_amounts, write_amounts
from asl.states.blocks.budget_limits import Amounts
from asl.states.calls import CallOptions
from asl.states.errors import RaisedError

__all__ = ["JournaledCalls"]


class JournaledCalls:
    """Records the calls of an execution in its journal (protocol `CallPersistence`)."""

    def __init__(self, answers: JournaledResults) -> None:
        self.answers = answers
        self.journal, self.execution = answers.journal, answers.execution
        self.runtime = answers.runtime

    async def record_admission(self, frame: Frame) -> None:
        """Record an admitted call with its reservation, before it starts."""
        self.answers.keep_spending()
        await self.journal.commit(self.answers.shares)
        self.journal.on_fail_point("effect.ready")

    def begin_attempt(self, call: Call, options: CallOptions) -> None:
        """Set the start of an attempt, possibly from an earlier process.

        The attempt of a started execution, or one that has called before, keeps its start; a
        redrive starts anew.

        Raises:
            StateError: States.Timeout; its time is over.
        """
        started = self.journal.answers.get(call.at.key + STARTED)
        if started is not None and options.timeout is not None:
            options.start = max(started[1], self.execution.redriven or 0.0)
            call.deadline = options.start + options.timeout
        deadline = self.recorded_value(call.at.key + DEADLINE)
        if deadline is not None and options.timeout is not None:
            options.start, call.deadline = deadline - options.timeout, deadline
            if self.runtime.now() >= deadline:  # the agent is not called
                raise mark_usage_unknown(
                    RaisedError("States.Timeout", options.cause("answer", options.timeout))
                )
        if options.repeats:
            self._keep_beginning(call.at, call, options)

    def _keep_beginning(self, frame: Frame, call: Call, options: CallOptions) -> None:
        """Record the start of an attempt, or find the recorded one."""
        log = log_of(frame)
        if options.start is None:
            options.start = self.runtime.now()
            if log.attempt is not None and log.attempt[:2] == (frame.visit, frame.retries):
                options.start = log.attempt[2]
                if options.timeout is not None:
                    call.deadline = options.start + options.timeout
        assert log.side_data is not None
        log.side_data["began"] = options.start

    def record_unshown_text(self, frame: Frame, said: str | None) -> None:
        """Record streamed text that may not be shown yet with the answer."""
        aside = log_of(frame).side_data
        assert aside is not None
        aside["said"] = said

    def record_progress(self, frame: Frame) -> None:
        """Record the progress of a call with its answer."""
        aside = log_of(frame).side_data
        assert aside is not None
        assert frame.progress is not None
        aside["progress"] = [frame.progress.update, list(frame.progress.reached)]

    def record_usage(self, frame: Frame, used: Amounts, assumed: bool = False) -> None:
        """Record the usage of a call with its answer; *assumed*: whether a part of it is."""
        aside = log_of(frame).side_data
        assert aside is not None
        known = read_amounts(aside.get("used", {}))  # usage of nested calls
        aside["used"] = write_amounts({**known, **add_amounts(known, used)})
        if assumed:
            aside["assumed"] = True

    def recorded_value(self, key: str) -> Json:
        """Return the value recorded within the current effect, possibly by an earlier process."""
        return self.journal.answers.get(key)

    def recorded_values(self, key: str) -> Mapping[str, Json]:
        """Return the values recorded within the effect of a key, by the rest of their keys."""
        requests = self.journal.requests
        others = {key + TOLD, key + DEADLINE, *(each + FAILED_NOTICES for each in requests)}
        return {
            name.removeprefix(key): value
            for name, value in self.journal.answers.items()
            if name.startswith(f"{key}!") and name not in requests and name not in others
        }

    async def record(self, frame: Frame, key: str, value: Json) -> None:
        """Record a value and the spending within the current effect."""
        log, journal = log_of(frame), self.journal
        size = journal.put_answer(key, value)
        log.weight += size
        self.answers.stored_size += size
        journal.put_spending(write_spending(self.execution))
        await journal.commit(self.answers.shares)
        journal.on_fail_point("answer.put")

    def begin_turn(self, frame: Frame, key: str) -> Mapping[str, int]:
        """Return the number of recorded events of a turn, by subject."""
        told = self.answers.pass_noted(log_of(frame), key)
        noted: Mapping[str, int] = {} if told is None else told[1]
        return noted

    def pause_turn(self, frame: Frame, key: str, noted: Mapping[str, int]) -> None:
        """Record the events of a paused turn, which may differ when the agent runs again."""
        log, key = log_of(frame), key + TOLD
        told = self.recorded_value(key)
        count = len(log.pending_events) + (0 if told is None else told[0])
        log.write_notes(self.journal)
        self.journal.put_answer(key, [count, dict(noted)])
