"""Who speaks and who votes in a debate: V-DEB-04, V-DEB-07."""

from collections.abc import Collection, Iterator

from asl.checks.languages import is_jsonata
from asl.checks.workflow import Workflow, below, entries
from asl.core.diagnostics import Finding
from asl.states.base import Node

__all__ = ["check"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield the names in `Order` and `VotingAgents` that have no place there, or are missing."""
    for node in workflow.nodes():
        agents = entries(node.value, "Agents")
        if node.value.get("Type") == "Debate" and agents:
            yield from _strangers(workflow, node, agents, "V-DEB-07", "Consensus", "VotingAgents")
            yield from _strangers(workflow, node, agents, "V-DEB-04", "Communication", "Order")
            yield from _order(node, agents)


def _strangers(
    workflow: Workflow, node: Node, agents: Collection[str], rule: str, *steps: str
) -> Iterator[Finding]:
    known = frozenset(agents)
    *way, field = steps
    listed = below(node.value, *way).get(field)
    for index, name in enumerate(listed if type(listed) is list else ()):
        if type(name) is str and name not in known and not node.open(name):
            message = f"{name!r} is none of the agents of this debate"
            hint = workflow.suggestions.near(name, known)
            yield Finding(rule, message, node.at(*steps, index), hint)


def _order(node: Node, agents: list[str]) -> Iterator[Finding]:
    """The order has everybody who speaks, and not the arbiter of a required consensus."""
    consensus = below(node.value, "Consensus")
    required, arbiter = consensus.get("Required"), consensus.get("Arbiter", agents[-1])
    computed = bool(consensus.keys() & {"Required.$", "Arbiter.$"})
    computed = computed or is_jsonata(required) or is_jsonata(arbiter)
    silent = arbiter if required is True and not computed else None
    order = entries(below(node.value, "Communication"), "Order")
    if silent is not None and silent in order:
        yield Finding(
            "V-DEB-04",
            f"{silent!r} is the arbiter and does not speak",
            node.at("Communication", "Order", order.index(silent)),
            "remove it from the order",
        )
    listed = frozenset(order)
    missing = [name for name in agents if name not in listed and name != silent]
    # Whether a computed arbiter speaks is known only when the state runs.
    if order and len(missing) > computed and not any(map(node.open, order)):
        yield Finding(
            "V-DEB-04",
            f"the order lacks {', '.join(map(repr, missing))}",
            node.at("Communication", "Order"),
            "list everybody who speaks, once",
        )
