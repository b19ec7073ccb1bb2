"""A document as a graph: machines, their states, and the transitions between them.

The document may be invalid: parts without the shape of a machine or a state are left out, and a
transition to an unknown state leads to a state of type `missing`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from asl.core.pointers import escape
from asl.core.values import Json
from asl.graphs.labels import (
    Words,
    catcher_label,
    details,
    distinguish,
    no_words,
    rule_words,
    title,
)
from asl.states import STATE_TYPES, UNKNOWN, type_of
from asl.states.base import Outline, StateType, Tone
from asl.states.machines import nested_machines

__all__ = ["END", "MISSING", "START", "GraphState", "MachineGraph", "Transition", "graph_of"]


class Terminal(Enum):
    """The start and end of a machine; not strings, since any text may name a state."""

    START = "start"
    END = "end"


START, END = Terminal.START, Terminal.END
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition between states of one machine, from START, or to END.

    `kind` is `start`, `next`, `choice`, `default`, `catch` or `end`; `label` is its condition,
    empty if it is always taken.
    """

    source: str | Terminal
    target: str | Terminal
    kind: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class GraphState:
    """A state with one or two lines of description, and its inner machines."""

    name: str
    type: str
    pointer: str
    details: tuple[str, ...] = ()
    machines: "tuple[MachineGraph, ...]" = ()
    comment: str = ""

    @property
    def outline(self) -> Outline:
        """The outline of its box."""
        return self._type.outline

    @property
    def tone(self) -> Tone:
        """The tone of its colour."""
        return Tone.BAD if self.type == MISSING else self._type.tone

    @property
    def ends(self) -> bool:
        """Whether it ends its machine by itself."""
        return self._type.terminal

    @property
    def _type(self) -> StateType:
        return STATE_TYPES.get(self.type, UNKNOWN)


@dataclass(frozen=True, slots=True)
class MachineGraph:
    """A machine: the workflow, a branch or an iteration."""

    title: str
    pointer: str
    states: tuple[GraphState, ...]
    transitions: tuple[Transition, ...]

    @property
    def size(self) -> int:
        """The number of its states and transitions, including inner machines."""
        within = sum(machine.size for state in self.states for machine in state.machines)
        return len(self.states) + len(self.transitions) + within

    def all_states(self) -> Iterator[GraphState]:
        """Yield all states, including those of inner machines."""
        for state in self.states:
            yield state
            for machine in state.machines:
                yield from machine.all_states()


def graph_of(document: Json, words: Words = no_words) -> MachineGraph:
    """Return the graph of a document; *words* describe its parts in another language."""
    return _machine(document if type(document) is dict else {}, "", "", words)


def _machine(value: Mapping[str, Json], pointer: str, title: str, words: Words) -> MachineGraph:
    written = value.get("States")
    members = written if type(written) is dict else {}
    found = {
        name: _state(name, state, f"{pointer}/States/{escape(name)}", words)
        for name, state in members.items()
        if type(state) is dict
    }
    transitions = list(_starts(value, found))
    for name in found:
        transitions += _transitions(name, members[name], found[name].pointer, words)
    for each in transitions:
        if isinstance(each.target, str) and each.target not in found:
            found[each.target] = GraphState(each.target, MISSING, pointer)
    return MachineGraph(title, pointer, tuple(found.values()), tuple(transitions))


def _state(name: str, value: Mapping[str, Json], pointer: str, words: Words) -> GraphState:
    machines = tuple(
        _machine(
            machine, pointer + "".join(f"/{step}" for step in steps), title(value, steps), words
        )
        for steps, machine in nested_machines(value)
    )
    kind, comment = value.get("Type"), value.get("Comment")
    return GraphState(
        name,
        kind if type(kind) is str else MISSING,
        pointer,
        tuple(details(value, words(value, pointer))),
        machines,
        comment if type(comment) is str else "",
    )


def _starts(machine: Mapping[str, Json], states: Mapping[str, GraphState]) -> Iterator[Transition]:
    start, exports = machine.get("StartAt"), machine.get("Exports")
    for name in [start] if start is not None else exports if type(exports) is list else []:
        if type(name) is str:
            yield Transition(START, name, "start")


def _transitions(
    name: str, state: Mapping[str, Json], pointer: str, words: Words
) -> Iterator[Transition]:
    rules = [each for each in _objects(state, "Choices") if type(each[1].get("Next")) is str]
    labels = distinguish(
        [words(rule, f"{pointer}/Choices/{index}") or rule_words(rule) for index, rule in rules]
    )
    for (_, rule), label in zip(rules, labels, strict=True):
        yield Transition(name, rule["Next"], "choice", label)
    chosen = "Choices" in state
    if type(state.get("Default")) is str:
        yield Transition(name, state["Default"], "default", "otherwise" if chosen else "no answer")
    if type(state.get("Next")) is str:
        yield Transition(name, state["Next"], "next", "otherwise" if chosen else "")
    if state.get("End") is True or type_of(state).terminal:
        yield Transition(name, END, "end")
    for _, catcher in _objects(state, "Catch"):
        if type(catcher.get("Next")) is str:
            yield Transition(name, catcher["Next"], "catch", catcher_label(catcher))


def _objects(holder: Mapping[str, Json], field: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    value = holder.get(field)
    for index, entry in enumerate(value if type(value) is list else ()):
        if type(entry) is dict:
            yield index, entry
