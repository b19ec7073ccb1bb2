"""State types: one module for each type, which ends in one descriptor (`StateType`).

A descriptor holds the check of a state beyond its JSON Schema, its compilation, and all that the
rest of the package needs to know of its type. What all states share (paths, templates, Assign,
Retry, Catch, history, limits) belongs to the compiler and the interpreter.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.profile import Missing, Profile
from asl.core.values import Json, compact
from asl.expr.choice_rules import Predicate
from asl.expr.frame import Evaluate
from asl.expr.result_path import InsertResult
from asl.program import Finish, Machine, MachineOf, Step, Work

__all__ = [
    "PARAMETER",
    "Compiler",
    "Node",
    "Outline",
    "StateType",
    "Tone",
    "Transitions",
    "describe_field",
    "expression_text",
    "has_output_label",
    "has_parameter",
]

PARAMETER = r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?=\||\}\})"
"""The placeholder of a parameter of a template (9.2); after a backslash it is text."""
_PARAMETER = lazy_pattern(rf"(?<!\\){PARAMETER}")


def has_parameter(value: Json) -> bool:
    """Return whether a value is a text with a placeholder of a parameter."""
    return type(value) is str and "{{" in value and _PARAMETER.search(value) is not None


class Node(NamedTuple):
    """A state of a document, as checks see it."""

    value: Mapping[str, Json]
    pointer: str
    name: str
    scope: frozenset[str]
    """The names of the states of the same machine."""
    profile: Profile
    query_language: str = "JSONPath"
    template: bool = False
    """Whether it is in a template (Specification 9.2)."""
    unfilled: bool = False
    """Whether the parameters of that template have no values yet."""

    def open(self, value: Json) -> bool:
        """Return whether a value depends on parameters without values."""
        return self.unfilled and has_parameter(value)

    def is_computed(self, value: Json) -> bool:
        """Return whether a value is computed when the state runs, or depends on parameters."""
        jsonata = self.query_language == "JSONata" and type(value) is str and "{%" in value
        return jsonata or self.open(value)

    def at(self, *steps: str | int) -> str:
        """Return the JSON Pointer of a part of this state."""
        pointer = self.pointer
        for step in steps:
            pointer += f"/{escape(step) if type(step) is str else step}"
        return pointer


def has_output_label(state: Mapping[str, Json], language: Json) -> bool:
    """Return whether the `Output` of a state is a label of the end of a template (9.2)."""
    return type(state.get("Output")) is str and language != "JSONata"


def mentions(value: Json, *keys: str) -> bool:
    """Return whether an object at any depth has one of these keys.

    An included document is compiled when it runs; this shows beforehand what it may have.
    """
    if type(value) is dict:
        return not value.keys().isdisjoint(keys) or any(
            mentions(each, *keys) for each in value.values()
        )
    return type(value) is list and any(mentions(each, *keys) for each in value)


class Compiler(Protocol):
    """Compiles the fields of one state, in either query language (Specification 3.1, 3.6).

    All texts are checked before. A closure takes the raw or the effective input, which are the
    same in JSONata.
    """

    state: Mapping[str, Json]
    name: str
    profile: Profile
    jsonata: bool
    """Whether the state is written in JSONata."""

    def input(self) -> Evaluate:
        """Compile `InputPath`: raw input to effective input."""
        ...

    def payload(self) -> Evaluate:
        """Compile `InputPath` and `Parameters`, or `Arguments`: raw input to parameters."""
        ...

    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile the template in *field*; None if the field is absent."""
        ...

    def computed_field(self, field: str, kind: str) -> Evaluate | None:
        """Compile a field with an expression in place of a value of the JSON type *kind*.

        Returns:
            The closure, which raises EvaluationFailed for a value of another type; None for a
            field without an expression.
        """
        ...

    def reference(self, field: str) -> Evaluate:
        """Compile the reference path in *field*."""
        ...

    def expression(self, field: str, text: str) -> Evaluate:
        """Compile a path of any kind or an intrinsic call in *field*."""
        ...

    def matcher(self, names: list[str]) -> Callable[[StateError], bool]:
        """Compile the error names of an `ErrorEquals`."""
        ...

    def condition(self) -> Predicate:
        """Compile the condition of a choice rule, for the compiler of that rule."""
        ...

    def text(self, field: str) -> Evaluate | None:
        """Compile a text with inserted values, or an object with such texts (3.8, 3.9).

        None if neither *field* nor its dynamic form exists.
        """
        ...

    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile a constant or dynamic field (`field.$`) or an expression; None if absent."""
        ...

    def computed_block(self, field: str) -> Evaluate | None:
        """Compile a block that is evaluated as a whole; None for a constant block.

        The closure raises StateError for a computed block that breaks the schema.
        """
        ...

    def finish(
        self, absent: InsertResult | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        """Compile the placement of a result in the output and the variables.

        Args:
            absent: The place of the result for a state without `ResultPath`.
            inserts: Functions of blocks that change the output before `OutputPath`:
                `(output, raw result, frame) -> output`.

        Returns:
            The closure; None for no change.
        """
        ...

    def placement(self, inserts: tuple[Finish, ...]) -> Finish | None:
        """Compile the placement of a result, without `OutputPath`; None for no change.

        In JSONata there is no such step, so the result is placed in the output.
        """
        ...

    def leave(self) -> Finish | None:
        """Compile the output and assignments of a state without result, or of a choice rule.

        None for no change.
        """
        ...

    def constant_result(self, result: Json) -> Evaluate | None:
        """Compile a state that only places a literal by its `ResultPath`; None for any other."""
        ...

    def compiler_at(self, *steps: str | int) -> "Compiler":
        """Return a compiler of the object at *steps* below the state, empty if absent."""
        ...

    def compiler_after(self) -> "Compiler":
        """Return a compiler of fields that are evaluated after the success of the state.

        Its closures take `$states` in JSONata: an object with `input` and `result`.
        """
        ...

    def machine(self, *steps: str | int) -> Machine:
        """Compile the sub-machine at *steps* below the state."""
        ...

    def task(self, name: str, work: Work, *steps: str | int) -> Machine:
        """Return a machine of one Task for a fork.

        Args:
            name: Name of the Task.
            work: Its work, which takes the input of the machine.
            steps: The place of the machine below the state.
        """
        ...

    def included_machine(self) -> MachineOf:
        """Compile the included document: a function from the remaining arguments to a machine."""
        ...

    def step(self, name: str) -> Step:
        """Return the state *name* of the same machine."""
        ...


class Transitions(Enum):
    """The fields that determine the next state."""

    NEXT = "Next or End"
    RULES = "Choices"
    RULES_OR_NEXT = "Choices, or Next or End"
    NOTHING = "the machine ends there"


class Outline(Enum):
    """The outline of a state in a drawing."""

    BOX = "box"
    DIAMOND = "diamond"
    OVAL = "oval"
    HOUSE = "house"
    HEXAGON = "hexagon"


class Tone(Enum):
    """The meaning of the colour of a state in a drawing."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    HUMAN = "human"
    CHOICE = "choice"


def names_agent(state: Mapping[str, Json]) -> bool:
    """Return whether a state calls an `Agent`."""
    return "Agent" in state or "Agent.$" in state


def no_details(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield no line beyond the name and type of a state."""
    return iter(())


@dataclass(frozen=True, slots=True, eq=False)
class StateType:
    """The descriptor of a state type.

    A package adds one by the entry point `asl.states`, whose value is a StateType with a schema.
    """

    name: str
    compile: Callable[[Compiler, Step], None]
    """Sets the behaviour of the step: `transform`, `choose`, or `work` with `finish`."""
    check: Callable[[Node], Iterator[Finding]]
    """Yields the findings on one state of this type beyond its schema."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema (2020-12) of such a state; None for a file in `schemas/states`."""
    aws: bool = False
    """Whether it is a type of Amazon States Language, and so of the profile `aws`."""
    effect: bool = False
    """Whether it has effects: it has a result, and takes `Retry` and `Catch`."""
    waits: bool = False
    """Whether it waits for time or approvals, which paces a loop."""
    concurrent: bool = False
    """Whether its machines run concurrently."""
    iterates: bool = False
    """Whether its machine runs once for each item of an array."""
    machines: tuple[str, ...] = ()
    """The fields with its machines: one, or an array of them."""
    forks: bool = False
    """Whether its work has parts; the history has events for its start and end then."""
    budgeted: bool = False
    """Whether it may have a budget of its own."""
    transitions: Transitions = Transitions.NEXT
    calls: Callable[[Mapping[str, Json]], bool] = names_agent
    """Whether such a state calls an agent."""
    insertions: tuple[tuple[str, ...], ...] = ()
    """The places of texts in which braces insert values; elsewhere braces are plain text."""
    outline: Outline = Outline.BOX
    tone: Tone = Tone.PLAIN
    describe: Callable[[Mapping[str, Json]], Iterator[str]] = no_details
    """Yields a line or two for drawings on the work of a state, beyond its name and type."""

    @property
    def terminal(self) -> bool:
        """Whether it ends its machine by itself."""
        return self.transitions is Transitions.NOTHING

    @property
    def takes_next(self) -> bool:
        """Whether it has `Next` or `End`."""
        return self.transitions in (Transitions.NEXT, Transitions.RULES_OR_NEXT)

    @property
    def decides(self) -> bool:
        """Whether rules may determine the next state."""
        return self.transitions in (Transitions.RULES, Transitions.RULES_OR_NEXT)


def expression_text(value: Json) -> str:
    """Return an expression without its delimiters, or any other value as compact JSON."""
    if type(value) is not str:
        return compact(value)
    return value.removeprefix("{%").removesuffix("%}").strip()


def describe_field(field: str) -> Callable[[Mapping[str, Json]], Iterator[str]]:
    """Return a function that describes a state by the text in one of its fields."""

    def describe(state: Mapping[str, Json]) -> Iterator[str]:
        if type(state.get(field)) is str:
            yield state[field]

    return describe
