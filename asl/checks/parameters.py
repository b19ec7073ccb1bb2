"""What a task hands over to an action of a service: names that it takes, and those that it needs.

AWS starts no task with another name, or without one that is required: the execution fails there.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from asl.checks.models import Action, action_of, model_of
from asl.checks.workflow import Workflow, text
from asl.core.diagnostics import Finding
from asl.states.base import Node

__all__ = ["check"]

_BESIDE: Final[Mapping[tuple[str, str], Collection[str]]] = {
    ("states", "startExecution"): ("AssociateWithParent",),
    ("bedrockruntime", "invokeModel"): ("Input", "Output"),
}
"""What integrations take beside the parameters of their action."""
_INSTEAD: Final[Mapping[tuple[str, str], Collection[str]]] = {
    ("bedrockruntime", "invokeModel"): ("Body",),
}
"""What one of those may stand for."""


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield parameters that an action does not take, and actions without one that they need."""
    for node in workflow.nodes():
        resource = text(node.value, "Resource")
        action = None if resource is None else action_of(resource)
        if resource is not None and action is not None and node.value.get("Type") == "Task":
            yield from _given(workflow, node, action, resource.rpartition(":::")[2])


def _given(workflow: Workflow, node: Node, action: Action, label: str) -> Iterator[Finding]:
    field = "Arguments" if node.query_language == "JSONata" else "Parameters"
    given = node.value.get(field)
    request = model_of(action.service)["requests"].get(action.name)
    if request is None or type(given) is not dict:
        return
    own = () if action.sdk else _BESIDE.get((action.service, action.name), ())
    known = {each.lower(): each for each in (*request["fields"], *own)}
    names = {key.removesuffix(".$"): key for key in given}
    for name, key in names.items():
        # Within a name the letters are as large as the integration wants them, not as the model.
        if name.lower() in known and name[:1].isupper():
            continue
        same = known.get(name.lower())
        hint = f"write {same!r}" if same else workflow.suggestions.near(name, [*known.values()])
        message = f"{label} has no parameter {name!r}"
        yield Finding("V-TASK-12", message, node.at(field, key), hint, at_key=True)
    spared = _INSTEAD.get((action.service, action.name), ()) if own else ()
    there = {name.lower() for name in names}
    for name in request.get("required", ()):
        if name.lower() not in there and name not in spared:
            yield Finding("V-TASK-12", f"{label} needs the parameter {name!r}", node.at(field))
