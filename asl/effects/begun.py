"""Executions that states start, as values, and who keeps them (protocol `Keeper`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from asl.core.values import Json
from asl.engine.agent import Tokens
from asl.engine.journal import Journal
from asl.engine.result import Result
from asl.program import Program
from asl.states.effects import Child

__all__ = ["Begun", "Keeper", "Started"]


def _nothing() -> None:
    """Let others at what is kept nowhere, or guarded by whoever has started it."""


class Begun(NamedTuple):
    """An execution that is to go on, from its start or from where it is kept."""

    program: Program
    data: Json
    started: float | None = None
    """When it was started, None for now."""
    journal: Journal | None = None
    """Where it is kept, None for nowhere."""
    result: Result | None = None
    """What it has come to, None for one that is to be run."""
    redrives: int = 0
    redriven: float | None = None
    """How often it went on after its end, and when it last did."""
    leave: Callable[[], object] = _nothing
    """Lets others at it; called when it runs no more."""


class Started(NamedTuple):
    """An execution that a state starts by name."""

    name: str
    data: Json
    express: bool
    awaited: bool
    """Whether the state waits for its end; otherwise it is an execution of its own."""
    requestor: str | None
    """Who has started the whole."""


class Keeper(Protocol):
    """Keeps the executions that a kept one starts."""

    @property
    def tokens(self) -> Tokens:
        """Where the task tokens of all that is kept are answered."""
        ...

    def child(self, journal: Journal, key: str, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin an execution that a state starts and waits for, or find it begun.

        *journal* is that of the execution that starts it, *key* that of the effect, *find* gives
        the workflow.
        """
        ...

    def started(self, journal: Journal, key: str, program: Program, child: Started) -> Begun | None:
        """Do it for one that goes by a name of its own; None where another one has that."""
        ...

    def detach(self, journal: Journal, child: Journal) -> None:
        """Make an execution independent of the one that has started it, by their journals."""
        ...
