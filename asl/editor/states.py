"""The states of a document in its text: where each is defined, and where it is named."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from asl.checks.transitions import targets
from asl.checks.workflow import CheckedWorkflow, MachineScope
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.registry import find
from asl.editor.edited import EditedDocument
from asl.editor.field_schemas import describe_value
from asl.editor.syntax import Step, SyntaxMember, SyntaxPart

__all__ = ["NamedState", "named_states", "state_at", "workflow_states"]

_NAMING: Final = ("id", "name", "step")
"""The fields with the name of a state in the other languages."""


class NamedState(NamedTuple):
    """A state, or a name of one that does not exist.

    Attributes:
        name: Its name.
        pointer: Its JSON Pointer in the definition; empty in other languages.
        key: Where it gets its name; None for one that does not exist.
        part: Its value.
        references: Where it is named as the next or the first state.
        value: Its fields.
    """

    name: str
    pointer: str
    key: SyntaxPart | None
    part: SyntaxPart | None
    references: list[SyntaxPart]
    value: Json


def named_states(document: EditedDocument) -> list[NamedState]:
    """Return the states of the current text, in its language."""
    version = document.current
    if document.kind == "asl":
        return [
            state
            for definition, workflow in version.workflows
            for state in workflow_states(definition.root, workflow)
        ]
    return [*_dialect_states(document.kind, version.tree.root, version.value)]


def state_at(document: EditedDocument, offset: int) -> NamedState | None:
    """Return the state that is defined or named at an offset."""
    _, _, part = document.current.steps_at(offset)
    if part.kind != "string":
        return None
    for state in named_states(document):
        if part is state.key or any(part is each for each in state.references):
            return state
    return None


# --------------------------------------------------------------------------------------------
# Workflows


def workflow_states(root: SyntaxPart, workflow: CheckedWorkflow) -> Iterator[NamedState]:
    """Yield the states of a workflow and of its branches.

    Args:
        root: The workflow in the text.
        workflow: Its machines.
    """
    for scope in workflow.scopes:
        machine = root.at_pointer(scope.pointer)
        if machine is not None:
            yield from _machine_states(machine, scope)


def _machine_states(machine: SyntaxPart, scope: MachineScope) -> Iterator[NamedState]:
    members = _members(machine, "States")
    found: dict[str, NamedState] = {}
    for name, (key, part) in members.items():
        pointer = f"{scope.pointer}/States/{escape(str(name))}"
        found[str(name)] = NamedState(str(name), pointer, key, part, [], None)
    for name, part in _references(machine, members, scope):
        unknown = NamedState(name, "", None, None, [], None)
        found.setdefault(name, unknown).references.append(part)
    values = {node.name: node.value for node in scope.nodes}
    for name, state in found.items():
        yield state._replace(value=values.get(name))


def _members(part: SyntaxPart, field: str) -> dict[Step, SyntaxMember]:
    """Return the members of a field, by name; the last one of several."""
    member = part.member(field)
    return {} if member is None else {**dict((member.value.embedded or member.value).steps())}


def _references(
    machine: SyntaxPart, members: dict[Step, SyntaxMember], scope: MachineScope
) -> Iterator[tuple[str, SyntaxPart]]:
    """Yield the strings of a machine that name a state."""
    start = machine.member("StartAt")
    if start is not None and type(scope.value.get("StartAt")) is str:
        yield str(start.value.value), start.value
    for node in scope.nodes:
        state = members.get(node.name)
        for pointer, name in targets(node) if state is not None else ():
            part = state.value.at_pointer(pointer[len(node.pointer) :]) if state else None
            if part is not None and part.kind == "string":
                yield name, part


# --------------------------------------------------------------------------------------------
# Other languages


def _dialect_states(kind: str, root: SyntaxPart, value: Json) -> Iterator[NamedState]:
    dialect = find(kind)
    if dialect is None or type(value) is not dict:
        return
    values = {name: state for name, state in dialect.named_states(value) if name}
    found: dict[str, NamedState] = {}
    for name, key, part in _naming_parts(root, {*values}):
        found.setdefault(name, NamedState(name, "", key, part, [], values[name]))
    for steps, part in _strings(root, ()):
        state = found.get(str(part.value))
        notes = describe_value(kind, value, steps) if state is not None else None
        if state is not None and notes is not None and "x-state" in notes.notes:
            state.references.append(part)
    yield from found.values()


def _naming_parts(
    part: SyntaxPart, names: set[str]
) -> Iterator[tuple[str, SyntaxPart, SyntaxPart]]:
    """Yield `(name, key, state)` of the states with these names, each once, in their order."""
    for step, (key, value) in part.steps():
        if step in _NAMING and value.value in names:
            names.discard(str(value.value))
            yield str(value.value), value, part
        for name, member in value.steps() if step == "states" and value.kind == "object" else ():
            if name in names and member.key is not None:
                names.discard(str(name))
                yield str(name), member.key, member.value
        if key is not None or value.members:
            yield from _naming_parts(value, names)


def _strings(
    part: SyntaxPart, steps: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], SyntaxPart]]:
    """Yield the values that are no objects or arrays, with the steps to them."""
    for step, (_, value) in part.steps():
        if value.kind == "string":
            yield (*steps, step), value
        yield from _strings(value, (*steps, step))
