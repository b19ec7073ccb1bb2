"""Context of the construction of a machine: names, transitions, findings and origins."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.flujo.blueprint import BlueprintMachine
from asl.dialects.flujo.machine.data import call
from asl.dialects.flujo.options import FlujoOptions
from asl.expr.jsonata.javascript import literal

__all__ = ["Arrival", "BuildContext", "EnclosingState", "Failing", "FlujoMachine", "Then"]


class FlujoMachine(NamedTuple):
    """A machine, the origins of its parts, and the findings."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    machines: dict[str, Json]
    """The state machines by their names in the document: where each is written, which of its
    states have another name there, and which questions its states ask."""
    findings: list[Finding]


class Arrival(NamedTuple):
    """A transition of a state machine.

    Attributes:
        target: Expression of the name of the state that it enters.
        event: The event that it follows.
        options: What the data has behind it, see `enter_state`.
    """

    target: str
    event: str | None
    options: Mapping[str, Json]

    def data(self, data: str) -> str:
        """Return the data behind the transition."""
        if not self.options and self.event is None:
            return call("enter", data, self.target)
        options = literal(dict(self.options)) if self.options else None
        return call("enter", data, self.target, literal(self.event), options)


class Then(NamedTuple):
    """The transition of a successful step.

    Attributes:
        next: The next state; None ends the machine.
        closes: The steps that end with it, the innermost first: its output is theirs.
        arrival: The transition to a state of a state machine that it is.
        leaves: Whether it leaves the state of a state machine.
        result: Whether the output of the step is the result of the pipeline.
        keeps: Whether the data has the output of the step as the current value.
        bare: Whether the output of the step is all that is left of the data.
    """

    next: str | None
    closes: tuple[str, ...] = ()
    arrival: Arrival | None = None
    leaves: bool = False
    result: bool = False
    keeps: bool = False
    bare: bool = False

    def closing(self, step: str) -> "Then":
        """Return the transition of a step within another one that ends with it."""
        return self._replace(closes=(step, *self.closes))


class Failing(NamedTuple):
    """The transition of a failed step.

    Attributes:
        next: The next state.
        step: The failed step, None for the step itself.
        arrival: The transition to a state of a state machine that it is.
        leaves: Whether it leaves the state of a state machine.
    """

    next: str
    step: str | None = None
    arrival: Arrival | None = None
    leaves: bool = False

    def within(self, step: str) -> "Failing":
        """Return the transition of a step within another one, which fails with it."""
        return self._replace(step=self.step or step)


class EnclosingState(NamedTuple):
    """The state of a state machine whose steps are built."""

    machine: BlueprintMachine
    name: str
    targets: Mapping[str, str]
    """The states of the document that its states begin with, and its end states."""
    arrive: Callable[[str, str], Arrival]
    """Returns the transition to a state or an end state at an event."""


MAX_NAME: Final = 80
ROOM: Final = 16
"""Characters of a name that are left for what is put behind it."""


class BuildContext:
    """Names, origins and findings that all machines of a document share."""

    def __init__(self, options: FlujoOptions, steps: frozenset[str]) -> None:
        self.options = options
        self.steps = steps
        """The names of all steps."""
        self.origins: list[tuple[Mapping[str, Json], str]] = []
        self.findings: list[Finding] = []
        self.machines: dict[str, Json] = {}
        self.taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self.first: str | None = None
        """The state that gets the unchanged input of the execution."""

    def name(self, text: str, within: str = "") -> str:
        """Return a name that no other state of the whole document has, with room for a part."""
        longest = MAX_NAME - ROOM
        base = text[:longest] or "_"
        if base in self.taken and within:
            base = f"{within}/{text}"[:longest]
        return self._fresh(base, longest)

    def part(self, name: str, part: str) -> str:
        """Return the name of a state that is a part of one."""
        return self._fresh(f"{name}:{part}"[:MAX_NAME], MAX_NAME)

    def _fresh(self, base: str, longest: int) -> str:
        stem = base[: longest - 6]
        found, number = base, self._numbers.get(stem, 1)
        while found in self.taken:
            number += 1
            found = f"{stem}~{number}"
        if found != base:
            self._numbers[stem] = number
        self.taken.add(found)
        return found
