"""A document split into its machines and states for the checks.

The document may be invalid: values without the shape of a machine or a state are skipped; the
schemas report them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from asl.core.diagnostics import Suggestions
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.profile import Profile
from asl.core.values import Json
from asl.expr.query_protocol import DELIMITERS, ParsedQuery
from asl.expr.templates import SUFFIX
from asl.states import type_of
from asl.states.base import Node
from asl.states.iteration import DISTRIBUTING
from asl.states.machines import nested_machines

__all__ = [
    "CheckedWorkflow",
    "JsonataString",
    "MachineScope",
    "below",
    "entries",
    "handlers",
    "objects",
    "split_machines",
    "text",
]

LANGUAGES = ("JSONPath", "JSONata")


class MachineScope(NamedTuple):
    """One machine of a document: the workflow itself, a branch or a Map processor."""

    value: Mapping[str, Json]
    pointer: str
    nodes: tuple[Node, ...]
    """The states that are objects, in document order."""
    names: frozenset[str]
    """The names of all states, also of those that are no objects."""
    outer: "MachineScope | None" = None
    holder: Node | None = None
    """The state of the outer machine that this one is part of."""
    isolated: bool = False
    """Whether variables of the outer machines are out of reach: a distributed Map."""
    home: str = ""
    """The pointer of its document: empty, or that of an included machine."""
    template: bool = False
    """Whether that is a template (Specification 9.2)."""
    unfilled: bool = False
    """Whether parameters of that template have no values yet."""

    @property
    def is_included(self) -> bool:
        """Whether it is the machine of an Include."""
        return self.pointer == self.home != ""


class JsonataString(NamedTuple):
    """A string of a JSONata state; it is an expression if it has the delimiters.

    `source` is the expression without delimiters, None for another string. `members` are the
    members of `$states` at this place, `wanted` is the required JSON type of the result.
    """

    pointer: str
    text: str
    source: str | None
    members: frozenset[str]
    wanted: str | None = None

    @property
    def lead(self) -> int:
        """The number of characters before the source."""
        return self.text.index(self.source or "", len(DELIMITERS[0]))


class CheckedWorkflow(NamedTuple):
    """A document under check, with the names that the caller has bound."""

    value: Mapping[str, Json]
    profile: Profile
    scopes: tuple[MachineScope, ...]
    """All machines, outer ones before inner ones."""
    names: frozenset[str]
    """The names of the states of all machines."""
    words: frozenset[str]
    """The state types and the field names of states and machines, without the suffix `.$`."""
    suggestions: Suggestions
    agents: Collection[str] | None
    resources: Collection[str] | None
    express: bool
    workflows: Collection[str] | None
    name: str
    """The name of the document."""
    included_fields: Mapping[str, Mapping[str, Json]]
    """The fields of included documents apart from the machine, by the machine's pointer."""
    queries: dict[str, ParsedQuery | ExpressionFault]
    """The JSONata expressions read so far, by their text."""
    written: dict[str, Sequence[JsonataString]]
    """The possible expressions of each state visited so far, by its pointer."""

    @property
    def has_unfilled_parameters(self) -> bool:
        """Whether `{{name}}` in its strings is a parameter (Specification 9.2)."""
        return _unfilled(self.value)

    @property
    def module(self) -> bool:
        """Whether the document is a module of states (Specification 9.4)."""
        return type(self.value) is dict and self.value.get("Module") is True

    def nodes(self) -> Iterator[Node]:
        """Yield every state of every machine."""
        for scope in self.scopes:
            yield from scope.nodes


def split_machines(
    value: Json,
    profile: Profile,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    express: bool = False,
    workflows: Collection[str] | None = None,
    name: str = "",
    heads: Mapping[str, Mapping[str, Json]] = MappingProxyType({}),
) -> CheckedWorkflow:
    """Return a document as its machines and states."""
    machines: tuple[MachineScope, ...] = ()
    if type(value) is dict:
        machines = tuple(_scopes(value, "", profile, _language(value, "JSONPath", profile)))
    names = frozenset[str]().union(*(scope.names for scope in machines))
    return CheckedWorkflow(
        value,
        profile,
        machines,
        names,
        frozenset(_words(machines)),
        Suggestions(),
        agents,
        resources,
        express,
        workflows,
        name,
        heads,
        queries={},
        written={},
    )


def _words(machines: tuple[MachineScope, ...]) -> Iterator[str]:
    for machine in machines:
        yield from (field.removesuffix(SUFFIX) for field in machine.value)
        for node in machine.nodes:
            for field in node.value:
                yield field.removesuffix(SUFFIX)
            kind = node.value.get("Type")
            if type(kind) is str:
                yield kind


def _scopes(
    value: Mapping[str, Json],
    pointer: str,
    profile: Profile,
    language: str,
    outer: MachineScope | None = None,
    holder: Node | None = None,
    isolated: bool = False,
    document: MachineScope | None = None,
) -> Iterator[MachineScope]:
    """Yield a machine and its nested ones.

    Args:
        value: The machine.
        pointer: Its place.
        profile: The profile of the check.
        language: The query language of the machine.
        outer: The machine around it.
        holder: The state of the outer machine that it is part of.
        isolated: Whether the variables of outer machines are out of reach.
        document: A machine of the same document; None if this one begins a document.
    """
    states = value.get("States")
    template = "Parameters" in value if document is None else document.template
    unfilled = _unfilled(value) if document is None else document.unfilled
    names = frozenset(states) if type(states) is dict else frozenset()
    nodes = tuple(
        Node(
            state,
            f"{pointer}/States/{escape(name)}",
            name,
            names,
            profile,
            _language(state, language, profile),
            template,
            unfilled,
        )
        for name, state in (states.items() if type(states) is dict else ())
        if type(state) is dict
    )
    home = pointer if document is None else document.home
    scope = MachineScope(
        value, pointer, nodes, names, outer, holder, isolated, home, template, unfilled
    )
    yield scope
    for node in nodes:
        for steps, machine in nested_machines(node.value):
            included = steps == ("Template",)
            yield from _scopes(
                machine,
                node.at(*steps),
                profile,
                _language(machine, "JSONPath" if included else language, profile),
                scope,
                node,
                _distributed(node, machine),
                None if included else scope,
            )


def _unfilled(document: Mapping[str, Json]) -> bool:
    return type(document) is dict and bool(document.get("Parameters", {}) != {})


def _language(holder: Mapping[str, Json], otherwise: str, profile: Profile) -> str:
    """Return the language that a machine or state is judged by.

    AWS takes one that it does not know as JSONata (measured); elsewhere it changes nothing.
    """
    chosen = holder.get("QueryLanguage", otherwise)
    if type(chosen) is str and chosen in LANGUAGES:
        return chosen
    return "JSONata" if profile.aws else otherwise


def _distributed(node: Node, machine: Mapping[str, Json]) -> bool:
    if node.value.get("Type") == "Map" and not DISTRIBUTING.isdisjoint(node.value):
        return True
    config = machine.get("ProcessorConfig")
    return type(config) is dict and config.get("Mode") == "DISTRIBUTED"


def objects(holder: Mapping[str, Json], field: str) -> Sequence[tuple[int, Mapping[str, Json]]]:
    """Return `(index, object)` for the objects of an array; nothing where it is none."""
    value = holder.get(field)
    if type(value) is not list:
        return ()
    return [(index, entry) for index, entry in enumerate(value) if type(entry) is dict]


def handlers(state: Mapping[str, Json], field: str) -> Sequence[tuple[int, Mapping[str, Json]]]:
    """Return the retriers (`Retry`) or catchers (`Catch`) of a state; none if its type has none."""
    return objects(state, field) if type_of(state).effect else ()


def below(holder: Mapping[str, Json], *steps: str) -> Mapping[str, Json]:
    """Return the object at the end of steps, an empty one if there is none."""
    value: Json = holder
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value if type(value) is dict else {}


def entries(holder: Mapping[str, Json], field: str) -> list[str]:
    """Return the strings of an array of strings, empty where it is none."""
    value = holder.get(field)
    return [entry for entry in value if type(entry) is str] if type(value) is list else []


def text(holder: Mapping[str, Json], field: str) -> str | None:
    """Return the string in *field*, None where there is none."""
    value = holder.get(field)
    return value if type(value) is str else None
