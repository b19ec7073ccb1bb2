"""What a state type is: one module that ends in one descriptor (`StateType`).

A descriptor says how the state is checked beyond its JSON Schema, how it is compiled, and all that
the rest of the package has to know of its type. What all states share (paths, templates, Assign,
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
from asl.expr.result_path import Place
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
"""What stands for a parameter of a template, which it names (9.2); after a backslash it is text."""
_PARAMETER = lazy_pattern(rf"(?<!\\){PARAMETER}")


def has_parameter(value: Json) -> bool:
    """Whether a text has a parameter in it, whose value is still to come."""
    return type(value) is str and "{{" in value and _PARAMETER.search(value) is not None


class Node(NamedTuple):
    """One state of a document as a check sees it."""

    value: Mapping[str, Json]
    pointer: str
    name: str
    scope: frozenset[str]
    """The names of the states of the same machine."""
    profile: Profile
    query_language: str = "JSONPath"
    template: bool = False
    """Whether it is written in a template (Specification 9.2)."""
    unfilled: bool = False
    """Whether parameters of that template have no values yet."""

    def open(self, value: Json) -> bool:
        """Whether a value is known only once parameters have been filled in."""
        return self.unfilled and has_parameter(value)

    def computed(self, value: Json) -> bool:
        """Whether a value is known only once the state runs, or parameters have been filled in."""
        jsonata = self.query_language == "JSONata" and type(value) is str and "{%" in value
        return jsonata or self.open(value)

    def at(self, *steps: str | int) -> str:
        """Return the JSON Pointer of something below this state."""
        pointer = self.pointer
        for step in steps:
            pointer += f"/{escape(step) if type(step) is str else step}"
        return pointer


def has_output_label(state: Mapping[str, Json], language: Json) -> bool:
    """Whether the `Output` of a state is a label, by which it may end a template (9.2)."""
    return type(state.get("Output")) is str and language != "JSONata"


def mentions(value: Json, *keys: str) -> bool:
    """Whether an object at any depth has one of these keys.

    What an Include runs is compiled late, so nothing else can say beforehand what there will be.
    """
    if type(value) is dict:
        return not value.keys().isdisjoint(keys) or any(
            mentions(each, *keys) for each in value.values()
        )
    return type(value) is list and any(mentions(each, *keys) for each in value)


class Compiler(Protocol):
    """What compiling one state may ask for, in either query language (Specification 3.1, 3.6).

    All texts have been checked before. A closure takes the raw or the effective input, which are
    the same in JSONata.
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
        """Compile the template in *field*, None where the field is absent."""
        ...

    def computed(self, field: str, kind: str) -> Evaluate | None:
        """Compile a field that holds an expression instead of its JSON type *kind*, else None.

        The closure raises EvaluationFailed for a value of another type.
        """
        ...

    def reference(self, field: str) -> Evaluate:
        """Compile the reference path in *field*."""
        ...

    def expression(self, field: str, text: str) -> Evaluate:
        """Compile a path of any kind or an intrinsic call that stands in *field*."""
        ...

    def matcher(self, names: list[str]) -> Callable[[StateError], bool]:
        """Compile error names as `ErrorEquals` has them."""
        ...

    def condition(self) -> Predicate:
        """Compile what decides whether a choice rule holds; ask `within` the rule."""
        ...

    def text(self, field: str) -> Evaluate | None:
        """Compile a text into which values are inserted, or an object with such texts.

        None where neither *field* nor its dynamic form is there (Specification 3.8, 3.9).
        """
        ...

    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        """Compile a field that is written, dynamic (`field.$`) or an expression; None if absent."""
        ...

    def settled(self, field: str) -> Evaluate | None:
        """Compile a block that is read as a whole; None where nothing of it is computed.

        The closure raises StateError for a block that would be wrong if it were written so.
        """
        ...

    def finish(
        self, absent: Place | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        """Compile the way of a result to the output and the variables; None for no change.

        *absent* places the result where the state says nothing of it. *inserts* change the output
        in between: `(output, raw result, frame) -> output`.
        """
        ...

    def placed(self, inserts: tuple[Finish, ...]) -> Finish | None:
        """Compile the way of a result to what `OutputPath` sees; None for no change.

        In JSONata there is no such step, so it is the way to the output.
        """
        ...

    def leave(self) -> Finish | None:
        """Compile the way out of a state that has no result, or of a choice rule.

        None for no change.
        """
        ...

    def constant_result(self, result: Json) -> Evaluate | None:
        """Compile a state that only places a literal by its `ResultPath`, None for any other."""
        ...

    def within(self, *steps: str | int) -> "Compiler":
        """Return a compiler of the object at *steps* below the state, empty where absent."""
        ...

    def after(self) -> "Compiler":
        """Return a compiler of what is evaluated once the state has succeeded.

        Its closures take `$states` in JSONata: an object with `input` and `result`.
        """
        ...

    def machine(self, *steps: str | int) -> Machine:
        """Compile the sub-machine at *steps* below the state."""
        ...

    def task(self, name: str, work: Work, *steps: str | int) -> Machine:
        """Make a machine of one Task that does *work*, at *steps* below the state: to be forked.

        The work takes the machine's input.
        """
        ...

    def included(self) -> MachineOf:
        """Compile what an Include holds: a function of the arguments that are left."""
        ...

    def step(self, name: str) -> Step:
        """Return the state *name* of the same machine."""
        ...


class Transitions(Enum):
    """What says where a machine goes after a state."""

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
    """What the colour of a state says in a drawing."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    HUMAN = "human"
    CHOICE = "choice"


def names_agent(state: Mapping[str, Json]) -> bool:
    """Whether a state has an `Agent` that it calls."""
    return "Agent" in state or "Agent.$" in state


def no_details(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield no line: the name and the type of the state say all."""
    return iter(())


@dataclass(frozen=True, slots=True, eq=False)
class StateType:
    """The descriptor of a state type.

    A package adds one by the entry point `asl.states`, whose value is a StateType with a schema.
    """

    name: str
    compile: Callable[[Compiler, Step], None]
    """Fill the step's behaviour: `transform`, `choose`, or `work` with `finish`."""
    check: Callable[[Node], Iterator[Finding]]
    """Find what is wrong with one state of this type and no schema can say."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema (2020-12) of such a state; None where it is a file in `schemas/states`."""
    aws: bool = False
    """Whether it is a type of Amazon States Language, so that the profile `aws` has it."""
    effect: bool = False
    """Whether it reaches the world: it has a result, and takes `Retry` and `Catch`."""
    waits: bool = False
    """Whether it waits for time or people, which paces a loop."""
    concurrent: bool = False
    """Whether the machines within it run side by side."""
    iterates: bool = False
    """Whether the machine within it runs once for each item of an array."""
    machines: tuple[str, ...] = ()
    """The fields that hold the machines within: one, or an array of them."""
    forks: bool = False
    """Whether its work has parts, so that history tells of its beginning and its end."""
    budgeted: bool = False
    """Whether it may have a budget of its own."""
    transitions: Transitions = Transitions.NEXT
    calls: Callable[[Mapping[str, Json]], bool] = names_agent
    """Whether such a state calls an agent."""
    insertions: tuple[tuple[str, ...], ...] = ()
    """The ways to the texts into which braces insert values; elsewhere braces are plain text."""
    outline: Outline = Outline.BOX
    tone: Tone = Tone.PLAIN
    describe: Callable[[Mapping[str, Json]], Iterator[str]] = no_details
    """Yield a line or two for drawings on what such a state does, beyond its name and its type."""

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
        """Whether rules may say where it goes."""
        return self.transitions in (Transitions.RULES, Transitions.RULES_OR_NEXT)


def expression_text(value: Json) -> str:
    """Return an expression without its delimiters, or any other value as compact JSON."""
    if type(value) is not str:
        return compact(value)
    return value.removeprefix("{%").removesuffix("%}").strip()


def describe_field(field: str) -> Callable[[Mapping[str, Json]], Iterator[str]]:
    """Return what describes a state by the text in one of its fields."""

    def describe(state: Mapping[str, Json]) -> Iterator[str]:
        if type(state.get(field)) is str:
            yield state[field]

    return describe
