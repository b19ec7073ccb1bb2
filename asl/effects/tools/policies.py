"""The policies that bind the tools of one agent call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from asl.core.errors import NotJson, StateError
from asl.core.schemas import faults
from asl.core.values import Json, copy_for_agent, copy_result, fits
from asl.effects.caller import Caller
from asl.effects.policy_levels import policy_levels_of, root_execution
from asl.effects.rate_limits import NETWORK_REQUESTS, CallTracking, RateDemand, network_limit
from asl.effects.tool_enforcement import enforcement_gap
from asl.effects.tool_registry import PolicyLevel
from asl.effects.tools.bounds import CallBounds
from asl.engine.agent import Agent, Call
from asl.engine.tools import ToolOffer
from asl.states.blocks.tool_policy import parse_size
from asl.states.errors import RaisedError

__all__ = ["CallPolicies", "sanitize"]

ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control and invisible characters, except line breaks and tabs."""


def sanitize(value: Json) -> Json:
    """Return a value without invisible characters in its texts."""
    if type(value) is str:
        return UNSEEN.sub("", ESCAPES.sub("", value))
    if type(value) is list:
        return [sanitize(each) for each in value]
    if type(value) is dict:
        return {sanitize(key): sanitize(each) for key, each in value.items()}
    return value


MAX_NESTED: Final = 16
"""Maximum depth of tools that use one another."""


class CallPolicies:
    """All policies that bind the tools of one agent call."""

    def __init__(self, caller: Caller, call: Call) -> None:
        self.caller = caller
        self.outer = call
        self.room = caller.runtime.current_services().tools

    @cached_property
    def levels(self) -> tuple[PolicyLevel, ...]:
        """The policies, outermost first."""
        own = policy_levels_of(self.caller.runtime, self.outer.at, self.outer.tool_rules)
        operator = self.caller.runtime.current_services().policy
        return own if operator is None else (*operator.levels, *own)

    def refusal(self, names: tuple[str, ...]) -> str | None:
        """Return why a tool of these names may not be used, None if it may."""
        refusals = (level.policy.refusal(names) for level in self.levels)
        return next((each for each in refusals if each is not None), None)

    def prepare_arguments(self, offer: ToolOffer, arguments: Json) -> Json:
        """Return the arguments with defaults.

        Raises:
            RaisedError: The arguments are invalid.
        """
        tool = offer.names[0]
        why = self.refusal(offer.names)
        if why is not None:
            raise RaisedError("States.Permissions", f"tool {tool!r} {why}")
        if self.outer.tool_depth >= MAX_NESTED:
            text = f"tool {tool!r}: tools use one another more than {MAX_NESTED} deep"
            raise RaisedError("Agent.ToolError", text)
        try:
            own = copy_for_agent(
                copy_result(arguments, self.caller.limit, tool), self.caller.limit, tool
            )
        except (NotJson, StateError) as error:
            text = f"tool {tool!r}: the arguments are wrong: {error}"
            raise RaisedError("Agent.ToolError", text) from None
        if type(own) is not dict:
            raise RaisedError("Agent.ToolError", f"tool {tool!r}: the arguments are an object")
        for level in self.levels:
            own = {**level.policy.arguments(offer.names), **own}
        self._judge(tool, "arguments", own, offer.input)
        for level in self.levels:
            for check in level.policy.checks(offer.names, "Input"):
                if "Schema" in check:
                    self._judge(tool, "arguments", own, check["Schema"])
        return own

    def categories(self, offer: ToolOffer) -> set[str]:
        """Return the categories of a tool in all enclosing documents."""
        return {
            name
            for level in self.levels
            for name, matches in level.policy.tests.items()
            if matches(offer.names)
        }

    def _judge(self, tool: str, what: str, value: Json, schema: Json) -> None:
        wrong = faults(schema, value)
        if wrong:
            verb = "are" if what == "arguments" else "is"
            raise RaisedError("Agent.ToolError", f"tool {tool!r}: the {what} {verb} wrong: {wrong}")

    async def bound_agent(self, offer: ToolOffer, arguments: Json) -> tuple[Agent, CallBounds]:
        """Return the agent of a tool and its bounds.

        Raises:
            RaisedError: The tool cannot be held to its bounds.
        """
        tool, agent = offer.names[0], offer.agent
        hosts = [level.policy.hosts for level in self.levels if level.policy.hosts is not None]
        files = [level.policy.files for level in self.levels if level.policy.files is not None]
        bounds = CallBounds(tool, hosts, files, agent.folder)
        if bounds:
            bounds.check(arguments)
        settings = self.sandbox(tool)
        if settings is not None:
            await self.caller.runtime.event_loop()
            self.caller.runtime.clock.real_begins()  # it checks its requirements
            try:
                agent = await agent.confine(settings, tool)
            finally:
                self.caller.runtime.clock.real_ends()
        why = enforcement_gap(tool, agent, [level.policy for level in self.levels])
        if why is not None:
            raise RaisedError("States.Permissions", why)
        return agent, bounds

    def sandbox(self, tool: str) -> Mapping[str, Json] | None:
        """Return the sandbox settings of a tool, None without a sandbox.

        Raises:
            RaisedError: The settings are not allowed.
        """
        needed = [each.policy.sandbox for each in self.levels if each.policy.sandbox is not None]
        if any(each != needed[-1] for each in needed):
            text = f"tool {tool!r}: it would need several sandboxes"
            raise RaisedError("States.Permissions", text)
        if not needed:
            return None
        operator = self.caller.runtime.current_services().policy
        if operator is not None and (refusal := operator.refusal(needed[-1])) is not None:
            raise RaisedError("States.Permissions", f"tool {tool!r}: {refusal}")
        return needed[-1]

    @cached_property
    def tracking(self) -> dict[str, CallTracking]:
        """Tracking of calls that the limits of the enclosing workflows require."""
        at = self.outer.at
        own = root_execution(at.execution)
        found = {own.workflow: self.room.tracking_of(own.program.document)}
        return found | {level.workflow: level.tracking for level in self.levels}

    def demands(self, counted: list[tuple[str, ...]]) -> Iterator[RateDemand]:
        """Yield the rate limits of a call."""
        for level in self.levels:
            for limit in level.policy.limits:
                if limit.matches(counted[0]):
                    yield RateDemand(level.workflow, limit, self.outer.tool_keys)
            most = level.policy.requests
            if most is not None and NETWORK_REQUESTS in counted:
                yield RateDemand(level.workflow, network_limit(most), self.outer.tool_keys)

    def clean_answer(self, offer: ToolOffer, result: Json) -> Json:
        """Return the answer as the agent may see it.

        Raises:
            RaisedError: The answer is invalid.
        """
        tool = offer.names[0]
        for level in self.levels:
            for check in level.policy.checks(offer.names, "Output"):
                if check.get("Sanitize") is True:
                    result = sanitize(result)
                if "MaxSize" in check:
                    most = _size(check["MaxSize"])
                    if not fits(result, most):
                        text = f"tool {tool!r}: the answer is larger than {most} bytes"
                        raise RaisedError("Agent.ToolError", text)
                if "Schema" in check:
                    self._judge(tool, "answer", result, check["Schema"])
        return result


def _size(value: Json) -> int:
    try:
        return parse_size(value)
    except ValueError as fault:
        raise StateError("States.Runtime", f"Validation: {fault}") from None
