"""Kinds of agents: what an agents file says of one becomes an agent in one way."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.values import Json

__all__ = ["Home", "Kind", "Spec"]

Spec: TypeAlias = Mapping[str, Json]
"""What a file says of one agent; it has the shape that the schema of its kind asks for."""


@dataclass(frozen=True, slots=True)
class Home:
    """What surrounds an agent in its file."""

    folder: Path
    """Where paths begin."""


def _nothing(spec: Spec, home: Home) -> Iterator[Finding]:
    yield from ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of agents: a row of the table in `asl.agents.kinds`."""

    schema: str
    """The name of its schema: `agents:Process`."""
    build: Callable[[Spec, Home], Any]
    """Makes the agent (or whatever can be bound to a name); raises AslError if there is none."""
    check: Callable[[Spec, Home], Iterator[Finding]] = _nothing
    """Yields what the schema cannot see; pointers begin at the agent. Nothing foreign runs."""
    secrets: tuple[str, ...] = ()
    """The fields in which secrets may stand."""
