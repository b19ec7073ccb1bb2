"""Who speaks and who votes in a debate: V-DEB-04, V-DEB-05, V-DEB-07."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from asl.checks.workflow import CheckedWorkflow, below, entries
from asl.core.diagnostics import Finding, Severity
from asl.core.values import compact
from asl.states.base import Node

__all__ = ["check"]


class _Roles(NamedTuple):
    """The agents of a debate, and which of them only decides."""

    agents: list[str]
    arbiter: str | None
    """The arbiter of a required consensus, who does not speak."""
    computed: bool
    """Whether that is known only when the state runs."""

    @property
    def speakers(self) -> list[str]:
        return [name for name in self.agents if name != self.arbiter]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield the agents that have no place where they are named, or are missing there."""
    for node in workflow.nodes():
        agents = entries(node.value, "Agents")
        if node.value.get("Type") == "Debate" and agents:
            roles = _roles(node, agents)
            yield from _strangers(workflow, node, agents, "V-DEB-07", "Consensus", "VotingAgents")
            yield from _strangers(workflow, node, agents, "V-DEB-04", "Communication", "Order")
            yield from _order(node, roles)
            yield from _arbiter(node, roles)
            yield from _voters(node, roles)


def _roles(node: Node, agents: list[str]) -> _Roles:
    consensus = below(node.value, "Consensus")
    required, arbiter = consensus.get("Required"), consensus.get("Arbiter", agents[-1])
    computed = bool(consensus.keys() & {"Required.$", "Arbiter.$"})
    computed = computed or node.is_computed(required) or node.is_computed(arbiter)
    decides = required is True and not computed and type(arbiter) is str
    return _Roles(agents, arbiter if decides else None, computed)


def _strangers(
    workflow: CheckedWorkflow, node: Node, agents: Collection[str], rule: str, *steps: str
) -> Iterator[Finding]:
    known = frozenset(agents)
    *way, field = steps
    listed = below(node.value, *way).get(field)
    for index, name in enumerate(listed if type(listed) is list else ()):
        if type(name) is str and name not in known and not node.open(name):
            message = f"{name!r} is none of the agents of this debate"
            hint = workflow.suggestions.near(name, known)
            yield Finding(rule, message, node.at(*steps, index), hint)


def _order(node: Node, roles: _Roles) -> Iterator[Finding]:
    """The order has everybody who speaks, and not the arbiter of a required consensus."""
    order = entries(below(node.value, "Communication"), "Order")
    if roles.arbiter is not None and roles.arbiter in order:
        yield Finding(
            "V-DEB-04",
            f"{roles.arbiter!r} is the arbiter and does not speak",
            node.at("Communication", "Order", order.index(roles.arbiter)),
            "remove it from the order",
        )
    listed = frozenset(order)
    missing = [name for name in roles.speakers if name not in listed]
    # Whether a computed arbiter speaks is known only when the state runs.
    if order and len(missing) > roles.computed and not any(map(node.open, order)):
        yield Finding(
            "V-DEB-04",
            f"the order lacks {', '.join(map(repr, missing))}",
            node.at("Communication", "Order"),
            "list each speaking agent once",
        )


def _arbiter(node: Node, roles: _Roles) -> Iterator[Finding]:
    """The arbiter is named, and leaves two agents who debate."""
    implied = "Arbiter" not in below(node.value, "Consensus")
    alone = len(roles.speakers) < 2 <= len(roles.agents)
    if roles.arbiter is None or not (implied or alone):
        return
    why = ", being the last agent," if implied else ""
    message = f"{roles.arbiter!r} is the arbiter{why} and does not debate"
    hint = f'write "Arbiter": {compact(roles.arbiter)}, or name another agent'
    if alone:
        message += ": fewer than two agents are left to do so"
        hint = "name an 'Arbiter' who is none of 'Agents', or add an agent who debates"
    place = node.at("Consensus", "Required" if implied else "Arbiter")
    yield Finding("V-DEB-05", message, place, hint)


def _voters(node: Node, roles: _Roles) -> Iterator[Finding]:
    """The vote of an arbiter who does not speak is never given."""
    voters = entries(below(node.value, "Consensus"), "VotingAgents")
    if roles.arbiter is not None and roles.arbiter in roles.agents and roles.arbiter in voters:
        yield Finding(
            "V-DEB-07",
            f"{roles.arbiter!r} is the arbiter and does not speak, so it never votes",
            node.at("Consensus", "VotingAgents", voters.index(roles.arbiter)),
            "name those who speak",
            severity=Severity.WARNING,
        )
