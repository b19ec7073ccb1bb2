"""Who does the work, as far as the caller knows: V-TASK-03, V-DEB-08, V-WF-02."""

import re
from collections.abc import Callable, Iterator

from asl.checks.workflow import Workflow, below, objects, text
from asl.core.diagnostics import Finding
from asl.expr.glob import compile_glob
from asl.states.base import Node
from asl.states.calls import Target, is_function
from asl.states.debating import ARBITER

__all__ = ["check", "serves"]


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield the agents, resources and workflows that the caller of the check cannot serve."""
    if workflow.agents is not None:
        yield from _agents(workflow, frozenset(workflow.agents))
    if workflow.resources is not None:
        yield from _resources(workflow, list(workflow.resources))
    if workflow.workflows is not None:
        yield from _workflows(workflow, frozenset(workflow.workflows))


_AGENTS = (
    ((), "Agent"),
    (("Context", "Summarize"), "Using"),
    (("Tools", "Hooks", "Before"), "Agent"),
    (("Tools", "Hooks", "After"), "Agent"),
    (("Guardrails", "Input"), "Validator"),
    (("Guardrails", "Output"), "Validator"),
)
"""`(way to an object below a state, its field that names an agent)`."""
_OF_RULES = (("Check", "V-GRD-05"), ("Validator", "V-TASK-03"), ("Agent", "V-TASK-03"))
"""`(field of a guardrail's rule, rule that is broken where nobody has its name)`."""


def _agents(workflow: Workflow, known: frozenset[str]) -> Iterator[Finding]:
    for node in workflow.nodes():
        for name, place, code in _named(node):
            if name in known or node.computed(name):
                continue
            near = workflow.suggestions.near(name, known)
            if code == "V-GRD-05":
                yield Finding(code, f"no checker {name!r} is registered", place, near)
            else:
                hint = near or f"bind it: --agent {name}=module:function, or in a file for --agents"
                yield Finding(code, f"no agent {name!r} is registered", place, hint)


def _named(node: Node) -> Iterator[tuple[str, str, str]]:
    """Yield the agents that a state names: name, pointer, and the rule for one that is missing."""
    for steps, field in _AGENTS:
        name = text(below(node.value, *steps), field)
        if name is not None:
            yield name, node.at(*steps, field), "V-TASK-03"
    for side in ("Input", "Output"):
        for index, rule in objects(below(node.value, "Guardrails", side), "Rules"):
            for field, code in _OF_RULES:
                name = text(rule, field)
                if name is not None:
                    yield name, node.at("Guardrails", side, "Rules", index, field), code
    if node.value.get("Type") == "Debate":
        for name, place in _debating(node):
            yield name, place, "V-DEB-08"


def _debating(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the agents that a debate may call, and where they are named."""
    listed = node.value.get("Agents")
    for index, name in enumerate(listed if type(listed) is list else ()):
        if type(name) is str:
            yield name, node.at("Agents", index)
    for field in ("Arbiter", "TieBreaker"):
        other = text(below(node.value, "Consensus"), field)
        if other is not None and (field, other) != ("TieBreaker", ARBITER):
            yield other, node.at("Consensus", field)


def _is_served(target: Target, known: list[str], patterns: list[Callable[[str], bool]]) -> bool:
    """Whether a handler is bound to the resource in any of its forms."""
    names = (target.name, target.base)
    if target.invokes and any(map(is_function, known)):
        return True
    return any(name in known or any(matches(name) for matches in patterns) for name in names)


def serves(workflow: Workflow, node: Node, resource: str) -> bool:
    """Return whether the caller of the check has bound a handler to the resource of a task."""
    known = list(workflow.resources or ())
    patterns = [compile_glob(pattern) for pattern in known if "*" in pattern]
    return _is_served(Target("resource", resource, node.name), known, patterns)


def _resources(workflow: Workflow, known: list[str]) -> Iterator[Finding]:
    patterns = [compile_glob(pattern) for pattern in known if "*" in pattern]
    for node in workflow.nodes():
        name = text(node.value, "Resource")
        if name is None or _is_served(Target("resource", name, node.name), known, patterns):
            continue
        message = f"no handler for the resource {name!r} is registered"
        hint = workflow.suggestions.near(name, known) or "bind a handler to it, or mock the state"
        if _STARTING.fullmatch(name):
            hint = f"give it the workflow: --workflow {_started_by(node)}=FILE"
        yield Finding("V-TASK-03", message, node.at("Resource"), hint)


_STARTING = re.compile(
    r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):start(?:Sync)?Execution(?:\..+)?"
)
"""The resources that start an execution of another workflow."""
_MACHINE = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:stateMachine:([^:]+).*")


def _started_by(node: Node) -> str:
    """Return the name of the workflow that a state starts, NAME where it is computed."""
    given = node.value.get("Arguments", node.value.get("Parameters"))
    arn = given.get("StateMachineArn") if type(given) is dict else None
    found = _MACHINE.fullmatch(arn) if type(arn) is str else None
    return found[1] if found else "NAME"


def _workflows(workflow: Workflow, known: frozenset[str]) -> Iterator[Finding]:
    for node in workflow.nodes():
        id = text(node.value, "WorkflowId")
        if id is None or id in known or node.open(id) or id.startswith("{%"):
            continue
        message = f"no workflow {id!r} is registered"
        hint = workflow.suggestions.near(id, known) or f"give it one: --workflow {id}=FILE"
        yield Finding("V-WF-02", message, node.at("WorkflowId"), hint)
