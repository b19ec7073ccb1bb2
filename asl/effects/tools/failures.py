"""The failures of tool calls, by the names that the specification has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.blame import bounded_text, described
from asl.states.errors import Raised

__all__ = ["FINAL", "ended", "failed", "named", "rejected"]

FINAL: Final = ("States.Permissions", "States.RateLimitExceeded", "States.BudgetExceeded")
"""The failures of a tool that keep their names; all others are `Agent.ToolError`."""
REJECTED: Final = "Agent.ToolRejected"
"""The failure of a tool call that people have rejected; the agent may go on without it."""


def named(tool: str, error: StateError) -> Raised:
    """Return the failure of a tool by the name that the specification has for it."""
    if error.name in FINAL:
        return error if isinstance(error, Raised) else Raised(error.name, error.cause)
    if error.name == "Agent.ToolError" and str(error.cause).startswith(f"tool {tool!r}:"):
        return Raised(error.name, error.cause)
    return Raised("Agent.ToolError", bounded_text(f"tool {tool!r}: {error}"))


def ended(tool: str) -> Raised:
    """Return the failure of a tool that is asked for when nobody waits for the agent any more."""
    return Raised("Agent.ToolError", f"tool {tool!r}: the call of the agent has ended")


def rejected(tool: str, record: Mapping[str, Json]) -> Raised:
    """Return the failure of a call that people have rejected."""
    said = f": {record['comment']}" if record["comment"] else ""
    who, option = record["approver"], record["approval"]
    cause = f"tool {tool!r}: {who} has rejected the call ({option!r}){said}"
    return Raised(REJECTED, cause)


def failed(tool: str, error: BaseException) -> Raised:
    """Return the failure of a tool that has raised what is no failure by itself."""
    return Raised("Agent.ToolError", f"tool {tool!r}: {described(error)}")
