"""What all of a machine's parts speak of: the data of a state, where steps lead, what was built."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.flujo.blueprint import Machine

__all__ = ["INPUT", "RESULT", "Built", "Failing", "State", "Then"]

INPUT: Final = "$states.input"
RESULT: Final = "$states.result"


class Built(NamedTuple):
    """A machine, where its parts were written, and what there is to say."""

    machine: dict[str, Json]
    origins: list[tuple[Mapping[str, Json], str]]
    """Objects of the machine, and the JSON Pointers where each is written."""
    machines: dict[str, Json]
    """The state machines by their names in the document: where each is written, and which of its
    states have another name there."""
    findings: list[Finding]


class Then(NamedTuple):
    """Where a step leads that has worked: None ends the machine that it stands in.

    `closes` are the steps that end with it, the innermost first: its output is theirs.
    """

    next: str | None
    closes: tuple[str, ...] = ()


class Failing(NamedTuple):
    """Where a step leads that has failed; as which step, if not as itself."""

    next: str
    step: str | None = None


class State(NamedTuple):
    """The state of a state machine whose steps are built."""

    machine: Machine
    name: str
    targets: Mapping[str, str]
    """The states of the document that its states begin with, and its end states."""
