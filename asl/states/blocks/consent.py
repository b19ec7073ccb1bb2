"""RequireApproval: tool calls of an agent that need approval (8.9)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.states.approval_fields import (
    parse_approver_policy,
    parse_channels,
    parse_options,
    parse_waiting_plan,
)
from asl.states.effects import RequestContent, StateFrame
from asl.states.settings import BlockSettings

__all__ = ["REQUIRE_APPROVAL", "ConsentRule", "consent_rules"]

REQUIRE_APPROVAL: Final = "RequireApproval"
WANTED: Final = "a list of tools, or an object with them in 'Tools'"
TERMS: Final = ("Options", "Timeout", "OnTimeout", "Escalation", "Policy", "Notifications")
"""The fields of a rule except `Tools`: those of an Approval state that apply here."""

_Matcher: TypeAlias = Callable[[Iterable[str]], bool]


class ConsentRule(NamedTuple):
    """The tool calls that need approval, and the terms of the request."""

    matches: _Matcher
    terms: Mapping[str, Json]

    @property
    def identity(self) -> str:
        """The terms as text; equal for rules with the same request."""
        return compact({name: self.terms[name] for name in sorted(self.terms)})

    def question(self, frame: StateFrame, agent: str, tool: str, arguments: Json) -> RequestContent:
        """Return the approval request for a call.

        Args:
            frame: The machine of the state.
            agent: The name of the agent.
            tool: The name of the tool.
            arguments: The arguments of the call, which approvers see.

        Raises:
            StateError: The terms are wrong.
        """
        prompt = f"The agent {agent!r} wants to use the tool {tool!r}"
        body: dict[str, Json] = {
            "state": frame.step.name,
            "path": [*frame.place, frame.step.name],
            "prompt": prompt,
            "promptText": f"{prompt}: {compact(arguments)}",
            "agent": agent,
            "tool": tool,
            "arguments": arguments,
        }
        more, plan = self._terms(frame.requestor)
        return RequestContent("tool", {**body, **more}, plan)

    def check(self) -> None:
        """Check the terms.

        Raises:
            ValueError: The terms are wrong.
        """
        try:
            self._terms(None)
        except StateError as fault:
            raise ValueError(f"{REQUIRE_APPROVAL}.{fault.cause}") from None

    def _terms(self, requestor: str | None) -> tuple[dict[str, Json], dict[str, Json]]:
        fields = BlockSettings(self.terms, jsonata=False)
        plan = parse_waiting_plan(
            fields, "AutoReject", fields.members("Escalation"), self._message()
        )
        body: dict[str, Json] = {"options": parse_options(self.terms.get("Options"))}
        if "written" in plan:
            body["timeout"] = plan.pop("written")
        if "Policy" in fields:
            body["policy"] = parse_approver_policy(fields.block_of("Policy"), None, requestor)
        if "Notifications" in fields:
            body["notifications"], plan["reminders"] = parse_channels(fields)
        return body, plan

    def _message(self) -> Json:
        escalation = self.terms.get("Escalation")
        return escalation.get("Message") if type(escalation) is dict else None


def consent_rules(
    written: Json, matcher: Callable[[list[str]], _Matcher]
) -> tuple[ConsentRule, ...]:
    """Return the rules of a `RequireApproval`.

    Args:
        written: A list of patterns and objects, or one object with `Tools`; None for no rule.
        matcher: Returns the test for a list of patterns.

    Raises:
        ValueError: The value is wrong.
    """
    rules: list[ConsentRule] = []
    bare: list[str] = []
    for each in _listed(written):
        if type(each) is str:
            bare.append(each)
            continue
        tools = each.get("Tools") if type(each) is dict else None
        if type(tools) is not list or not all(type(name) is str for name in tools):
            raise ValueError(f"{REQUIRE_APPROVAL} is {WANTED}, not {compact(each)[:200]}")
        terms = {name: each[name] for name in TERMS if each.get(name) is not None}
        rules.append(ConsentRule(matcher(tools), terms))
    if bare:
        rules.insert(0, ConsentRule(matcher(bare), {}))
    for rule in rules:
        rule.check()
    return tuple(rules)


def _listed(written: Json) -> list[Json]:
    if written is None:
        return []
    if type(written) not in (list, dict):
        raise ValueError(f"{REQUIRE_APPROVAL} is {WANTED}, not {compact(written)[:200]}")
    return written if type(written) is list else [written]
