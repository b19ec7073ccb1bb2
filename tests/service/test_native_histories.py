"""Histories of executions with agents: the responses follow AWS's service model."""

import asyncio
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.service.service import StatesService
from tests.service.test_operations import Client

MODEL = json.loads(files("asl.service").joinpath("model.json").read_bytes())
WORK: dict[str, Any] = {
    "StartAt": "A",
    "States": {"A": {"Type": "Task", "Agent": "Work", "End": True}},
}
FUNCTION: dict[str, Any] = {
    "StartAt": "B",
    "States": {
        "B": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:us-east-1:1:function:f",
            "TimeoutSeconds": 9,
            "Assign": {"x.$": "$"},
            "End": True,
        }
    },
}
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
STATES: dict[str, dict[str, Any]] = {
    "task": WORK["States"]["A"],
    "failing task": {
        "Type": "Task",
        "Agent": "Bad",
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Last"}],
    },
    "approval": {"Type": "Approval", "Prompt": "?", "Timeout": "1ms"},
    "debate": {"Type": "Debate", "Agents": ["Work", "Other"], "Topic": "t", "Rounds": 1},
    "checkpoint": {"Type": "Checkpoint", "Name": "c"},
    "workflow": {"Type": "Workflow", "WorkflowId": "Part"},
    "map": {"Type": "Map", "ItemsPath": "$", "ItemProcessor": WORK},
    "parallel": {"Type": "Parallel", "Branches": [WORK, FUNCTION]},
    "distributed map": {
        "Type": "Map",
        "ItemsPath": "$",
        "ItemProcessor": {**DISTRIBUTED, **WORK},
    },
    "wait": {"Type": "Wait", "Seconds": 0},
    "function": FUNCTION["States"]["B"],
}


def faults(shape: str, value: Any, path: str) -> Iterator[str]:
    """Yield what a part of a response has that the service model does not allow."""
    model = MODEL["shapes"][shape]
    match model["type"]:
        case "structure":
            yield from (f"{path}.{name} is missing" for name in model.get("required", ())
                        if name not in value)  # fmt: skip
            for name, each in value.items():
                if name in model["members"]:
                    yield from faults(model["members"][name], each, f"{path}.{name}")
                else:
                    yield f"{path}.{name} is unknown"
        case "list":
            for index, each in enumerate(value):
                yield from faults(model["member"], each, f"{path}[{index}]")
        case "map":
            for key, each in value.items():
                yield from faults(model["value"], each, f"{path}.{key}")
        case "string":
            if not isinstance(value, str) or value not in model.get("enum", [value]):
                yield f"{path} is {value!r}"
        case "boolean":
            if not isinstance(value, bool):
                yield f"{path} is {value!r}"
        case _:
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"{path} is {value!r}"


@pytest.mark.parametrize("name", STATES)
def test_responses_follow_the_service_model(name: str) -> None:
    state = {**STATES[name], "Next": "Last"}
    state.pop("End", None)
    last = {"Type": "Pass", "End": True}
    document = {"StartAt": "First", "States": {"First": state, "Last": last}}

    async def main() -> None:
        part = {"StartAt": "P", "States": {"P": last}}
        agents = {"Work": lambda _: {"text": "1"}, "Other": lambda _: {"text": "2"}}
        store = Store(
            "memory:",
            tokens=asl.TaskTokens(),
            agents={**agents, "Bad": lambda _: 1 / 0},
            resources={"*:f": lambda data: data},
            workflows={"Part": part},
        )
        async with store.runner():
            client = Client(StatesService(store, "default"))
            definition = json.dumps(document)
            machine = await client.machine("m", definition)
            started = await client.send("StartExecution", stateMachineArn=machine, input="[1, 2]")
            request = {"executionArn": started["executionArn"]}
            await client.ended(started["executionArn"])
            for operation in (
                *("DescribeExecution", "DescribeStateMachineForExecution"),
                *("GetExecutionHistory", "ListMapRuns"),
            ):
                answer = await client.send(operation, **request)
                shape = MODEL["operations"][operation]["output"]
                assert [*faults(shape, answer, operation)] == []
            events = (await client.send("GetExecutionHistory", **request))["events"]
            assert [each["id"] for each in events] == [*range(1, len(events) + 1)]
            assert all(each["previousEventId"] < each["id"] for each in events)

    asyncio.run(main())


def test_a_fault_that_aws_has_no_words_for_is_named() -> None:
    async def main() -> None:
        client = Client(StatesService(Store("memory:"), "default"))
        state = {"Type": "Approval", "Prompt": "?", "TimeoutSeconds": 1, "End": True}
        with pytest.raises(asl.ServiceError, match="V-ST-06: an Approval state has no"):
            await client.machine("m", json.dumps({"StartAt": "A", "States": {"A": state}}))

    asyncio.run(main())
