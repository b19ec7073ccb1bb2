"""The data that a state gets, as far as the document says it.

Literal results, payload templates and outputs of the states before are followed; what a task
answers is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from asl.checks.flow import assignments
from asl.checks.transitions import next_states
from asl.checks.workflow import MachineScope
from asl.core.pointers import resolve_pointer
from asl.core.values import Json
from asl.expr.query_protocol import DELIMITERS
from asl.expr.templates import SUFFIX
from asl.states import type_of
from asl.states.base import Node

__all__ = ["DataShape", "input_shape", "member_shapes", "variable_shapes"]

_DEPTH: Final = 30
"""States that are followed back."""


@dataclass(frozen=True, slots=True)
class DataShape:
    """The known members of an object; None for a member of an unknown shape."""

    members: Mapping[str, "DataShape | None"] = field(default_factory=dict)

    def describe(self, depth: int = 3) -> str:
        """Return the names of the members, as text.

        Args:
            depth: Levels of members to name.
        """
        if depth == 0:
            return "{...}"
        shown = (
            name if inner is None else f"{name}: {inner.describe(depth - 1)}"
            for name, inner in self.members.items()
        )
        return f"{{{', '.join(shown)}}}"

    def __or__(self, other: "DataShape") -> "DataShape":
        return DataShape({**other.members, **self.members})


def member_shapes(shape: DataShape | None, steps: Sequence[str]) -> Mapping[str, DataShape | None]:
    """Return the members of the value that steps lead to, none for an unknown one."""
    for step in steps:
        if shape is None:
            break
        shape = shape.members.get(step)
    return {} if shape is None else shape.members


def input_shape(scope: MachineScope, node: Node) -> DataShape | None:
    """Return what is known of the input of a state."""
    return _Shapes(scope).input(node.name, _DEPTH)


def variable_shapes(scope: MachineScope) -> dict[str, DataShape | None]:
    """Return the variables that states of a machine may read, with the shapes of literal ones."""
    found: dict[str, DataShape | None] = {}
    around: MachineScope | None = scope
    while around is not None:
        for name, pointer in assignments(around):
            if name.isidentifier() and found.get(name) is None:
                written = resolve_pointer(around.value, pointer[len(around.pointer) :])
                found[name] = _template_shape(written, None) if type(written) is dict else None
        around = None if around.isolated else around.outer
    return found


class _Shapes:
    """The shapes of the data of one machine."""

    def __init__(self, scope: MachineScope) -> None:
        self.scope = scope
        self.before: dict[str, list[Node]] = {}
        for node in scope.nodes:
            for name in next_states(node):
                self.before.setdefault(name, []).append(node)
        self.known: dict[str, DataShape | None] = {}

    def input(self, name: str, depth: int) -> DataShape | None:
        if name in self.known or depth == 0:
            return self.known.get(name)
        self.known[name] = None  # a loop adds nothing
        found: DataShape | None = None
        for node in self.before.get(name, ()):
            shape = self._output(node, depth)
            found = shape if found is None else found if shape is None else found | shape
        if name == self.scope.value.get("StartAt"):
            found = self._entry() if found is None else found
        self.known[name] = found
        return found

    def _entry(self) -> DataShape | None:
        """Return the input of the machine, which the state around it may give."""
        holder = self.scope.holder
        if holder is None or self.scope.outer is None:
            return None
        selector = holder.value.get("ItemSelector")
        if type(selector) is dict:
            return _template_shape(selector, None)
        return input_shape(self.scope.outer, holder) if "Branches" in holder.value else None

    def _output(self, node: Node, depth: int) -> DataShape | None:
        state = node.value
        given = self.input(node.name, depth - 1)
        if node.query_language == "JSONata":
            if "Output" in state:
                return _literal_shape(state["Output"])
            return None if type_of(state).effect else given
        if not type_of(state).effect:
            if "Result" in state:
                result = _literal_shape(state["Result"])
            elif type(state.get("Parameters")) is dict:
                result = _template_shape(state["Parameters"], given)
            else:
                result = given
        elif type(state.get("ResultSelector")) is dict:
            result = _template_shape(state["ResultSelector"], None)
        else:
            result = None
        return _placed(given, result, state.get("ResultPath", "$"))


def _placed(given: DataShape | None, result: DataShape | None, path: Json) -> DataShape | None:
    """Return the shape of an input with a result at a reference path."""
    if path == "$":
        return result
    if type(path) is not str or not path.startswith("$."):
        return given
    for step in reversed(path[2:].split(".")):
        result = DataShape({step: result})
    if given is None or result is None:
        return result
    return _merged(given, result)


def _merged(one: DataShape, other: DataShape) -> DataShape:
    members = dict(one.members)
    for name, shape in other.members.items():
        before = members.get(name)
        members[name] = _merged(before, shape) if before is not None and shape else shape
    return DataShape(members)


def _literal_shape(value: Json) -> DataShape | None:
    if type(value) is str and value.startswith(DELIMITERS[0]):
        return None
    if type(value) is not dict:
        return None
    return DataShape({name: _literal_shape(each) for name, each in value.items()})


def _template_shape(template: Mapping[str, Json], given: DataShape | None) -> DataShape:
    return DataShape(dict(_template_members(template, given)))


def _template_members(
    template: Mapping[str, Json], given: DataShape | None
) -> Iterator[tuple[str, DataShape | None]]:
    for key, value in template.items():
        if not key.endswith(SUFFIX):
            yield key, _template_shape(value, given) if type(value) is dict else None
        elif value == "$":
            yield key.removesuffix(SUFFIX), given
        else:
            steps = value[2:].split(".") if type(value) is str and value.startswith("$.") else []
            *around, last = steps or [""]
            yield key.removesuffix(SUFFIX), member_shapes(given, around).get(last)
