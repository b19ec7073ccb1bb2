"""Turns of agents whose tools require consent, as calls and tools see them (8.9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from asl.core.values import Json
from asl.states.effects import RequestContent

__all__ = ["OpenToolCall", "PausableTurn", "TurnPlace"]


class OpenToolCall:
    """A running tool call, and the number of tool calls within it."""

    __slots__ = ("around", "waits", "within")

    def __init__(self, around: OpenToolCall | None) -> None:
        self.around = around
        self.within = 0
        """Number of running calls directly within it."""
        self.waits = False
        """Whether it waits for an approver."""


class PausableTurn(Protocol):
    """One call of an agent with all of its tool calls; it can pause and be repeated."""

    @property
    def is_pausing(self) -> bool:
        """Whether the turn is being paused."""
        ...

    def note(self, source: str, event: str, details: dict[str, Json], time: float) -> None:
        """Record an event, unless it was recorded before the turn was paused.

        Args:
            source: Subject of the event; the events of a subject have the same order in each
                repetition.
            event: Name of the event.
            details: Its details.
            time: Its time in epoch seconds.
        """
        ...

    def number(self, what: str) -> int:
        """Return how often this method was called with *what* in this turn, including this call."""
        ...

    def recorded_value(self, name: str) -> Json:
        """Return the value recorded under a name before the turn was paused, None without one."""
        ...

    async def record(self, name: str, value: Json) -> None:
        """Record a value durably for a repetition of the turn."""
        ...

    async def perform_once(self, what: str, perform: Callable[[], Awaitable[Json]]) -> Json:
        """Return the result of *perform*, or the recorded one from before the pause."""
        ...

    def begin(self, around: OpenToolCall | None) -> OpenToolCall:
        """Count the start of a tool call, nested if *around* is given."""
        ...

    def end(self, use: OpenToolCall) -> None:
        """Count the end of a tool call."""
        ...

    async def request_decision(
        self, use: OpenToolCall, name: str, question: RequestContent
    ) -> Json:
        """Return the decision on a tool call.

        Raises:
            StateError: The decision fails the call.
        """
        ...


class TurnPlace(NamedTuple):
    """The place of a call in a turn: within a tool call, or directly in the agent's call."""

    turn: PausableTurn
    use: OpenToolCall | None
