"""The outcome of one tool call, as the history tells it and a repeated turn gives it again."""

from __future__ import annotations

from asl.core.values import Json
from asl.engine.turns import TurnPlace
from asl.engine.usage import UNKNOWN, add_amounts, read_amounts, write_amounts
from asl.states.blocks.budget_limits import Amounts

__all__ = ["ToolOutcome"]


class ToolOutcome:
    """What came of a tool call."""

    __slots__ = ("error", "event", "name", "place", "result", "time", "told", "used")

    def __init__(self, place: TurnPlace | None = None, name: str = "") -> None:
        self.place = place
        """Where it stands in a turn, None where no tool needs consent."""
        self.name = name
        """Names it in the records of the turn."""
        self.event = "ToolCalled"
        self.told: dict[str, Json] = {}
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
        told = {key: value for key, value in self.told.items() if key != "result"}
        return [self.event, self.time, told, write_amounts(self.used), self.result, self.error]

    def read(self, written: Json) -> None:
        """Restore it from JSON."""
        self.event, self.time, self.told, used, self.result, self.error = written
        self.used = read_amounts(used)
        if self.error is None:
            self.told["result"] = self.result
