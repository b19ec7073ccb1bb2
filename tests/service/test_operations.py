"""The operations of the service, called without a server."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError
from asl.service.history_pages import HistoryPages
from asl.service.operations import perform
from asl.service.service import StatesService

SCOPE = RequestScope("123456789012", "eu-west-1")
ROLE = "arn:aws:iam::123456789012:role/runs"
PREFIX = "arn:aws:states:eu-west-1:123456789012"
PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
FAIL = json.dumps({"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Broken"}}})
ECHO = json.dumps(
    {
        "StartAt": "E",
        "States": {
            "E": {
                "Type": "Pass",
                "Parameters": {"context.$": "$$", "data.$": "$"},
                "End": True,
            }
        },
    }
)


class Client:
    """Sends requests to a service."""

    def __init__(self, service: StatesService) -> None:
        self.service = service

    async def send(self, operation: str, **request: Any) -> Any:
        return await perform(self.service, operation, request, SCOPE)

    async def machine(self, name: str, definition: str = PASS, **more: Any) -> str:
        answer = await self.send(
            "CreateStateMachine", name=name, definition=definition, roleArn=ROLE, **more
        )
        return str(answer["stateMachineArn"])

    async def ended(self, arn: str) -> Any:
        """Wait for the end of an execution."""
        while True:
            found = await self.send("DescribeExecution", executionArn=arn)
            if found["status"] != "RUNNING":
                return found
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(**bindings: Any) -> AsyncIterator[Client]:
    store = Store("memory:", tokens=asl.TaskTokens(), **bindings)
    async with store.runner():
        yield Client(StatesService(store))


Test = Callable[[Client], Coroutine[Any, Any, None]]


def run(test: Test, **bindings: Any) -> None:
    async def main() -> None:
        async with serving(**bindings) as client:
            await test(client)

    asyncio.run(main())


async def refused(call: Coroutine[Any, Any, Any]) -> tuple[str, str]:
    with pytest.raises(ServiceError) as refusal:
        await call
    return refusal.value.code, refusal.value.message


def test_the_context_has_the_arns_and_the_role_of_the_registered_state_machine() -> None:
    async def test(client: Client) -> None:
        machine = await client.machine("echo", ECHO)
        started = await client.send(
            "StartExecution", stateMachineArn=machine, name="one", input='{"a": 1}'
        )
        assert started["executionArn"] == f"{PREFIX}:execution:echo:one"
        found = json.loads((await client.ended(started["executionArn"]))["output"])
        assert found["data"] == {"a": 1}
        assert found["context"]["StateMachine"] == {"Id": machine, "Name": "echo"}
        execution = found["context"]["Execution"]
        assert (execution["Id"], execution["Name"]) == (started["executionArn"], "one")
        assert execution["RoleArn"] == ROLE

    run(test)


def test_names_of_executions_are_unique_within_a_state_machine() -> None:
    async def test(client: Client) -> None:
        first, second = await client.machine("first"), await client.machine("second")
        for machine in (first, second):
            await client.send("StartExecution", stateMachineArn=machine, name="same")
        again = client.send("StartExecution", stateMachineArn=first, name="same", input="1")
        code, message = await refused(again)
        arn = f"{PREFIX}:execution:first:same"
        assert (code, message) == (
            "ExecutionAlreadyExists",
            f"Execution Already Exists: '{arn}'",
        )

    run(test)


def test_a_running_execution_is_started_once() -> None:
    waits = json.dumps(
        {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
    )

    async def test(client: Client) -> None:
        machine = await client.machine("waits", waits)
        request = {"stateMachineArn": machine, "name": "one", "input": '{"a": 1}'}
        first = await client.send("StartExecution", **request)
        assert await client.send("StartExecution", **request) == first
        await client.send("StopExecution", executionArn=first["executionArn"], error="E", cause="C")
        found = await client.ended(first["executionArn"])
        assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "E", "C")

    run(test)


def test_executions_run_the_revision_they_were_started_with() -> None:
    def passes(value: int) -> str:
        state = {"Type": "Pass", "Result": value, "End": True}
        return json.dumps({"StartAt": "P", "States": {"P": state}})

    async def test(client: Client) -> None:
        machine = await client.machine("m", passes(1), publish=True)
        await client.send("UpdateStateMachine", stateMachineArn=machine, definition=passes(2))
        outputs = []
        for arn in (machine, f"{machine}:1"):
            started = await client.send("StartExecution", stateMachineArn=arn)
            found = await client.ended(started["executionArn"])
            outputs.append((found["output"], found.get("stateMachineVersionArn")))
        assert outputs == [("2", None), ("1", f"{machine}:1")]

    run(test)


def test_an_alias_routes_by_its_weights() -> None:
    async def test(client: Client) -> None:
        machine = await client.machine("m", publish=True)
        other = await client.send(
            "UpdateStateMachine", stateMachineArn=machine, definition=FAIL, publish=True
        )
        routes = [
            {"stateMachineVersionArn": f"{machine}:1", "weight": 0},
            {"stateMachineVersionArn": other["stateMachineVersionArn"], "weight": 100},
        ]
        alias = await client.send(
            "CreateStateMachineAlias", name="live", routingConfiguration=routes
        )
        started = await client.send("StartExecution", stateMachineArn=alias["stateMachineAliasArn"])
        found = await client.ended(started["executionArn"])
        assert found["status"] == "FAILED"
        assert found["stateMachineAliasArn"] == f"{machine}:live"
        assert found["stateMachineVersionArn"] == f"{machine}:2"
        for arn, count in ((f"{machine}:live", 1), (f"{machine}:1", 0), (machine, 1)):
            listed = await client.send("ListExecutions", stateMachineArn=arn)
            assert len(listed["executions"]) == count

    run(test)


def test_a_failed_execution_is_redriven() -> None:
    task = {"Type": "Task", "Resource": "arn:aws:lambda:eu-west-1:1:function:f", "End": True}
    answers = [RuntimeError("no"), {"ok": True}]

    def function(_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def test(client: Client) -> None:
        machine = await client.machine("m", json.dumps({"StartAt": "T", "States": {"T": task}}))
        started = await client.send("StartExecution", stateMachineArn=machine)
        arn = started["executionArn"]
        assert (await client.ended(arn))["redriveStatus"] == "REDRIVABLE"
        await client.send("RedriveExecution", executionArn=arn)
        found = await client.ended(arn)
        assert (found["status"], found["redriveCount"]) == ("SUCCEEDED", 1)
        code, _ = await refused(client.send("RedriveExecution", executionArn=arn))
        assert code == "ExecutionNotRedrivable"

    run(test, resources={"arn:aws:lambda:eu-west-1:1:function:f": function})


def test_a_worker_answers_the_task_of_an_activity() -> None:
    async def test(client: Client) -> None:
        activity = await client.send("CreateActivity", name="work")
        task = {"Type": "Task", "Resource": activity["activityArn"], "End": True}
        machine = await client.machine("m", json.dumps({"StartAt": "T", "States": {"T": task}}))
        started = await client.send("StartExecution", stateMachineArn=machine, input='{"n": 1}')
        taken = await client.send(
            "GetActivityTask", activityArn=activity["activityArn"], workerName="w"
        )
        assert json.loads(taken["input"]) == {"n": 1}
        await client.send("SendTaskHeartbeat", taskToken=taken["taskToken"])
        await client.send("SendTaskSuccess", taskToken=taken["taskToken"], output='{"done": 2}')
        found = await client.ended(started["executionArn"])
        assert json.loads(found["output"]) == {"done": 2}
        code, _ = await refused(
            client.send("SendTaskSuccess", taskToken=taken["taskToken"], output="1")
        )
        assert code == "TaskTimedOut"

    run(test)


def test_a_state_starts_a_registered_state_machine() -> None:
    async def test(client: Client) -> None:
        inner = await client.machine("inner", ECHO)
        start = {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Parameters": {"StateMachineArn": inner, "Input": {"x": 1}, "Name": "child"},
            "OutputPath": "$.Output.context.Execution",
            "End": True,
        }
        outer = await client.machine("outer", json.dumps({"StartAt": "S", "States": {"S": start}}))
        started = await client.send("StartExecution", stateMachineArn=outer)
        found = json.loads((await client.ended(started["executionArn"]))["output"])
        assert found["Id"] == f"{PREFIX}:execution:inner:child"
        listed = await client.send("ListExecutions", stateMachineArn=inner)
        assert [each["name"] for each in listed["executions"]] == ["child"]

    run(test)


def test_an_express_execution_answers_at_once() -> None:
    async def test(client: Client) -> None:
        machine = await client.machine("fast", ECHO, type="EXPRESS")
        answer = await client.send("StartSyncExecution", stateMachineArn=machine, input="3")
        assert answer["status"] == "SUCCEEDED"
        assert json.loads(answer["output"])["data"] == 3
        assert answer["executionArn"].startswith(f"{PREFIX}:express:fast:")
        assert answer["billingDetails"]["billedDurationInMilliseconds"] == 100
        code, _ = await refused(client.send("ListExecutions", stateMachineArn=machine))
        assert code == "StateMachineTypeNotSupported"

    run(test)


def test_pages_follow_each_other_and_a_token_of_another_list_is_refused() -> None:
    async def test(client: Client) -> None:
        machine, other = await client.machine("m"), await client.machine("other")
        for number in range(5):
            await client.send("StartExecution", stateMachineArn=machine, name=f"e{number}")
        names, token = [], {}
        while True:
            page = await client.send(
                "ListExecutions", stateMachineArn=machine, maxResults=2, **token
            )
            names += [each["name"] for each in page["executions"]]
            if "nextToken" not in page:
                break
            token = {"nextToken": page["nextToken"]}
        assert names == ["e4", "e3", "e2", "e1", "e0"]
        code, _ = await refused(client.send("ListExecutions", stateMachineArn=other, **token))
        assert code == "InvalidToken"

    run(test)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (
            {"name": "", "definition": PASS, "roleArn": ROLE},
            "ValidationException",
            "1 validation error detected: Value '' at 'name' failed to satisfy constraint: Member "
            "must have length greater than or equal to 1",
        ),
        (
            {"name": "m", "definition": PASS},
            "ValidationException",
            "1 validation error detected: Value null at 'roleArn' failed to satisfy constraint: "
            "Member must not be null",
        ),
        (
            {"name": 1, "definition": PASS, "roleArn": ROLE},
            "SerializationException",
            "NUMBER_VALUE can not be converted to a String (at 'name')",
        ),
        (
            {"name": "m", "definition": PASS, "roleArn": ROLE, "type": "FAST"},
            "ValidationException",
            "1 validation error detected: Value 'FAST' at 'type' failed to satisfy constraint: "
            "Member must satisfy enum value set: [STANDARD, EXPRESS]",
        ),
        (
            {"name": "m", "definition": PASS, "roleArn": "me"},
            "InvalidArn",
            "Invalid Role Arn: 'me'",
        ),
        (
            {"name": "m", "definition": "{}", "roleArn": ROLE},
            "InvalidDefinition",
            "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: These fields are "
            "required: [States, StartAt] at /'",
        ),
    ],
)
def test_a_wrong_request_is_refused_in_the_words_of_aws(
    request_: dict[str, Any], code: str, message: str
) -> None:
    async def test(client: Client) -> None:
        assert await refused(client.send("CreateStateMachine", **request_)) == (code, message)

    run(test)


@pytest.mark.parametrize(
    ("operation", "request_", "code", "message"),
    [
        (
            "CreateActivity",
            {"name": "a", "tags": [None]},
            "ValidationException",
            "1 validation error detected: Value null at 'tags.1.member' failed to satisfy "
            "constraint: Member must not be null",
        ),
        (
            "TestState",
            {"definition": '{"Type": "Pass", "End": true}', "context": "[]"},
            "ValidationException",
            "context must be a mapping, not []",
        ),
        (
            "TestState",
            {"definition": '{"Type": "Pass", "Next": {}}'},
            "InvalidDefinition",
            "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: ",
        ),
        (
            "TestState",
            {"definition": '{"Type": "Choice", "Choices": "x", "Default": "D"}'},
            "InvalidDefinition",
            "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: ",
        ),
    ],
)
def test_a_malformed_part_of_a_request_is_refused(
    operation: str, request_: dict[str, Any], code: str, message: str
) -> None:
    async def test(client: Client) -> None:
        found, text = await refused(client.send(operation, **request_))
        assert (found, text[: len(message)]) == (code, message)

    run(test)


def test_pages_of_a_history_have_all_events_once_in_both_orders() -> None:
    """Also those whose token is used twice, and those of a position without an open reader."""
    count = 40
    states: dict[str, Any] = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(count)}
    states[f"S{count}"] = {"Type": "Pass", "End": True}

    async def test(client: Client) -> None:
        machine = await client.machine("m", json.dumps({"StartAt": "S0", "States": states}))
        arn = (await client.send("StartExecution", stateMachineArn=machine))["executionArn"]
        await client.ended(arn)
        whole = (await client.send("GetExecutionHistory", executionArn=arn))["events"]
        assert [event["id"] for event in whole] == [*range(1, 2 * (count + 1) + 3)]
        for backwards in (False, True):
            request = {"executionArn": arn, "reverseOrder": backwards, "maxResults": 7}
            for repeated in (False, True):
                found, token = list[Any](), {}
                while True:
                    page = await client.send("GetExecutionHistory", **request, **token)
                    if repeated:
                        client.service.histories = HistoryPages()
                    found += page["events"]
                    if "nextToken" not in page:
                        break
                    token = {"nextToken": page["nextToken"]}
                    if repeated:
                        await client.send("GetExecutionHistory", **request, **token)
                assert found == (whole[::-1] if backwards else whole)

    run(test)


@pytest.mark.parametrize("position", [-1, 2**70, 1.5, None])
def test_a_token_of_an_impossible_position_is_refused(position: Any) -> None:
    async def test(client: Client) -> None:
        machine = await client.machine("m")
        arn = (await client.send("StartExecution", stateMachineArn=machine))["executionArn"]
        request = {"executionArn": arn, "maxResults": 1}
        await client.ended(arn)
        page = await client.send("GetExecutionHistory", **request)
        _, digest = json.loads(base64.urlsafe_b64decode(page["nextToken"]))
        forged = base64.urlsafe_b64encode(json.dumps([position, digest]).encode()).decode()
        code, _ = await refused(client.send("GetExecutionHistory", **request, nextToken=forged))
        assert code == "InvalidToken"

    run(test)


def test_unknown_members_of_parts_of_a_request_are_ignored() -> None:
    async def test(client: Client) -> None:
        answer = await client.send(
            "TestState",
            definition='{"Type": "Pass", "End": true}',
            stateConfiguration={"retrierRetryCount": None, "unknown": 1},
        )
        assert answer["status"] == "SUCCEEDED"

    run(test)
