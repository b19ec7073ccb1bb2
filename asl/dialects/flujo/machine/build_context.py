"""Context of the construction of a machine: names, transitions, findings and origins."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.flujo.blueprint import BlueprintMachine
from asl.dialects.flujo.options import FlujoOptions

__all__ = ["INPUT", "RESULT", "BuildContext", "EnclosingState", "Failing", "FlujoMachine", "Then"]

INPUT: Final = "$states.input"
RESULT: Final = "$states.result"


class FlujoMachine(NamedTuple):
    """A machine, the origins of its parts, and the findings."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    machines: dict[str, Json]
    """The state machines by their names in the document: where each is written, and which of its
    states have another name there."""
    findings: list[Finding]


class Then(NamedTuple):
    """The transition of a successful step: None ends its machine.

    `closes` are the steps that end with it, the innermost first: its output is theirs.
    """

    next: str | None
    closes: tuple[str, ...] = ()


class Failing(NamedTuple):
    """The transition of a failed step; *step* is the failed step if not the step itself."""

    next: str
    step: str | None = None


class EnclosingState(NamedTuple):
    """The state of a state machine whose steps are built."""

    machine: BlueprintMachine
    name: str
    targets: Mapping[str, str]
    """The states of the document that its states begin with, and its end states."""


MAX_NAME: Final = 80
ROOM: Final = 16
"""Characters of a name that are left for what is put behind it."""


class BuildContext:
    """Names, origins and findings that all machines of a document share."""

    def __init__(self, options: FlujoOptions) -> None:
        self.options = options
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
