"""Clients that poll for tasks of activities: their order, and those that disconnect."""

import asyncio
import json
import re
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.service.operations import perform
from tests.service.test_operations import SCOPE, Client, run

TARGET = b"X-Amz-Target: AWSStepFunctions.GetActivityTask\r\n"


async def activity_and_machine(client: Client) -> tuple[str, str]:
    activity = (await client.send("CreateActivity", name="work"))["activityArn"]
    task = {"Type": "Task", "Resource": activity, "End": True}
    machine = await client.machine("m", json.dumps({"StartAt": "T", "States": {"T": task}}))
    return activity, machine


def test_the_poll_that_has_waited_longest_gets_the_next_task() -> None:
    async def test(client: Client) -> None:
        activity, machine = await activity_and_machine(client)
        polls = [
            asyncio.create_task(client.send("GetActivityTask", activityArn=activity))
            for _ in range(3)
        ]
        await asyncio.sleep(0)
        for number, poll in enumerate(polls):
            await client.send("StartExecution", stateMachineArn=machine, input=str(number))
            assert (await poll)["input"] == str(number)

    run(test)


def test_a_client_that_has_gone_away_gets_no_task() -> None:
    gone = asyncio.Event()

    async def is_gone() -> bool:
        return gone.is_set()

    async def test(client: Client) -> None:
        activity, machine = await activity_and_machine(client)
        scope = SCOPE._replace(is_disconnected=is_gone)
        request = {"activityArn": activity}
        first = asyncio.create_task(perform(client.service, "GetActivityTask", request, scope))
        second = asyncio.create_task(client.send("GetActivityTask", activityArn=activity))
        await asyncio.sleep(0)
        gone.set()
        await client.send("StartExecution", stateMachineArn=machine, input="1")
        assert await first == {}
        assert (await second)["input"] == "1"

    run(test)


@pytest.mark.parametrize("number", [50, pytest.param(1000, marks=pytest.mark.full)])
def test_polls_of_many_clients_hold_nobody_up(number: int) -> None:
    """Half of them go away; as many tasks as are left reach the others."""
    pytest.importorskip("uvicorn")
    from asl.service.http import AwsEndpoint, aws_application
    from asl.service.server import serving
    from asl.service.service import StatesService

    async def test(host: str, port: str) -> list[Any]:
        async def connect(operation: bytes, **request: Any) -> Any:
            reader, writer = await asyncio.open_connection(host, int(port))
            body = json.dumps(request).encode()
            target = TARGET.replace(b"GetActivityTask", operation)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n%s" % target)
            writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            return reader, writer

        async def answer(connection: Any) -> Any:
            reader, writer = connection
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert found is not None
            body = await reader.readexactly(int(found[1]))
            writer.close()
            return json.loads(body)

        async def send(operation: bytes, **request: Any) -> Any:
            return await answer(await connect(operation, **request))

        role = "arn:aws:iam::123456789012:role/any"
        activity = (await send(b"CreateActivity", name="work"))["activityArn"]
        task = {"Type": "Task", "Resource": activity, "End": True}
        definition = json.dumps({"StartAt": "T", "States": {"T": task}})
        made = await send(b"CreateStateMachine", name="m", definition=definition, roleArn=role)
        polls = [await connect(b"GetActivityTask", activityArn=activity) for _ in range(number)]
        assert len((await send(b"ListActivities"))["activities"]) == 1
        gone, left = polls[: number // 2], polls[number // 2 :]
        for _, writer in gone:
            writer.transport.abort()
        for index in range(len(left)):
            arn = made["stateMachineArn"]
            await send(b"StartExecution", stateMachineArn=arn, input=str(index))
        return [await answer(each) for each in left]

    with (
        Store("memory:", tokens=asl.TaskTokens()) as store,
        serving(aws_application(AwsEndpoint(StatesService(store)))) as url,
    ):
        found = asyncio.run(test(*url.removeprefix("http://").split(":")))
        assert sorted(int(each["input"]) for each in found) == list(range(number // 2))
