"""Turns of agents whose tools require consent: a turn can pause and be repeated (8.9).

User code cannot be suspended. While approvers decide, the call of the agent is cancelled; it is
repeated after their decision. The earlier answers of its tools and its model are recorded under the
key of the effect, and returned instead of calling them again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.approval_process import ToolApprovalProcess
from asl.effects.caller import Caller
from asl.engine.agent import Call
from asl.engine.exception_mapping import is_cancellation, is_control_flow
from asl.engine.turns import OpenToolCall
from asl.states.approval_request import ApprovalRequest
from asl.states.effects import RequestContent
from asl.states.errors import Suspension

if TYPE_CHECKING:
    import asyncio

__all__ = ["DEADLINE", "TOLD", "TOOL_CALL", "AgentTurn", "RecordedTurn"]

TOOL_CALL: Final = "!tool."
"""Follows the key of an effect in the keys of its tool calls and their requests."""
TOLD: Final = "!told"
"""Suffix of the key under which the recorded events of a turn are counted."""
DEADLINE: Final = "!deadline"
"""Suffix of the key under which the deadline of a repeated call is recorded."""
BREATHS: Final = 16
"""Turns of the event loop in which an agent may start another call before it is paused."""


class RecordedTurn:
    """The records, events and requests of one call of an agent, over all of its repetitions."""

    def __init__(self, caller: Caller, call: Call) -> None:
        self.caller = caller
        self.call = call
        self.at = call.at
        self.key = call.at.key
        self._numbers: dict[str, int] = {}
        self._recorded_events: Mapping[str, int] = {}
        """Number of events recorded before the pause, by subject."""
        self._events: dict[str, int] = {}
        """Number of events in this run, by subject."""

    def _suspend(self) -> NoReturn:
        noted = {**self._recorded_events, **self._events}
        self.caller.persistence.calls.pause_turn(self.at, self.key, noted)
        raise Suspension from None

    def _withdraw(self) -> None:
        """Close the requests of a turn that has ended, because nothing depends on them."""
        runtime = self.caller.runtime
        runtime.persistence.requests.withdraw(f"{self.key}{TOOL_CALL}", runtime.now())
        runtime.forget_requests(f"{self.key}{TOOL_CALL}")

    def note(self, source: str, event: str, details: dict[str, Json], time: float) -> None:
        """Record an event, unless it was recorded before the turn was paused.

        Args:
            source: Subject of the event; the events of a subject have the same order in each
                repetition.
            event: Name of the event.
            details: Its details.
            time: Its time in epoch seconds.
        """
        self._events[source] = number = self._events.get(source, 0) + 1
        if number > self._recorded_events.get(source, 0):
            self.at.now = max(self.at.now, time)
            self.at.note(event, details)

    def number(self, what: str) -> int:
        """Return how often this method was called with *what* in this turn, including this call."""
        self._numbers[what] = number = self._numbers.get(what, 0) + 1
        return number

    def recorded_value(self, name: str) -> Json:
        """Return the value recorded under a name before the turn was paused, None without one."""
        return self.caller.persistence.calls.recorded_value(f"{self.key}{name}")

    async def record(self, name: str, value: Json) -> None:
        """Record a value durably for a repetition of the turn."""
        await self.caller.persistence.calls.record(self.at, f"{self.key}{name}", value)

    async def perform_once(self, what: str, perform: Callable[[], Awaitable[Json]]) -> Json:
        """Return the result of *perform*, or the recorded one from before the pause."""
        name = f"!{what}.{self.number(what)}"
        found = self.recorded_value(name)
        if found is None:
            found = [await perform()]
            await self.record(name, found)
        return found[0]

    async def _consent(self, name: str, question: RequestContent) -> Json:
        """Return the decision on a tool call.

        Raises:
            Suspension: There is none yet.
            StateError: The decision fails the call.
        """
        plan, deadline = dict(question.plan), self.call.deadline
        if deadline is not None:
            plan["limit"] = deadline - self.caller.runtime.now()
            if self.number(DEADLINE) == 1:
                await self.record(DEADLINE, deadline)
        asked = self.caller.runtime.new_request(
            self.at, f"{self.key}{name}", question._replace(plan=plan)
        )
        return await self.caller.persistence.requests.consent(asked, self._process)

    def _process(self, request: ApprovalRequest) -> ToolApprovalProcess:
        """Return the approval process of a request of the turn."""
        return ToolApprovalProcess(self.caller, self.at, self.note, request)


class AgentTurn(RecordedTurn):
    """One call of an agent with all of its tool calls (protocol `asl.engine.turns.PausableTurn`).

    It is paused when all of its tool calls wait for approvals.
    """

    def __init__(self, caller: Caller, call: Call) -> None:
        super().__init__(caller, call)
        self.is_pausing = False
        self._open_requests = 0
        """Requests without a decision."""
        self._working_calls = 0
        """Number of tool calls that wait neither for an approval nor for a call within them."""
        self._remaining_yields = 0
        self._task: asyncio.Task[Any] | None = None

    async def run(self, answer: Callable[[], Awaitable[Json]]) -> Json:
        """Return the agent's answer.

        Raises:
            Suspension: Approvers have to decide first.
        """
        loop = await self.caller.runtime.event_loop()
        self._recorded_events = self.caller.persistence.calls.begin_turn(self.at, self.key)
        if await self.caller.persistence.requests.awaits_consent(self.key, self._process):
            self._suspend()
        from asyncio import current_task

        self._loop, self._task = loop, current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        try:
            found = await answer()
        except BaseException as error:  # of user code, which a pause may have cancelled
            if self.is_pausing and not is_control_flow(error):
                self._pause(error)
            self._end(withdraw=not (is_control_flow(error) or is_cancellation(error)))
            raise
        if self.is_pausing:
            self._pause(None)
        self._end(withdraw=True)
        return found

    def _pause(self, error: BaseException | None) -> NoReturn:
        """Raise Suspension for the cancellation that pauses the turn."""
        assert self._task is not None
        task, self._task = self._task, None
        if (
            task.uncancel() > self._cancelling and error is not None
        ):  # cancelled from outside as well
            raise error
        self._suspend()

    def _end(self, *, withdraw: bool) -> None:
        """End the turn; the agent may leave open requests."""
        self._task = None
        if withdraw:
            self._withdraw()

    # Tool calls

    def begin(self, around: OpenToolCall | None) -> OpenToolCall:
        """Count the start of a tool call, nested if *around* is given."""
        if around is not None:
            self._working_calls -= not around.within
            around.within += 1
        self._working_calls += 1
        return OpenToolCall(around)

    def end(self, use: OpenToolCall) -> None:
        """Count the end of a tool call."""
        self._working_calls -= not use.waits
        if use.around is not None:
            use.around.within -= 1
            self._working_calls += not use.around.within
        self._pause_if_idle()

    async def request_decision(
        self, use: OpenToolCall, name: str, question: RequestContent
    ) -> Json:
        """Return the decision on a tool call.

        Without a decision the turn is paused, which cancels this coroutine.

        Raises:
            StateError: The decision fails the call.
        """
        self._open_requests += 1
        try:
            decision = await self._consent(name, question)
        except Suspension:
            use.waits = True
            self._working_calls -= 1
            self._pause_if_idle()
            await self._loop.create_future()
            raise  # only the cancellation of the turn ends this wait
        except StateError:
            self._open_requests -= 1
            raise
        self._open_requests -= 1
        return decision

    def _pause_if_idle(self) -> None:
        """Pause the turn soon, unless a call starts until then."""
        if self._open_requests and not (
            self._working_calls or self._remaining_yields or self.is_pausing
        ):
            self._remaining_yields = BREATHS
            self._loop.call_soon(self._breathe)

    def _breathe(self) -> None:
        self._remaining_yields -= 1
        if self._working_calls or self._task is None:
            self._remaining_yields = 0
        elif self._remaining_yields:
            self._loop.call_soon(self._breathe)
        else:
            self.is_pausing = True
            self._task.cancel()
