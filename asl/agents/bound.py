"""What agents files bind, and what the command line adds to it."""

from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Bindings"]


@dataclass(frozen=True, slots=True)
class Bindings:
    """What an agents file binds: the first three as `asl.run` takes them, then what these use."""

    agents: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    mocks: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)
    servers: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict, repr=False)
    """As `asl.run` takes it; the places may hold secrets."""

    def __or__(self, other: "Bindings") -> "Bindings":
        """Return the bindings of both; those of *other* win."""
        return Bindings(
            *({**getattr(self, each.name), **getattr(other, each.name)} for each in fields(self))
        )
