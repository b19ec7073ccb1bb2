"""The garbage collector looks rarely while thousands of machines run at once, and only then."""

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

import asl
from asl.effects.fork import MANY, RELAXED_THRESHOLD, relaxed_gc

EACH: Any = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "Ask",
                "States": {"Ask": {"Type": "Task", "Agent": "A", "End": True}},
            },
            "End": True,
        }
    },
}


@pytest.fixture(autouse=True)
def usual() -> Iterator[int]:
    """Look at 700 new objects, whatever was set before."""
    before = gc.get_threshold()
    gc.set_threshold(700, *before[1:])
    yield 700
    gc.set_threshold(*before)


def often() -> int:
    return gc.get_threshold()[0]


def watched(document: Any, length: int, fails: bool = False) -> set[int]:
    """Run over so many items; return how often the collector looked meanwhile."""
    seen = set()

    async def agent(item: int) -> int:
        seen.add(often())
        await asyncio.sleep(1)
        if fails and item == 0:
            raise ValueError
        return item

    asl.run(document, list(range(length)), agents={"A": agent}, clock="virtual")
    return seen


def test_gc_is_relaxed_for_thousands_of_children(usual: int) -> None:
    """Afterwards it is as before, also behind a failure."""
    assert watched(EACH, MANY) == {RELAXED_THRESHOLD}
    assert often() == usual
    assert watched(EACH, MANY, fails=True) == {RELAXED_THRESHOLD}
    assert often() == usual


def test_gc_is_unchanged_for_few_children(usual: int) -> None:
    """Neither of few items, nor of few at once."""
    assert watched(EACH, MANY - 1) == {usual}
    limited = {**EACH, "States": {"Each": {**EACH["States"]["Each"], "MaxConcurrency": 9}}}
    assert watched(limited, MANY) == {usual}


def test_last_run_restores_gc_threshold(usual: int) -> None:
    """Forks may lie within each other, or end in any order."""
    relaxed_gc.__enter__()
    relaxed_gc.__enter__()
    relaxed_gc.__exit__()
    assert often() == RELAXED_THRESHOLD
    relaxed_gc.__exit__()
    assert often() == usual


@pytest.mark.parametrize("given", [0, RELAXED_THRESHOLD + 1])
def test_gc_threshold_of_other_code_remains(given: int) -> None:
    """Whether before or meanwhile; 0 is never."""
    gc.set_threshold(given)
    with relaxed_gc:
        assert often() == given
    assert often() == given
    gc.set_threshold(700)
    with relaxed_gc:
        gc.set_threshold(given)
    assert often() == given
