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
    """What came of a tool call."""

    __slots__ = ("details", "error", "event", "name", "place", "result", "time", "used")

    def __init__(self, place: TurnPlace | None = None, name: str = "") -> None:
        self.place = place
        """Its place in a turn; None if no tool needs consent."""
        self.name = name
        """Names it in the records of the turn."""
        self.event = "ToolCalled"
        self.details: dict[str, Json] = {}
        """The details of the event."""
        self.used: Amounts = UNKNOWN
        """What budgets have counted."""
        self.result: Json = None
        self.error: list[str] | None = None
        """The name and the cause of its failure."""
        self.time = 0.0
        """When it was known, in epoch seconds."""

    def add(self, used: Amounts) -> None:
        """Add to what budgets have counted."""
        self.used = {**self.used, **add_amounts(self.used, used)}

    def written(self) -> Json:
        """Return it as JSON."""
        told = {key: value for key, value in self.details.items() if key != "result"}
        return [self.event, self.time, told, write_amounts(self.used), self.result, self.error]

    def read(self, written: Json) -> None:
        """Restore it from JSON."""
        self.event, self.time, self.details, used, self.result, self.error = written
        self.used = read_amounts(used)
        if self.error is None:
            self.details["result"] = self.result


OWN_NAMES: Final = ("States.Permissions", "States.RateLimitExceeded", "States.BudgetExceeded")
"""The failures of a tool that keep their names; all others are `Agent.ToolError`."""
REJECTED: Final = "Agent.ToolRejected"
"""The failure of a tool call that people have rejected; the agent may go on without it."""


def normalize_failure(tool: str, error: StateError) -> RaisedError:
    """Return the failure of a tool by the name that the specification has for it."""
    if error.name in OWN_NAMES:
        return error if isinstance(error, RaisedError) else RaisedError(error.name, error.cause)
    if error.name == "Agent.ToolError" and str(error.cause).startswith(f"tool {tool!r}:"):
        return RaisedError(error.name, error.cause)
    return RaisedError("Agent.ToolError", bounded_text(f"tool {tool!r}: {error}"))


def call_ended(tool: str) -> RaisedError:
    """Return the error of a tool call that is made after the call of its agent has ended."""
    return RaisedError("Agent.ToolError", f"tool {tool!r}: the call of the agent has ended")


def rejection_failure(tool: str, record: Mapping[str, Json]) -> RaisedError:
    """Return the failure of a call that people have rejected."""
    said = f": {record['comment']}" if record["comment"] else ""
    who, option = record["approver"], record["approval"]
    cause = f"tool {tool!r}: {who} has rejected the call ({option!r}){said}"
    return RaisedError(REJECTED, cause)


def tool_failure(tool: str, error: BaseException) -> RaisedError:
    """Return the failure of a tool that has raised what is no failure by itself."""
    return RaisedError("Agent.ToolError", f"tool {tool!r}: {describe_exception(error)}")
