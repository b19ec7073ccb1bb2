"""Map Runs of registered state machines: counts, children, and limits that change meanwhile."""

import asyncio
import json
from typing import Any

from tests.service.test_operations import Client, refused, run

FUNCTION = "arn:aws:lambda:eu-west-1:1:function:f"


def machine(**more: Any) -> str:
    state = {
        "Type": "Map",
        "ItemsPath": "$",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "T",
            "States": {"T": {"Type": "Task", "Resource": FUNCTION, "End": True}},
        },
        "Label": "Each",
        "End": True,
        **more,
    }
    return json.dumps({"StartAt": "M", "States": {"M": state}})


async def started(client: Client, definition: str, items: list[Any]) -> str:
    arn = await client.machine("m", definition)
    answer = await client.send("StartExecution", stateMachineArn=arn, input=json.dumps(items))
    return str(answer["executionArn"])


def fails_at_two(item: Any) -> Any:
    if item == 2:
        raise ValueError("two")
    return item


def test_an_ended_run_has_its_counts_and_its_children() -> None:
    async def test(client: Client) -> None:
        arn = await started(client, machine(ToleratedFailureCount=1, MaxConcurrency=2), [1, 2, 3])
        assert (await client.ended(arn))["status"] == "SUCCEEDED"
        (listed,) = (await client.send("ListMapRuns", executionArn=arn))["mapRuns"]
        assert listed["stateMachineArn"].endswith(":stateMachine:m/Each")
        found = await client.send("DescribeMapRun", mapRunArn=listed["mapRunArn"])
        assert found["status"] == "SUCCEEDED"
        assert (found["maxConcurrency"], found["toleratedFailureCount"]) == (2, 1)
        counts = {name: count for name, count in found["itemCounts"].items() if count}
        assert counts == {"succeeded": 2, "failed": 1, "total": 3}
        events = (await client.send("GetExecutionHistory", executionArn=arn))["events"]
        named = [
            each["mapRunStartedEventDetails"] for each in events if "MapRunStarted" in each["type"]
        ]
        assert named == [{"mapRunArn": listed["mapRunArn"]}]
        request = {"mapRunArn": listed["mapRunArn"], "statusFilter": "FAILED"}
        (child,) = (await client.send("ListExecutions", **request))["executions"]
        assert child["executionArn"].startswith(
            "arn:aws:states:eu-west-1:123456789012:execution:m/Each:"
        )
        code, _ = await refused(
            client.send("UpdateMapRun", mapRunArn=listed["mapRunArn"], maxConcurrency=1)
        )
        assert code == "ValidationException"

    run(test, resources={FUNCTION: fails_at_two})


def test_a_running_run_is_widened() -> None:
    """With the new limit as many children run at the same time."""
    gate = asyncio.Event()
    running = 0

    async def wait(item: Any) -> Any:
        nonlocal running
        running += 1
        await gate.wait()
        return item

    async def test(client: Client) -> None:
        arn = await started(client, machine(MaxConcurrency=1), [1, 2, 3, 4])
        while not running:
            await asyncio.sleep(0)
        (listed,) = (await client.send("ListMapRuns", executionArn=arn))["mapRuns"]
        name = listed["mapRunArn"]
        before = await client.send("DescribeMapRun", mapRunArn=name)
        assert (before["status"], before["executionCounts"]["running"]) == ("RUNNING", 1)
        await client.send("UpdateMapRun", mapRunArn=name, maxConcurrency=3)
        while running < 3:
            await asyncio.sleep(0)
        now = await client.send("DescribeMapRun", mapRunArn=name)
        assert (now["maxConcurrency"], now["executionCounts"]["running"]) == (3, 3)
        gate.set()
        assert (await client.ended(arn))["status"] == "SUCCEEDED"
        assert running == 4

    run(test, resources={FUNCTION: wait})


def test_a_stopped_execution_ends_its_run() -> None:
    async def wait(item: Any) -> Any:
        await asyncio.Event().wait()

    async def test(client: Client) -> None:
        arn = await started(client, machine(), [1, 2])
        while not (listed := (await client.send("ListMapRuns", executionArn=arn))["mapRuns"]):
            await asyncio.sleep(0)
        await client.send("StopExecution", executionArn=arn)
        found = await client.send("DescribeMapRun", mapRunArn=listed[0]["mapRunArn"])
        assert found["status"] == "ABORTED"

    run(test, resources={FUNCTION: wait})
