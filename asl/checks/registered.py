"""Who does the work, as far as the caller knows: V-TASK-03, V-DEB-08, V-WF-02."""

from collections.abc import Callable, Collection, Iterator

from asl.checks.languages import is_jsonata
from asl.checks.workflow import Workflow, below, objects, text
from asl.core.diagnostics import Finding
from asl.expr.glob import compile_glob
from asl.states.base import Node
from asl.states.calls import Target, is_function
from asl.states.debating import ARBITER

__all__ = ["check"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield the agents, resources and workflows that the caller of the check cannot serve."""
    if workflow.agents is not None:
        yield from _agents(workflow, frozenset(workflow.agents))
    if workflow.resources is not None:
        yield from _resources(workflow, list(workflow.resources))
    if workflow.workflows is not None:
        yield from _workflows(workflow, frozenset(workflow.workflows))


def _agents(workflow: Workflow, known: frozenset[str]) -> Iterator[Finding]:
    near = workflow.suggestions.near
    for node in workflow.nodes():
        name = text(node.value, "Agent")
        if name is not None and name not in known:
            message = f"no agent {name!r} is registered"
            yield Finding("V-TASK-03", message, node.at("Agent"), near(name, known))
        yield from _judges(node, known, near)
        if node.value.get("Type") == "Debate":
            for name, place in _debating(node):
                if name not in known:
                    message = f"no agent {name!r} is registered"
                    yield Finding("V-DEB-08", message, place, near(name, known))


def _debating(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the agents that a debate may call, and where they are named."""
    listed = node.value.get("Agents")
    for index, name in enumerate(listed if type(listed) is list else ()):
        if type(name) is str:
            yield name, node.at("Agents", index)
    for field in ("Arbiter", "TieBreaker"):
        other = text(below(node.value, "Consensus"), field)
        if (
            other is not None
            and not is_jsonata(other)
            and (field, other) != ("TieBreaker", ARBITER)
        ):
            yield other, node.at("Consensus", field)


def _judges(
    node: Node, known: frozenset[str], near: Callable[[str, Collection[str]], str | None]
) -> Iterator[Finding]:
    """Yield checkers and validators of guardrails, and summarisers, that are not registered."""
    summary = below(node.value, "Context", "Summarize")
    name = text(summary, "Using")
    if name is not None and name not in known:
        place = node.at("Context", "Summarize", "Using")
        yield Finding("V-TASK-03", f"no agent {name!r} is registered", place, near(name, known))
    for side in ("Before", "After"):
        name = text(below(node.value, "Tools", "Hooks", side), "Agent")
        if name is not None and name not in known:
            place = node.at("Tools", "Hooks", side, "Agent")
            yield Finding("V-TASK-03", f"no agent {name!r} is registered", place, near(name, known))
    for side in ("Input", "Output"):
        guard = below(node.value, "Guardrails", side)
        named = [(guard, node.at("Guardrails", side), "Validator", "V-TASK-03")]
        for index, rule in objects(guard, "Rules"):
            place = node.at("Guardrails", side, "Rules", index)
            named.append((rule, place, "Check", "V-GRD-05"))
            named += [(rule, place, field, "V-TASK-03") for field in ("Validator", "Agent")]
        for holder, place, field, code in named:
            name = text(holder, field)
            if name is not None and name not in known and not node.computed(name):
                what = "checker" if code == "V-GRD-05" else "agent"
                message = f"no {what} {name!r} is registered"
                yield Finding(code, message, f"{place}/{field}", near(name, known))


def _is_served(target: Target, known: list[str], patterns: list[Callable[[str], bool]]) -> bool:
    """Whether a handler is bound to the resource in any of its forms."""
    names = (target.name, target.base)
    if target.invokes and any(map(is_function, known)):
        return True
    return any(name in known or any(matches(name) for matches in patterns) for name in names)


def _resources(workflow: Workflow, known: list[str]) -> Iterator[Finding]:
    patterns = [compile_glob(pattern) for pattern in known if "*" in pattern]
    for node in workflow.nodes():
        name = text(node.value, "Resource")
        if name is None or _is_served(Target("resource", name, node.name), known, patterns):
            continue
        message = f"no handler for the resource {name!r} is registered"
        hint = workflow.suggestions.near(name, known) or "bind a handler to it, or mock the state"
        yield Finding("V-TASK-03", message, node.at("Resource"), hint)


def _workflows(workflow: Workflow, known: frozenset[str]) -> Iterator[Finding]:
    for node in workflow.nodes():
        id = text(node.value, "WorkflowId")
        if id is None or id in known or node.open(id) or id.startswith("{%"):
            continue
        message = f"no workflow {id!r} is registered"
        hint = workflow.suggestions.near(id, known) or f"give it one: --workflow {id}=FILE"
        yield Finding("V-WF-02", message, node.at("WorkflowId"), hint)
