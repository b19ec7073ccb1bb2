"""A document as the checks see it: its machines and their states, whatever else is in it.

Nothing here assumes that the document is sound. What has not the shape of a machine or a state is
left out of the walk; the schemas report it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asl.core.diagnostics import did_you_mean, escape
from asl.core.errors import ExpressionFault
from asl.core.profile import Profile
from asl.core.values import Json
from asl.states.base import Node
from asl.states.distributed import FIELDS as DISTRIBUTING

if TYPE_CHECKING:
    from asl.expr.jsonata import Query

__all__ = ["Scope", "Suggestions", "Workflow", "below", "entries", "objects", "taken_apart", "text"]

LANGUAGES = ("JSONPath", "JSONata")


@dataclass(frozen=True, slots=True)
class Scope:
    """One machine of a document: the workflow itself, a branch or a Map processor."""

    value: Mapping[str, Json]
    pointer: str
    nodes: tuple[Node, ...]
    """The states that are objects, in document order."""
    names: frozenset[str]
    """The names of all states, also of those that are no objects."""
    outer: "Scope | None" = None
    holder: str | None = None
    """The name of the state of the outer machine that this one is part of."""
    isolated: bool = False
    """Whether variables of the outer machines are out of reach: a distributed Map."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A whole document and what the caller of a check knows about its surroundings."""

    value: Mapping[str, Json]
    profile: Profile
    scopes: tuple[Scope, ...]
    """All machines, outer ones before inner ones."""
    names: frozenset[str]
    """The names of the states of all machines."""
    suggestions: "Suggestions"
    agents: Collection[str] | None = None
    resources: Collection[str] | None = None
    express: bool = False
    queries: "dict[str, Query | ExpressionFault]" = field(default_factory=dict)
    """The JSONata expressions read so far, by their text."""

    @property
    def template(self) -> bool:
        """Whether `{{name}}` in its texts stands for a parameter (Specification 9.2)."""
        return "Parameters" in self.value

    def open(self, value: Json) -> bool:
        """Whether a value is known only once parameters have been filled in."""
        return self.template and type(value) is str and "{{" in value

    @property
    def module(self) -> bool:
        """Whether the document is only a supply of states (Specification 9.4)."""
        return self.value.get("Module") is True

    def nodes(self) -> Iterator[Node]:
        """Yield every state of every machine."""
        for scope in self.scopes:
            yield from scope.nodes


@dataclass(slots=True)
class Suggestions:
    """What a misspelt name may have meant, as long as looking for it takes no time to speak of.

    Comparing names is slow, and a document may hold any number of wrong ones.
    """

    left: int = 2_000_000
    """How many pairs of letters may still be compared."""

    def near(self, word: str, candidates: Collection[str]) -> str | None:
        """Return `did you mean ...?` for the candidate that is nearest, if one is near."""
        cost = len(word) * sum(map(len, candidates))
        if cost > self.left:
            return None
        self.left -= cost
        return did_you_mean(word, candidates)


def taken_apart(
    value: Json,
    profile: Profile,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    express: bool = False,
) -> Workflow:
    """Return a document as its machines and states."""
    machines: tuple[Scope, ...] = ()
    if type(value) is dict:
        language = _language(value, "JSONPath")
        machines = tuple(_scopes(value, "", profile, None, None, language, False))
    names = frozenset[str]().union(*(scope.names for scope in machines))
    return Workflow(value, profile, machines, names, Suggestions(), agents, resources, express)


def _scopes(
    value: Mapping[str, Json],
    pointer: str,
    profile: Profile,
    outer: Scope | None,
    holder: str | None,
    language: str,
    isolated: bool,
) -> Iterator[Scope]:
    states = value.get("States")
    names = frozenset(states) if type(states) is dict else frozenset()
    nodes = tuple(
        Node(
            state,
            f"{pointer}/States/{escape(name)}",
            name,
            names,
            profile,
            _language(state, language),
        )
        for name, state in (states.items() if type(states) is dict else ())
        if type(state) is dict
    )
    scope = Scope(value, pointer, nodes, names, outer, holder, isolated)
    yield scope
    for node in nodes:
        for place, machine in _machines(node):
            inner = _language(machine, language)
            isolated = _distributed(node, machine)
            yield from _scopes(machine, place, profile, scope, node.name, inner, isolated)


def _language(holder: Mapping[str, Json], otherwise: str) -> str:
    chosen = holder.get("QueryLanguage")
    return chosen if type(chosen) is str and chosen in LANGUAGES else otherwise


def _machines(node: Node) -> Iterator[tuple[str, Mapping[str, Json]]]:
    for name in ("ItemProcessor", "Iterator"):
        machine = node.value.get(name)
        if type(machine) is dict:
            yield node.at(name), machine
    for index, branch in objects(node.value, "Branches"):
        yield node.at("Branches", index), branch


def _distributed(node: Node, machine: Mapping[str, Json]) -> bool:
    if node.value.get("Type") == "Map" and not DISTRIBUTING.isdisjoint(node.value):
        return True
    config = machine.get("ProcessorConfig")
    return type(config) is dict and config.get("Mode") == "DISTRIBUTED"


def objects(holder: Mapping[str, Json], field: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield `(index, object)` for the objects of an array; nothing where it is none."""
    value = holder.get(field)
    if type(value) is list:
        for index, entry in enumerate(value):
            if type(entry) is dict:
                yield index, entry


def below(holder: Mapping[str, Json], *steps: str) -> Mapping[str, Json]:
    """Return the object at the end of a way, an empty one where there is none."""
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
