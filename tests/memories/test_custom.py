"""A memory of the user's own: whatever it raises or returns is an error of the state."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import asl
from asl.expr.text_matching import MAX_COMPARED, MAX_QUERY, similarity
from asl.memories.custom import MAX_BYTES, MAX_ENTRIES, CustomMemory

NOW = 5.0


class Own(BaseException):
    """An exception that is no Exception."""


class Wordless(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Foreign:
    """A memory whose methods all do the same."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do

    def get(self, *arguments: Any) -> Any:
        return self.do()

    entries = search = get

    def change(self, namespace: str, key: str, now: float, make: Any) -> Any:
        make(self.do())


def requests(do: Callable[[], Any]) -> list[Callable[[], object]]:
    memory: Any = CustomMemory(Foreign(do))
    return [
        lambda: memory.get("n", "k", NOW),
        lambda: memory.entries("n", NOW),
        lambda: memory.search("n", ["a"], NOW, 5),
        lambda: memory.change("n", "k", NOW, lambda known: None),
    ]


RAISED = [
    ValueError("no"),
    StopIteration(4),
    SystemExit(1),
    GeneratorExit(),
    Own(),
    Wordless(),
    RecursionError(),
    MemoryError(),
    asyncio.CancelledError(),
    BaseExceptionGroup("both", [SystemExit(1), Own()]),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_exception_of_custom_memory_fails_the_state(error: BaseException) -> None:
    def fail() -> Any:
        raise error

    for request in requests(fail):
        with pytest.raises(asl.StateError) as caught:
            request()
        assert caught.value.name == "States.MemoryNotConfigured"


def test_keyboard_interrupt_of_custom_memory_propagates() -> None:
    def fail() -> Any:
        raise KeyboardInterrupt

    for request in requests(fail):
        with pytest.raises(KeyboardInterrupt):
            request()


def entry(value: Any = 1, key: Any = "k", written: Any = 1.0, expires: Any = None) -> Any:
    return asl.MemoryEntry(key, value, written, expires)


NONE = {
    "number": 5,
    "value": entry(object()),
    "value that is no number": entry(float("nan")),
    "value of half a character": entry("\ud800"),
    "value that is too large": entry("x" * (MAX_BYTES + 1)),
    "key": entry(key=5),
    "time as text": entry(written="now"),
    "time without end": entry(written=float("inf")),
    "time of expiry": entry(expires="never"),
}


@pytest.mark.parametrize("name", NONE)
def test_invalid_entry_of_custom_memory_fails_the_state(name: str) -> None:
    """One, or one of several."""
    one, _, _, change = requests(lambda: NONE[name])
    _, several, found, _ = requests(lambda: [NONE[name]])
    for request in (one, several, found, change):
        with pytest.raises(asl.StateError) as caught:
            request()
        assert caught.value.name == "States.MemoryNotConfigured"


@pytest.mark.parametrize("each", [entry(), None], ids=["entry", "none"])
def test_entries_are_bounded(each: Any) -> None:
    """A memory that never ends is asked for so many entries."""
    given = itertools.count()
    for request in requests(lambda: (each for _ in given))[1:3]:
        with pytest.raises(asl.StateError, match=f"more than {MAX_ENTRIES} entries"):
            request()
    assert next(given) <= 2 * (MAX_ENTRIES + 1)


def test_the_values_of_all_entries_are_bounded() -> None:
    """Together, though each is small enough."""
    large = entry("x" * (MAX_BYTES // 4))
    for request in requests(lambda: itertools.repeat(large))[1:3]:
        with pytest.raises(asl.StateError, match=f"more than {MAX_BYTES} bytes"):
            request()


def test_entries_are_copies() -> None:
    """The memory keeps its own."""
    own = {"a": [1]}
    memory = CustomMemory(Foreign(lambda: entry(own)))
    found = memory.get("n", "k", NOW)
    assert found is not None
    assert found.value == own
    assert found.value["a"] is not own["a"]


def test_beginnings_of_long_texts_are_compared() -> None:
    """Neither a query nor a value of an agent takes long to compare."""
    assert similarity("tea", "tea " * MAX_COMPARED) == 1
    assert similarity("tea", "x" * MAX_COMPARED + " tea") == 0
    assert similarity("x" * MAX_QUERY + " tea", "tea") == 0
