"""Forks: results keep order, limits hold, the first failure stops everything else."""

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl


def mapped(states: Any, first: str, **fields: Any) -> Any:
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemProcessor": {"StartAt": first, "States": states},
                "End": True,
                **fields,
            }
        },
    }


ASK = {"Ask": {"Type": "Task", "Agent": "A", "End": True}}


@given(
    st.lists(st.integers(0, 9), max_size=30),
    st.integers(0, 5),
)
def test_results_keep_the_order_of_the_items(delays: list[int], limit: int) -> None:
    """Whatever finishes first, and however many run at once."""

    async def agent(seconds: int) -> int:
        await asyncio.sleep(seconds)
        return seconds

    document = mapped(ASK, "Ask", MaxConcurrency=limit)
    result = asl.run(document, delays, agents={"A": agent}, clock="virtual")
    assert result.output == delays


@given(st.integers(1, 40), st.integers(0, 6))
def test_max_concurrency_bounds_running_children(items: int, limit: int) -> None:
    """And exactly as many as allowed, so that no place stays empty."""
    present, most = 0, 0

    async def agent(_: Any) -> None:
        nonlocal present, most
        present += 1
        most = max(most, present)
        await asyncio.sleep(1)
        present -= 1

    document = mapped(ASK, "Ask", MaxConcurrency=limit)
    result = asl.run(document, [0] * items, agents={"A": agent}, clock="virtual")
    assert result.ok
    assert most == min(items, limit or items)
    assert result.elapsed == -(-items // (limit or items))


@pytest.mark.parametrize("slow_first", [True, False])
def test_the_first_failure_cancels_the_siblings(slow_first: bool) -> None:
    """Nothing goes on after the Map has failed, whichever worker runs the failing item."""
    finished, cancelled = [], []

    async def agent(item: Any) -> Any:
        if item == "bad":
            await asyncio.sleep(1)
            raise asl.StateError("Bad", "on purpose")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        finished.append(item)

    items = ["a", "bad", "b"] if slow_first else ["bad", "a", "b"]
    result = asl.run(mapped(ASK, "Ask"), items, agents={"A": agent}, clock="virtual")
    assert (result.status, result.error, result.cause) == ("FAILED", "Bad", "on purpose")
    assert result.elapsed == 1
    assert finished == []
    assert sorted(cancelled) == ["a", "b"]
    aborted = [e.details["index"] for e in result.events if e.type == "MapIterationAborted"]
    assert len(aborted) == 2


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_failure_deep_inside_is_caught_outside(position: int) -> None:
    """A nested fork fails, everything else is cancelled, and the outer state's catcher goes on."""
    document = {
        "StartAt": "Both",
        "States": {
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    mapped({f"Ask{n}": {**ASK["Ask"]}}, f"Ask{n}")
                    | {"StartAt": f"Each{n}", "States": {f"Each{n}": mapped(
                        {f"Ask{n}": {**ASK["Ask"]}}, f"Ask{n}")["States"]["Each"]}}
                    for n in range(3)
                ],
                "Parameters": [5, 5, 5],
                "Catch": [{"ErrorEquals": ["Bad"], "ResultPath": "$.e", "Next": "Go"}],
                "Next": "Go",
            },
            "Go": {"Type": "Wait", "Seconds": 1, "End": True},
        },
    }  # fmt: skip
    calls = 0
    alive = 0

    async def agent(_: Any) -> Any:
        nonlocal calls, alive
        calls += 1
        mine = calls
        alive += 1
        try:
            await asyncio.sleep(1 if mine == position * 3 + 1 else 5)
            if mine == position * 3 + 1:
                raise asl.StateError("Bad", None)
        finally:
            alive -= 1

    result = asl.run(document, {}, agents={"A": agent}, clock="virtual")
    assert result.ok, result.cause
    assert result.output == {"e": {"Error": "Bad", "Cause": ""}}
    assert result.elapsed == 2
    assert alive == 0


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.integers(0, 20), st.integers(0, 3))
def test_tolerated_failures_are_left_out(fails: list[bool], tolerated: int, limit: int) -> None:
    """Up to the tolerated number the Map succeeds with the others' results; beyond it fails."""

    async def agent(item: list[Any]) -> Any:
        await asyncio.sleep(item[0] % 3)
        if item[1]:
            raise asl.StateError("Bad", None)
        return item[0]

    document = mapped(ASK, "Ask", ToleratedFailureCount=tolerated, MaxConcurrency=limit)
    items = [[index, fail] for index, fail in enumerate(fails)]
    result = asl.run(document, items, agents={"A": agent}, clock="virtual")
    if sum(fails) <= tolerated:
        assert result.output == [index for index, fail in items if not fail]
    else:
        assert result.error == "States.ExceedToleratedFailureThreshold"


def test_a_cancelled_run_leaves_no_task_behind() -> None:
    """Cancelling `arun` cancels every child and awaits its end."""
    alive = 0

    async def agent(_: Any) -> None:
        nonlocal alive
        alive += 1
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            alive -= 1

    async def main() -> None:
        task = asyncio.ensure_future(
            asl.arun(mapped(ASK, "Ask"), list(range(20)), agents={"A": agent})
        )
        while alive < 20:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_execution_timeout_ends_everything() -> None:
    """The status is TIMED_OUT, no catcher sees it, and no child goes on."""
    alive = 0

    async def agent(_: Any) -> None:
        nonlocal alive
        alive += 1
        try:
            await asyncio.sleep(60)
        finally:
            alive -= 1

    document = mapped(ASK, "Ask") | {"TimeoutSeconds": 5}
    document["States"]["Each"]["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    document["States"]["Caught"] = {"Type": "Succeed"}
    result = asl.run(document, [1, 2, 3], agents={"A": agent}, clock="virtual")
    assert (result.status, result.error, result.elapsed) == ("TIMED_OUT", "States.Timeout", 5)
    assert alive == 0
    assert result.visited == ["Each"]


def test_a_run_that_never_waits_needs_no_event_loop() -> None:
    """Pure states, scripted answers and plain functions run in the calling thread."""
    threads = []

    def agent(item: Any) -> Any:
        threads.append(threading.current_thread())
        return item

    document = {
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Agent": "A", "End": True}},
    }
    result = asl.run(document, 1, agents={"A": agent})
    assert result.output == 1
    assert threads == [threading.current_thread()]


def test_plain_functions_of_a_fork_run_at_the_same_time() -> None:
    """Each in a thread of its own, so that blocking ones do not wait for each other."""
    together = threading.Barrier(4, timeout=60)

    def agent(item: Any) -> Any:
        together.wait()
        return item

    result = asl.run(mapped(ASK, "Ask"), [1, 2, 3, 4], agents={"A": agent})
    assert result.output == [1, 2, 3, 4], result.cause
