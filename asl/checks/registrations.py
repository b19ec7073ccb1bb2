"""Who does the work, as far as the caller knows: V-TASK-03, V-DEB-08, V-WF-02."""

from collections.abc import Callable, Iterator
from typing import Final

from asl.checks.workflow import CheckedWorkflow, text
from asl.core.diagnostics import Finding
from asl.core.lazy import lazy_pattern
from asl.expr.text_matching import compile_glob
from asl.states.base import Node
from asl.states.calls import Target, is_function
from asl.states.debate_rounds import ARBITER
from asl.states.fields import FieldIndex

__all__ = ["check", "serves"]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield the agents, resources and workflows that the caller of the check cannot serve."""
    if workflow.agents is not None:
        yield from _agents(workflow, frozenset(workflow.agents))
    if workflow.resources is not None:
        yield from _resources(workflow, list(workflow.resources))
    if workflow.workflows is not None:
        yield from _workflows(workflow, frozenset(workflow.workflows))


_NAMING: Final = FieldIndex(lambda field: field.agent is not None or field.checker is not None)
"""The fields that name an agent, or a checker of guardrails."""


def _agents(workflow: CheckedWorkflow, known: frozenset[str]) -> Iterator[Finding]:
    for node in workflow.nodes():
        for field, steps, name in _NAMING.of(node.value):
            if type(name) is not str or name in known or node.is_computed(name):
                continue
            if (field.name, name) == ("TieBreaker", ARBITER):
                continue
            place, near = node.at(*steps), workflow.suggestions.near(name, known)
            if field.checker is not None:
                yield Finding(field.checker, f"no checker {name!r} is registered", place, near)
            elif field.agent is not None:
                hint = near or (
                    f"bind it: --agent {name}=module:function, or --agents FILE; "
                    "`asl init --from DOC` drafts that file"
                )
                yield Finding(field.agent, f"no agent {name!r} is registered", place, hint)


def _is_served(target: Target, known: list[str], patterns: list[Callable[[str], bool]]) -> bool:
    """Whether a handler is bound to the resource in any of its forms."""
    names = (target.name, target.base)
    if target.invokes and any(map(is_function, known)):
        return True
    return any(name in known or any(matches(name) for matches in patterns) for name in names)


def serves(workflow: CheckedWorkflow, node: Node, resource: str) -> bool:
    """Return whether the caller of the check has bound a handler to the resource of a task."""
    known = list(workflow.resources or ())
    patterns = [compile_glob(pattern) for pattern in known if "*" in pattern]
    return _is_served(Target("resource", resource, node.name), known, patterns)


def _resources(workflow: CheckedWorkflow, known: list[str]) -> Iterator[Finding]:
    patterns = [compile_glob(pattern) for pattern in known if "*" in pattern]
    for node in workflow.nodes():
        name = text(node.value, "Resource")
        if name is None or _is_served(Target("resource", name, node.name), known, patterns):
            continue
        message = f"no handler for the resource {name!r} is registered"
        hint = workflow.suggestions.near(name, known) or (
            "bind a handler to it in a file for --agents (`asl init --from DOC` drafts it), "
            "or mock the state"
        )
        if _STARTING.fullmatch(name):
            hint = f"give it the workflow: --workflow {_started_by(node)}=FILE"
        yield Finding("V-TASK-03", message, node.at("Resource"), hint)


_STARTING = lazy_pattern(
    r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):start(?:Sync)?Execution(?:\..+)?"
)
"""The resources that start an execution of another workflow."""
_MACHINE = lazy_pattern(r"arn:[^:]*:states:[^:]*:[^:]*:stateMachine:([^:]+).*")


def _started_by(node: Node) -> str:
    """Return the name of the workflow that a state starts, NAME where it is computed."""
    given = node.value.get("Arguments", node.value.get("Parameters"))
    arn = given.get("StateMachineArn") if type(given) is dict else None
    found = _MACHINE.fullmatch(arn) if type(arn) is str else None
    return found[1] if found else "NAME"


def _workflows(workflow: CheckedWorkflow, known: frozenset[str]) -> Iterator[Finding]:
    for node in workflow.nodes():
        id = text(node.value, "WorkflowId")
        if id is None or id in known or node.open(id) or id.startswith("{%"):
            continue
        message = f"no workflow {id!r} is registered"
        hint = workflow.suggestions.near(id, known) or f"give it one: --workflow {id}=FILE"
        yield Finding("V-WF-02", message, node.at("WorkflowId"), hint)
