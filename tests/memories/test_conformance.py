"""What is remembered is the same wherever it is: all cases of memories and caches, on each kind.

While a server is asked the virtual clock goes as real time does, so no case with an exact instant
in its output is among them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asl.conformance import local
from asl.conformance.case import CHECK_FACTS
from asl.conformance.runner import run_case
from asl.memories import bind_memory
from asl.memories.sqlite import SqliteMemory
from tests.bundled import bundled

CASES = [
    case
    for file in ("memory.yaml", "cache.yaml")
    for case in bundled(f"blocks/{file}")
    if not case.expect.keys() <= CHECK_FACTS and "timestamp" not in str(case.expect.get("output"))
]


def failures(empty: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what goes wrong where all that is remembered is in what *empty* makes."""
    monkeypatch.setattr(local, "ProcessMemory", empty)
    verdicts = [run_case(case, local.LocalImplementation()) for case in CASES]
    return {each.case.id: each.reasons for each in verdicts if each.outcome != "passed"}


@pytest.mark.full
def test_a_file_remembers_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own search."""
    files = (tmp_path / f"{number}.db" for number in range(10**6))
    assert failures(lambda: SqliteMemory(next(files)), monkeypatch) == {}


def test_there_are_cases() -> None:
    """Nearly all of them are among those."""
    assert len(CASES) > 60


@pytest.mark.full
def test_a_redis_server_remembers_the_same(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what has expired on the virtual clock has expired."""

    def empty() -> Any:
        memory: Any = bind_memory(redis_url)["redis"]
        memory.client.flushall()
        return memory

    assert failures(empty, monkeypatch) == {}


@pytest.mark.full
def test_a_table_remembers_the_same(dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is changed by several at once is changed by all of them."""
    memory: Any = bind_memory(dynamodb_url)["dynamodb"]

    def empty() -> Any:
        for item in memory.client.scan(TableName=memory.table)["Items"]:
            place = {name: item[name] for name in ("namespace", "key")}
            memory.client.delete_item(TableName=memory.table, Key=place)
        return memory

    assert failures(empty, monkeypatch) == {}
