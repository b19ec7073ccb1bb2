"""The outcomes of tool calls, for the history and for repeated turns, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.exception_mapping import bounded_text, describe_exception
from asl.engine.turns import TurnPlace
from asl.engine.usage import UNKNOWN, add_amounts, read_amounts, write_amounts
from asl.states.blocks.budget_limits import Amounts
from asl.states.errors import RaisedError

__all__ = [
    "OWN_NAMES",
    "ToolOutcome",
    "call_ended",
    "normalize_failure",
    "rejection_failure",
    "tool_failure",
]


class ToolOutcome:
    """The outcome of a tool call."""

    __slots__ = ("details", "error", "event", "name", "place", "result", "time", "used")

    def __init__(self, place: TurnPlace | None = None, name: str = "") -> None:
        self.place = place
        """Place in a turn; None if no tool needs consent."""
        self.name = name
        """Name in the records of the turn."""
        self.event = "ToolCalled"
        self.details: dict[str, Json] = {}
        """Details of the event."""
        self.used: Amounts = UNKNOWN
        """Usage that budgets have counted."""
        self.result: Json = None
        self.error: list[str] | None = None
        """Name and cause of its failure."""
        self.time = 0.0
        """Time of the outcome in epoch seconds."""

    def add(self, used: Amounts) -> None:
        """Add to the counted usage."""
        self.used = {**self.used, **add_amounts(self.used, used)}

    def to_json(self) -> Json:
        """Return the outcome as JSON."""
        told = {key: value for key, value in self.details.items() if key != "result"}
        return [self.event, self.time, told, write_amounts(self.used), self.result, self.error]

    def read(self, written: Json) -> None:
        """Restore the outcome from JSON."""
        self.event, self.time, self.details, used, self.result, self.error = written
        self.used = read_amounts(used)
        if self.error is None:
            self.details["result"] = self.result


OWN_NAMES: Final = ("States.Permissions", "States.RateLimitExceeded", "States.BudgetExceeded")
"""Errors of a tool that keep their names; all others become `Agent.ToolError`."""
REJECTED: Final = "Agent.ToolRejected"
"""Error of a tool call that an approver rejected; the agent may continue without it."""


def normalize_failure(tool: str, error: StateError) -> RaisedError:
    """Return the failure of a tool with the specification's error name."""
    if error.name in OWN_NAMES:
        return error if isinstance(error, RaisedError) else RaisedError(error.name, error.cause)
    if error.name == "Agent.ToolError" and str(error.cause).startswith(f"tool {tool!r}:"):
        return RaisedError(error.name, error.cause)
    return RaisedError("Agent.ToolError", bounded_text(f"tool {tool!r}: {error}"))


def call_ended(tool: str) -> RaisedError:
    """Return the error of a tool call after the end of its agent's call."""
    return RaisedError("Agent.ToolError", f"tool {tool!r}: the call of the agent has ended")


def rejection_failure(tool: str, record: Mapping[str, Json]) -> RaisedError:
    """Return the failure of a call that an approver rejected."""
    said = f": {record['comment']}" if record["comment"] else ""
    who, option = record["approver"], record["approval"]
    cause = f"tool {tool!r}: {who} has rejected the call ({option!r}){said}"
    return RaisedError(REJECTED, cause)


def tool_failure(tool: str, error: BaseException) -> RaisedError:
    """Return the failure of a tool for an exception of any class."""
    return RaisedError("Agent.ToolError", f"tool {tool!r}: {describe_exception(error)}")
