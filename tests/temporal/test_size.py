"""Sizes: loops, Maps and waits that are larger than one history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from asl.core.errors import StateError
from asl.core.values import Json
from asl.temporal import claims
from tests.temporal.servers import Server, development, run, skipping

CALL: Any = {"Type": "Task", "Agent": "double", "End": True}
DISTRIBUTED: Any = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}


def double(value: int) -> int:
    """Return a number times two."""
    return 2 * value


def map_of(state: Json, **fields: Json) -> Json:
    """Return a document with a distributed Map of one state."""
    processor = {"ProcessorConfig": DISTRIBUTED, "StartAt": "Do", "States": {"Do": state}}
    only = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    return {"StartAt": "Each", "States": {"Each": {**only, **fields}}}


@contextmanager
def max_events(count: int) -> Iterator[None]:
    """Let workflows continue as new runs from a number of events on."""
    before, claims.MAX_EVENTS = claims.MAX_EVENTS, count
    try:
        yield
    finally:
        claims.MAX_EVENTS = before


async def slices_reach(server: Server, name: str, *statuses: str) -> None:
    """Return when the slices of an execution have these statuses, sorted; lists are late."""
    async with asyncio.timeout(20):
        while await _slices(server, name) != [*statuses]:
            await asyncio.sleep(0.1)


async def _slices(server: Server, name: str) -> list[str]:
    found = server.client.list_workflows("WorkflowType = 'asl.Slice'")
    listed = [each async for each in found if each.id.startswith(f"{name}/")]
    return sorted(each.status.name for each in listed if each.status is not None)


def test_distributed_map_runs_in_slices() -> None:
    async def scene() -> None:
        async with skipping({"double": double}) as server:
            found = await server.run(map_of(CALL), {"items": list(range(300))})
            assert found.output == [2 * each for each in range(300)]
            assert found.runs[0].events < 60

    run(scene())


def test_map_of_few_items_runs_in_its_workflow() -> None:
    async def scene() -> None:
        async with development({"double": double}) as server:
            handle = await server.start(map_of(CALL), {"items": [1, 2, 3]})
            assert await handle.result() == [2, 4, 6]
            await slices_reach(server, handle.id)

    run(scene())


def test_slices_show_items_and_continue_as_new() -> None:
    seen = {
        "Type": "Pass",
        "Parameters": {
            "Index.$": "$$.Map.Item.Index",
            "Value.$": "$$.Map.Item.Value",
            "Execution.$": "$$.Execution.Id",
        },
        "End": True,
    }
    two: Json = map_of({"Type": "Wait", "Seconds": 5, "Next": "See"})
    two["States"]["Each"]["ItemProcessor"]["States"]["See"] = seen
    two["States"]["Each"]["ItemSelector"] = {"number.$": "$$.Map.Item.Value"}

    async def scene(server: Server, count: int) -> list[Json]:
        found = await server.run(two, {"items": list(range(count))})
        output: list[Json] = found.output
        assert [each["Index"] for each in output] == list(range(count))
        assert [each["Value"] for each in output] == list(range(count))
        assert len({each["Execution"] for each in output}) == count
        return output

    async def scenes() -> None:
        async with skipping({}) as server:
            (few, many) = await scene(server, 3), await scene(server, 100)
            assert len(few[0]["Execution"]) == len(many[0]["Execution"])
            with max_events(60):
                await scene(server, 100)

    run(scenes())


def test_failed_item_cancels_other_slices() -> None:
    def fail(value: int) -> int:
        if value == 7:
            raise StateError("Bad", "no")
        return value

    async def scene() -> None:
        async with development({"double": fail}) as server:
            waits = {"Type": "Wait", "Seconds": 300, "End": True}
            first = {"Type": "Choice", "Choices": [], "Default": "Do"}
            rule = {"Variable": "$", "NumericGreaterThan": 249, "Next": "Wait"}
            document = map_of(CALL)
            processor = document["States"]["Each"]["ItemProcessor"]
            processor["StartAt"] = "Which"
            processor["States"] |= {"Which": {**first, "Choices": [rule]}, "Wait": waits}
            handle = await server.start(document, {"items": list(range(300))})
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            assert "States.ExceedToleratedFailureThreshold" in str(failed.value.cause)
            await slices_reach(server, handle.id, "CANCELED", "COMPLETED")
            document["States"]["Each"]["ToleratedFailureCount"] = 1
            processor["States"]["Wait"]["Seconds"] = 1
            found = await server.run(document, {"items": list(range(300))})
            assert len(found.output) == 299

    run(scene())


def test_cancelled_execution_cancels_its_slices() -> None:
    async def scene() -> None:
        async with development({}) as server:
            waits = {"Type": "Wait", "Seconds": 300, "End": True}
            handle = await server.start(map_of(waits), {"items": list(range(30))})
            await slices_reach(server, handle.id, "RUNNING")
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            await slices_reach(server, handle.id, "CANCELED")

    run(scene())


def reminders(days: int) -> Json:
    """Return a document with an approval that reminds daily."""
    channels = [{"Type": "mail", "OnlyAfter": f"{day}d"} for day in range(1, days)]
    approval = {
        "Type": "Approval",
        "Prompt": "?",
        "Timeout": f"{days}d",
        "Default": "Late",
        "Notifications": {"Channels": channels},
        "End": True,
    }
    late = {"Type": "Pass", "Result": "late", "End": True}
    return {"StartAt": "Ask", "States": {"Ask": approval, "Late": late}}


def test_wait_with_reminders_continues_as_new() -> None:
    async def scene() -> None:
        async with skipping({}) as server:
            with max_events(100):
                found = await server.run(reminders(60))
            assert found.output == "late"
            assert len(found.runs) == 4
            assert max(each.input for each in found.runs[1:]) < 4000

    run(scene())


LOOP: Any = {
    "StartAt": "Call",
    "States": {
        "Call": {
            "Type": "Task",
            "Agent": "double",
            "InputPath": "$.one",
            "ResultPath": "$.two",
            "Next": "Keep",
        },
        "Keep": {"Type": "Pass", "Next": "Count"},
        "Count": {
            "Type": "Pass",
            "Parameters": {"left.$": "States.MathAdd($.left, -1)", "one": 1},
            "Next": "Last",
        },
        "Last": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.left", "NumericGreaterThan": 0, "Next": "Call"}],
            "Default": "End",
        },
        "End": {"Type": "Succeed"},
    },
}
"""A loop of four states."""


def test_loop_continues_as_new() -> None:
    async def scene() -> None:
        async with skipping({"double": double}) as server:
            with max_events(60):
                found = await server.run(LOOP, {"left": 40, "one": 1})
            assert found.output == {"left": 0, "one": 1}
            assert len(found.runs) > 3
            assert max(each.input for each in found.runs) < 2000

    run(scene())


@pytest.mark.full
def test_loop_of_50000_states() -> None:
    async def scene() -> None:
        async with skipping({"double": double}) as server:
            found = await server.run(LOOP, {"left": 12_500, "one": 1})
            assert found.output == {"left": 0, "one": 1}
            assert max(each.events for each in found.runs) < 4100
            assert max(each.input for each in found.runs) < 4000

    run(scene())


@pytest.mark.full
def test_year_with_daily_reminders() -> None:
    async def scene() -> None:
        async with skipping({}) as server:
            with max_events(200):
                found = await server.run(reminders(360))
            assert found.output == "late"
            assert len(found.runs) > 5
            assert max(each.input for each in found.runs[1:]) < 10_000  # the document is 8,000

    run(scene())


@pytest.mark.full
def test_map_of_10000_items() -> None:
    processor: Json = {"StartAt": "Do", "States": {"Do": CALL}}
    only = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}

    async def scene() -> None:
        async with development({"double": double}) as server:
            items = list(range(10_000))
            document = {"StartAt": "Each", "States": {"Each": only}}
            found = await server.run(document, {"items": items})
            assert found.output == [2 * each for each in items]
            assert max(each.events for each in found.runs) < 8000

    run(scene())


@pytest.mark.full
def test_distributed_map_of_100000_items() -> None:
    async def scene() -> None:
        async with development({}) as server:
            items = list(range(100_000))
            waits = {"Type": "Wait", "Seconds": 1, "End": True}
            found = await server.run(map_of(waits), {"items": items})
            assert found.output == items
            assert [each.events for each in found.runs] < [1000]

    run(scene())


def test_large_values_are_named_errors() -> None:
    calls: list[int] = []

    def double(value: Any) -> str:
        calls.append(len(value))
        return "x" * 2_000_000

    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Caught"}]
    states = {
        "Call": {"Type": "Task", "Agent": "double", "Catch": catch, "End": True},
        "Caught": {"Type": "Pass", "Result": "caught", "End": True},
    }

    async def scene() -> None:
        async with skipping({"double": double}) as server:
            found = await server.run({"StartAt": "Call", "States": states}, "few")
            assert found.output == "caught"
            assert calls == [3]

    run(scene())
