"""Workers and the server are killed at random; executions go on, and nothing is lost.

`python -m tests.temporal.kills COUNT` kills so often and prints what it found.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

from asl.core.values import Json
from asl.temporal.addresses import TemporalAddress
from asl.temporal.budgets.client import BudgetClient
from asl.temporal.payloads import CALL, unpack_call
from asl.temporal.worker import connect
from tests.temporal.servers import QUEUE, Server, find_binary, run

WORK: Any = {"Type": "Task", "Agent": "work", "End": True}
PAY: Any = {"Type": "Task", "Agent": "pay", "ResultPath": None}
POOL: Any = {"Pool": "p", "MaxFromPool": 9, "ReleaseOnComplete": True, "OnExceed": "Continue"}
RETRY: Any = [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "MaxAttempts": 20, "BackoffRate": 1}]
DOCUMENT: Any = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Task", "Agent": "work", "Next": "Pay"},
        "Pay": {**PAY, "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ResultPath": "$.items",
            "ItemProcessor": {
                "StartAt": "Pair",
                "States": {
                    "Pair": {
                        "Type": "Map",
                        "ItemProcessor": {
                            "StartAt": "Try",
                            "States": {
                                "Try": {
                                    "Type": "Task",
                                    "Agent": "flaky",
                                    "Retry": RETRY,
                                    "End": True,
                                }
                            },
                        },
                        "End": True,
                    }
                },
            },
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "ResultPath": "$.both",
            "Branches": [
                {
                    "StartAt": "Wait",
                    "States": {
                        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Then"},
                        "Then": WORK | {"InputPath": "$.name"},
                    },
                },
                {
                    "StartAt": "Ask",
                    "States": {
                        "Ask": {
                            "Type": "Approval",
                            "Prompt": "?",
                            "OutputPath": "$.approval",
                            "End": True,
                        }
                    },
                },
            ],
            "Next": "Child",
        },
        "Child": {
            "Type": "Workflow",
            "WorkflowId": "child",
            "InputPath": "$.items",
            "ResultPath": "$.child",
            "Next": "Start",
        },
        "Start": {
            "Type": "Task",
            "Resource": "arn:aws:states:::states:startExecution",
            "Parameters": {
                "StateMachineArn": "child",
                "Name.$": "States.Format('{}-started', $.name)",
                "Input.$": "$.items",
            },
            "ResultPath": None,
            "Next": "Last",
        },
        "Last": WORK,
    },
}
CHILD: Any = {
    "StartAt": "Pay",
    "States": {
        "Pay": {**PAY, "Next": "Wait"},
        "Wait": {"Type": "Wait", "Seconds": 1, "Next": "Work"},
        "Work": WORK,
    },
}
"""The workflow of executions that others start."""
UPDATE_FAILURES = (WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError)


class Cluster:
    """A development server with its database in a file, and worker processes.

    Args:
        folder: Folder of the database.
        count: Number of workers.
    """

    def __init__(self, folder: Path, count: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self._database = folder / "temporal.db"
        self._log = (folder / "workers.log").open("w")
        self._server = self._start_server()
        self._workers = [self._start_worker() for _ in range(count)]

    def _start_server(self) -> subprocess.Popen[bytes]:
        command = [find_binary("temporal"), "server", "start-dev", "--headless", "--port"]
        command += [self.port, "--db-filename", str(self._database), "--log-level", "never"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.temporal.kill_worker", self.port]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill_worker(self) -> None:
        """Kill a worker and start another one."""
        at = random.randrange(len(self._workers))
        self._workers[at].send_signal(signal.SIGKILL)
        self._workers[at].wait()
        self._workers[at] = self._start_worker()

    def restart_server(self) -> None:
        """Kill the server and start it again on its database."""
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()
        self._server = self._start_server()

    def close(self) -> None:
        """End all processes."""
        for each in (*self._workers, self._server):
            each.send_signal(signal.SIGKILL)
            each.wait()
        self._log.close()

    async def client(self) -> Client:
        """Return a client of the server once it is there."""
        async with asyncio.timeout(30):
            while True:
                with suppress(Exception):
                    return await connect(TemporalAddress(f"127.0.0.1:{self.port}"))
                await asyncio.sleep(0.2)


def input_of(number: int) -> Json:
    """Return the input of an execution."""
    return {"name": f"n{number}", "items": [[number, 1], [number, 2], [number, 3]]}


def output_of(number: int) -> Json:
    """Return the output of an execution."""
    data = input_of(number)
    return {**data, "both": [f"n{number}", "approve"], "child": data["items"]}


async def finish(handle: WorkflowHandle[Any, Any], answered: bool = False) -> Json:
    """Answer the request of an execution, unless it is *answered*, and return its output.

    A server that dies forgets updates, so each is sent until its result has come.
    """
    request = f"arn:aws:states:us-east-1:111111111111:execution:workflow:{handle.id}"
    request += ":/Both@3.0[1]/Ask@0.0"
    message = {"request": request, "answer": '{"approval": "approve"}', "given": 0.0}
    task = asyncio.current_task()
    while task is None or not task.cancelling():
        if not answered:
            with suppress(RPCError, TimeoutError, RuntimeError, *UPDATE_FAILURES):
                async with asyncio.timeout(5):
                    await handle.execute_update("asl.answer", message)
                    answered = True
        with suppress(RPCError, TimeoutError, RuntimeError):
            async with asyncio.timeout(10 if answered else 1):
                return await handle.result()
    raise asyncio.CancelledError


async def answers_twice(server: Server, name: str) -> list[str]:
    """Return the calls whose answers are in the histories of an execution more than once."""
    seen: Counter[str] = Counter()
    run_id: str | None = (await server.client.get_workflow_handle(name).describe()).run_id
    converter = server.client.data_converter.payload_converter
    while run_id:
        handle = server.client.get_workflow_handle(name, run_id=run_id)
        events = (await handle.fetch_history()).events
        calls: dict[int, str] = {}
        for event in events:
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                scheduled = event.activity_task_scheduled_event_attributes
                if scheduled.activity_type.name != CALL:
                    continue
                message = unpack_call(converter.from_payloads(scheduled.input.payloads)[0])
                calls[event.event_id] = f"{message['key']} {message['retries']}"
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                done = event.activity_task_completed_event_attributes
                seen[calls.get(done.scheduled_event_id, "")] += 1
        del seen[""]
        run_id = events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return [call for call, count in seen.items() if count > 1]


class Outcome(NamedTuple):
    """What a scene has led to."""

    executions: int
    workers: int
    """Number of killed workers."""
    servers: int
    """Number of killed servers."""
    seconds: float


async def scene(
    folder: Path,
    kills: int,
    executions: int,
    pause: float,
    workers: int = 3,
    budget: Mapping[str, Json] = POOL,
) -> Outcome:
    """Run executions while workers, and each tenth time the server, are killed.

    Args:
        folder: Folder of the database.
        kills: Number of processes to kill.
        executions: Number of executions.
        pause: Seconds between two kills, on average.
        workers: Number of workers.
        budget: Budget of the executions and of those that they start; empty for none.

    Raises:
        AssertionError: An output is wrong, an answer was recorded twice, or the pool has another
            spending.
        TimeoutError: An execution does not end.
    """
    cluster, began = Cluster(folder, workers), perf_counter()
    try:
        server = Server(await cluster.client())
        limits = {"Budget": budget} if budget else {}
        document, workflows = DOCUMENT | limits, {"child": CHILD | limits}
        handles = [
            await server.start(document, input_of(number), f"n{number}", workflows=workflows)
            for number in range(executions)
        ]
        ends = [asyncio.create_task(finish(handle)) for handle in handles]
        for kill in range(1, kills + 1):
            await asyncio.sleep(random.uniform(0, 2 * pause))
            if kill % 10 == 2:
                cluster.restart_server()
            else:
                cluster.kill_worker()
        names = [each.id for each in handles]
        started = [server.client.get_workflow_handle(f"{name}-started") for name in names]
        async with asyncio.timeout(120 + 3 * executions):
            outputs = await asyncio.gather(*ends)
            others = await asyncio.gather(*(finish(each, True) for each in started))
        assert outputs == [output_of(number) for number in range(executions)]
        assert others == [input_of(number)["items"] for number in range(executions)]
        for name in (*names, *(each.id for each in started)):
            assert await answers_twice(server, name) == []
        budgets = BudgetClient(server.client, QUEUE)
        values = await budgets.values()
        await budgets.close()
        spent = {"0": str(3 * executions)}  # each, its child and the one that it starts
        assert values == ({"Pool p": {"spent": spent, "open": {}}} if budget else {})
        servers = (kills + 8) // 10
        return Outcome(executions, kills - servers, servers, perf_counter() - began)
    finally:
        cluster.close()


def main(count: str = "200") -> None:
    """Kill so often, while a fifth as many executions run."""
    kills = int(count)
    with TemporaryDirectory() as folder:
        found = run(scene(Path(folder), kills, max(1, kills // 5), 1.5))
    print(
        f"{found.executions} executions right, {found.workers} workers and {found.servers} "
        f"servers killed in {found.seconds:.0f} s"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
