"""Calls of agents in activities: limits, cancellation, and workers without the binding."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

import asl
from asl.temporal import activities, remote
from asl.temporal.payloads import BINDING
from asl.temporal.worker import make_worker
from tests.temporal.servers import QUEUE, Server, development, find_binary, run

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""


def call(agent: str, **fields: Any) -> dict[str, Any]:
    """Return a document that calls an agent."""
    state = {"Type": "Task", "Agent": agent, **fields, "End": True}
    return {"StartAt": "Call", "States": {"Call": state}}


async def error_of(handle: WorkflowHandle[Any, Any]) -> str | None:
    """Return the name of the error of an execution."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type


def test_call_has_the_token_of_its_state_and_a_short_message() -> None:
    tokens = list[str]()

    def compare(data: Any, call: asl.Call) -> bool:
        tokens.append(call.token)
        if len(tokens) == 1:
            raise asl.StateError("Again")
        return bool(data == call.token)

    again = [{"ErrorEquals": ["Again"], "IntervalSeconds": 0, "MaxAttempts": 1}]
    state = {"Type": "Task", "Agent": "compare", "InputPath": "$$.Task.Token", "Retry": again}
    inner = {"StartAt": "a/b", "States": {"a/b": {**state, "End": True}}}
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}

    async def scene() -> None:
        async with development({"compare": compare}) as server:
            handle = await server.start({"StartAt": "Each", "States": {"Each": each}}, [1, 2])
            assert await handle.result() == [True, True]
            events = (await handle.fetch_history()).events
            calls = [each.activity_task_scheduled_event_attributes.input for each in events]
            sizes = [len(call.payloads[0].data) for call in calls if call.payloads]
            assert len(sizes) == 3
            assert max(sizes) < 400  # see `USUAL`

    run(scene())
    assert len(set(tokens)) == 3


def test_limits_end_calls() -> None:
    ended = list[str]()

    async def sleep(data: Any, call: asl.Call) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(data)
            raise

    async def beat(data: Any, call: asl.Call) -> str:
        for _ in range(4):
            await asyncio.sleep(0.9)
            call.heartbeat()
        return "alive"

    def block(data: Any) -> None:
        time.sleep(2)

    catch = {"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Caught"}
    caught = call("sleep", HeartbeatSeconds=1, TimeoutSeconds=60, Catch=[catch])
    caught["States"]["Caught"] = {"Type": "Pass", "End": True}

    async def scene() -> None:
        agents = {"sleep": sleep, "beat": beat, "block": block}
        async with development(agents) as server:
            late = await server.start(call("sleep", TimeoutSeconds=1), "late")
            mute = await server.start(caught, "mute")
            alive = await server.start(call("beat", HeartbeatSeconds=3, TimeoutSeconds=60))
            blocked = await server.start(call("block", TimeoutSeconds=1))
            assert await error_of(late) == "States.Timeout"
            assert (await mute.result())["Error"] == "States.Timeout"
            assert await error_of(blocked) == "States.Timeout"
            assert await alive.result() == "alive"

    run(scene())
    assert sorted(ended) == ["late", "mute"]


def test_cancelled_execution_cancels_its_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker's log has no failure."""
    monkeypatch.setattr(remote, "HEARTBEAT", timedelta(seconds=1))
    monkeypatch.setattr(activities, "BEAT", 0.2)

    async def scene() -> None:
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def sleep(data: Any) -> None:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.set()

        async with development({"sleep": sleep}) as server:
            handle = await server.start(call("sleep"))
            await started.wait()
            await handle.cancel()
            async with asyncio.timeout(20):
                await cancelled.wait()

    run(scene())
    assert not [each for each in caplog.records if each.name == "temporalio.activity"]


def test_call_waits_for_a_worker_with_the_binding() -> None:
    async def looks(server: Server, name: str) -> bool:
        history = await server.client.get_workflow_handle(name).fetch_history()
        names = [
            each.activity_task_scheduled_event_attributes.activity_type.name
            for each in history.events
        ]
        return BINDING in names

    async def scene() -> None:
        binary = find_binary("temporal")
        async with await WorkflowEnvironment.start_local(
            dev_server_existing_path=binary, dev_server_log_level="error"
        ) as env:
            server = Server(env.client)
            async with make_worker(env.client, QUEUE, {"agents": {"other": len}}):
                handle = await server.start(call("late"), 1)
                async with asyncio.timeout(20):
                    while not await looks(server, handle.id):
                        await asyncio.sleep(0.05)
            agents = {"late": lambda data: data + 1}
            async with make_worker(env.client, QUEUE, {"agents": agents}):
                assert await handle.result() == 2

    run(scene())
