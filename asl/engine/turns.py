"""The turn of an agent whose tools need people's consent, as calls and tools use it (8.9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from asl.core.values import Json
from asl.states.effects import Question

__all__ = ["OpenToolCall", "PausableTurn", "TurnPlace"]


class OpenToolCall:
    """A tool call under way, and the number of those within it."""

    __slots__ = ("around", "waits", "within")

    def __init__(self, around: OpenToolCall | None) -> None:
        self.around = around
        self.within = 0
        """The number of calls under way directly within it."""
        self.waits = False
        """Whether it waits for people."""


class PausableTurn(Protocol):
    """One call of an agent, with all tool calls in it; it can pause, and be repeated."""

    @property
    def pausing(self) -> bool:
        """Whether the turn is being paused."""
        ...

    def note(self, source: str, event: str, details: dict[str, Json], time: float) -> None:
        """Put an event into the history, unless it was put there before the turn was paused.

        Args:
            source: What it is about; its events come in the same order each time.
            event: The name of the event.
            details: Its details.
            time: When it happened, in epoch seconds.
        """
        ...

    def number(self, what: str) -> int:
        """Return how often the same was asked for in this turn, this time included."""
        ...

    def recorded(self, name: str) -> Json:
        """Return what was recorded under a name before the turn was paused, None for nothing."""
        ...

    async def record(self, name: str, value: Json) -> None:
        """Record a value for a repetition of the turn, durably."""
        ...

    async def once(self, what: str, perform: Callable[[], Awaitable[Json]]) -> Json:
        """Return the result of *perform*, or the one that the turn had before it was paused."""
        ...

    def begin(self, around: OpenToolCall | None) -> OpenToolCall:
        """Count a tool call that begins, within another one if *around* is given."""
        ...

    def end(self, use: OpenToolCall) -> None:
        """Count a tool call that has ended."""
        ...

    async def ask(self, use: OpenToolCall, name: str, question: Question) -> Json:
        """Return people's decision on a tool call; raises StateError if it fails the call."""
        ...


class TurnPlace(NamedTuple):
    """The place of a call in a turn: within a tool call, or as the agent itself."""

    turn: PausableTurn
    use: OpenToolCall | None
