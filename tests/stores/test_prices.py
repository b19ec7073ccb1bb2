"""The prices of an execution are those with which it began."""

from pathlib import Path
from typing import Any

import pytest

import asl
from asl.effects import prices

Json = Any
DOCUMENT = {
    "StartAt": "One",
    "Budget": {"MaxCost": 100},
    "States": {
        "One": {"Type": "Task", "Agent": "A", "ResultPath": "$.r", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "On?", "ResultPath": "$.a", "Next": "Two"},
        "Two": {"Type": "Task", "Agent": "A", "ResultPath": "$.r", "End": True},
    },
}


def run(folder: Path, *tables: Json) -> float:
    """Return the cost of an execution whose second half has other prices."""
    first, second = tables
    agents = {"A": lambda parameters: {"_usage": {"input": 1, "output": 1}, "model": "m"}}
    with asl.open_store(folder / "s.db", agents=agents, **first) as store:
        store.run(DOCUMENT, {}, name="e")
        store.answer(store.pending()[0]["requestId"], "approve", by="ann")
    with asl.open_store(folder / "s.db", agents=agents, **second) as store:
        result = store.resume("e")
    assert result.ok, (result.error, result.cause)
    cost: float = result.usage["cost"]
    return cost


def test_own_prices_are_fixed_when_it_starts(tmp_path: Path) -> None:
    """Another table for the same model changes nothing."""
    assert run(tmp_path, {"prices": {"m": 1}}, {"prices": {"m": 7}}) == 4.0


def test_a_table_that_is_upgraded_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked up once is recorded."""
    table = iter([2, 9, 9, 9])
    monkeypatch.setattr(prices, "_public", lambda model: prices._price(model, next(table)))
    assert run(tmp_path, {}, {}) == 8.0
