"""Map Runs of registered state machines: counts, children, and limits that change meanwhile."""

import asyncio
import json
from pathlib import Path
from typing import Any

from asl.executions import Store
from asl.service.service import StatesService
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
        request = {"executionArn": child["executionArn"]}
        described = await client.send("DescribeExecution", **request)
        assert described == {**child, "redriveStatus": "REDRIVABLE_BY_MAP_RUN"}
        events = (await client.send("GetExecutionHistory", **request))["events"]
        assert [each["type"] for each in events] == ["ExecutionStarted", "ExecutionFailed"]
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


def test_a_run_that_continues_in_another_server_has_its_earlier_children(tmp_path: Path) -> None:
    """Limits that were changed in between, or by another process, are applied."""
    file = tmp_path / "runs.db"
    gate = asyncio.Event()
    done: list[Any] = []

    async def wait(item: Any) -> Any:
        if item > 2:
            await gate.wait()
        done.append(item)
        return item

    async def begin() -> str:
        with Store(file, resources={FUNCTION: wait}) as store:
            async with store.runner():
                client = Client(StatesService(store))
                arn = await started(client, machine(MaxConcurrency=1), [1, 2, 3, 4, 5])
                while len(done) < 2:
                    await asyncio.sleep(0.01)
                (listed,) = (await client.send("ListMapRuns", executionArn=arn))["mapRuns"]
                name = listed["mapRunArn"]
                while (await client.send("DescribeMapRun", mapRunArn=name))["itemCounts"][
                    "succeeded"
                ] < 2:
                    await asyncio.sleep(0.01)
            return arn

    async def continued(arn: str) -> None:
        with Store(file) as other, Store(file, resources={FUNCTION: wait}) as store:
            client, foreign = Client(StatesService(store)), Client(StatesService(other))
            (listed,) = (await client.send("ListMapRuns", executionArn=arn))["mapRuns"]
            name = listed["mapRunArn"]
            children = (await foreign.send("ListExecutions", mapRunArn=name))["executions"]
            assert [each["status"] for each in children][1:] == ["SUCCEEDED", "SUCCEEDED"]
            async with store.runner():
                while name not in store.map_runs.live:
                    await asyncio.sleep(0.01)
                await foreign.send("UpdateMapRun", mapRunArn=name, maxConcurrency=3)
                while store.map_runs.live[name].executions.running < 3:
                    await asyncio.sleep(0.01)
                gate.set()
                assert (await client.ended(arn))["status"] == "SUCCEEDED"
            found = await foreign.send("DescribeMapRun", mapRunArn=name)
            counts = {key: count for key, count in found["itemCounts"].items() if count}
            assert counts == {"succeeded": 5, "total": 5}
            children = (await foreign.send("ListExecutions", mapRunArn=name))["executions"]
            assert len(children) == 5

    arn = asyncio.run(begin())
    gate = asyncio.Event()
    asyncio.run(continued(arn))
    assert done[:2] == [1, 2]
    assert sorted(done) == [1, 2, 3, 4, 5]  # three at the same time
