"""Events of the tool calls of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.caller import Caller
from asl.effects.tools.outcomes import ToolOutcome
from asl.effects.tools.policies import CallPolicies
from asl.engine.agent import Call
from asl.states.errors import RaisedError

__all__ = ["ToolLog"]

MAX_DETAILED: Final = 200
"""Number of tool calls of one agent call recorded with arguments and results; later ones only by
name."""


class ToolLog:
    """Records the tool calls of one call of an agent."""

    def __init__(self, caller: Caller, call: Call, policies: CallPolicies) -> None:
        self.caller = caller
        self.outer = call
        self.policies = policies
        self.logged = 0

    def refuse(
        self,
        tool: str,
        arguments: Json,
        error: str,
        cause: str,
        outcome: ToolOutcome | None = None,
    ) -> None:
        """Record that a tool was requested and not called."""
        tool, arguments, cause = self.outer.hide([tool, arguments, cause])
        outcome = outcome or ToolOutcome(self.outer.place)
        outcome.event, outcome.details = "ToolRefused", {"error": error, "cause": cause}
        outcome.time = self.caller.runtime.now()
        self.record_outcome(outcome, tool, arguments)

    @contextmanager
    def record_refusal(
        self, tool: str, arguments: Json, outcome: ToolOutcome | None = None
    ) -> Iterator[None]:
        """Record a tool call as refused if its preparation fails or is cancelled.

        Raises:
            RaisedError: The preparation fails; other errors of the state are converted to it.
        """
        try:
            yield
        except StateError as error:
            self.refuse(tool, arguments, str(error.name), str(error.cause), outcome)
            if isinstance(error, RaisedError):
                raise
            raise RaisedError(error.name, error.cause) from None
        except BaseException as stop:  # cancelled or paused: recorded, and propagated
            self._give_up(tool, arguments, stop)
            raise

    def _give_up(self, tool: str, arguments: Json, stop: BaseException) -> None:
        """Record that a call was cancelled before the tool was reached."""
        if self.pauses:
            return
        self.refuse(tool, arguments, "States.Timeout", self.cancellation_cause(stop))

    def cancellation_cause(self, stop: BaseException) -> str:
        """Return the cause of a call that was cancelled."""
        state = self.outer.state_name
        return f"state '{state}': the call was given up ({type(stop).__name__})"

    @property
    def pauses(self) -> bool:
        """Return whether the turn is being paused, so that interrupted calls continue later."""
        return self.outer.place is not None and self.outer.place.turn.is_pausing

    def record_outcome(self, outcome: ToolOutcome, tool: str, arguments: Json) -> None:
        """Record the outcome of a tool call, as far as the policies allow."""
        shown: dict[str, Json] = {"tool": tool[:200]}
        levels = {level.policy.level for level in self.policies.levels} or {"standard"}
        self.logged += 1
        if self.logged <= MAX_DETAILED and levels & {"standard", "full"} and arguments is not None:
            shown["arguments"] = arguments
        shown |= outcome.details
        if "result" in shown and (self.logged > MAX_DETAILED or "full" not in levels):
            del shown["result"]
        at = self.outer.at
        if outcome.place is None:
            at.now = outcome.time
            at.note(outcome.event, shown)
        else:
            outcome.place.turn.note(outcome.name, outcome.event, shown, outcome.time)
