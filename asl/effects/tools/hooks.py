"""Hooks of policies: agents that are called before and after a tool."""

from __future__ import annotations

from asl.core.errors import StateError
from asl.core.values import Json
from asl.effects.caller import Caller
from asl.effects.tools.outcomes import OWN_NAMES, ToolOutcome
from asl.effects.tools.policies import CallPolicies
from asl.effects.tools.tool_log import ToolLog
from asl.engine.agent import Call
from asl.engine.reservations import Reservation
from asl.states.blocks.tool_policy import ToolHook
from asl.states.blocks.verdicts import UnclearVerdict, is_verdict, rejection
from asl.states.calls import CallOptions, Target
from asl.states.errors import RaisedError

__all__ = ["ToolHooks"]


class ToolHooks:
    """Calls the hooks around the tools of one agent call."""

    def __init__(self, caller: Caller, call: Call, policies: CallPolicies, log: ToolLog) -> None:
        self.caller = caller
        self.outer = call
        self.policies = policies
        self.log = log

    async def before(self, tool: str, arguments: Json, outcome: ToolOutcome) -> None:
        """Call the hooks before a tool.

        Raises:
            RaisedError: A hook blocks the call.
        """
        request = {"tool": tool, "arguments": arguments, "state": self.outer.state_name}
        for level in self.policies.levels:
            if "Before" not in level.hooks:
                continue
            hook, reservation = level.hooks["Before"], self.outer.reservation
            with self.log.record_refusal(tool, arguments, outcome):
                try:
                    answer = await self._hooked(hook, "toolRequest", request, reservation, outcome)
                    if (reason := _rejection(answer)) is not None:
                        raise StateError("States.Permissions", reason)
                except StateError as error:
                    why = error.cause or error
                    cause = f"tool {tool!r}: the hook before it has blocked it: {why}"
                    kept = error.name if error.name == "States.BudgetExceeded" else OWN_NAMES[0]
                    raise RaisedError(kept, cause) from error

    async def after(
        self,
        tool: str,
        arguments: Json,
        result: Json,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> None:
        """Call the hooks with the answer of a tool.

        Raises:
            RaisedError: A hook fails or rejects the answer.
        """
        state = self.outer.state_name
        response = {"tool": tool, "arguments": arguments, "result": result, "state": state}
        for level in reversed(self.policies.levels):
            if "After" in level.hooks:
                try:
                    answer = await self._hooked(
                        level.hooks["After"], "toolResponse", response, reservation, outcome
                    )
                    if is_verdict(answer) and (reason := _rejection(answer)) is not None:
                        raise StateError("Agent.ToolError", reason)
                except StateError as error:
                    if error.name == "States.BudgetExceeded":
                        raise
                    cause = f"tool {tool!r}: the hook after it has failed: {error}"
                    raise RaisedError("Agent.ToolError", cause) from error

    async def _hooked(
        self,
        given: tuple[ToolHook, Json],
        name: str,
        shown: Json,
        reservation: Reservation | None,
        outcome: ToolOutcome,
    ) -> Json:
        """Call a hook within the call of *reservation*.

        A hook without parameters receives what it has to check.
        """
        hook, data = given
        at, caller = self.outer.at, self.caller
        data = {**data, name: shown} if type(data) is dict else {name: shown}
        agent = str(hook.agent(data, at))
        payload = {name: shown} if hook.parameters is None else hook.parameters(data, at)
        target = Target("agent", agent, self.outer.state_name, is_helper=True)
        options = CallOptions(None, None)
        if self.outer.tool_rules is not None:
            options.blocks["tools"] = self.outer.tool_rules
        options.blocks["tool_depth"] = self.outer.tool_depth + 1
        options.enclosing = reservation
        if outcome.place is not None:
            options.blocks["turn"] = outcome.place
        # Part of the effect that calls the agent, so its answer needs no record.
        return await caller.invoke(at, target, payload, options)


def _rejection(answer: Json) -> str | None:
    """Return why a hook rejects a call; an answer without a verdict rejects it as well."""
    if type(answer) is bool:  # whether the call is valid
        return None if answer else "it says so"
    try:
        return rejection(answer)
    except UnclearVerdict as unclear:
        return f"a hook answers with {unclear.wanted}, not with {unclear.found}"
