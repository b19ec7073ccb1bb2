"""Many executions: the memory of the server stays where it was."""

import asyncio
import gc
import json
import re
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store
from asl.service.service import StatesService
from tests.service.test_operations import ROLE, Client

DEFINITION = json.dumps(
    {
        "StartAt": "One",
        "States": {
            "One": {"Type": "Pass", "Result": {"x": 1}, "Next": "Choose"},
            "Choose": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.x", "NumericEquals": 1, "Next": "Two"}],
                "Default": "Two",
            },
            "Two": {"Type": "Pass", "End": True},
        },
    }
)


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_an_ended_execution_leaves_nothing_in_memory(kind: str, tmp_path: Path) -> None:
    async def executed(client: Client, machine: str, number: int) -> None:
        for _ in range(number):
            await client.send("StartExecution", stateMachineArn=machine)
        while client.service.store.executions(status="RUNNING", limit=1):
            await asyncio.sleep(0.01)

    async def main() -> float:
        file = tmp_path / "runs.db"
        with Store(file, synchronous="OFF", tokens=asl.TaskTokens()) as store:
            async with store.runner():
                client = Client(StatesService(store))
                machine = await client.machine("m", DEFINITION, type=kind)
                tracemalloc.start()
                await executed(client, machine, 200)
                before = _traced()
                await executed(client, machine, 500)
                return (_traced() - before) / 500

    try:
        assert asyncio.run(main()) < 64, "bytes for each execution"
    finally:
        tracemalloc.stop()


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_the_server_needs_no_more_memory_after_100_000_executions(kind: str) -> None:
    pytest.importorskip("uvicorn")
    with server() as (host, resident):
        machine = call(
            host, "CreateStateMachine", name="m", definition=DEFINITION, roleArn=ROLE, type=kind
        )["stateMachineArn"]
        start_many(host, machine, 10_000)
        before = resident()
        start_many(host, machine, 90_000)
        assert resident() - before < 8, "MiB"


@contextmanager
def server() -> Iterator[tuple[str, Any]]:
    """Start a server; yields its address, and a function that returns its memory in MiB."""
    command = [sys.executable, "-m", "asl", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        status = Path(f"/proc/{process.pid}/status")
        if not status.exists():
            pytest.skip("no /proc")

        def resident() -> float:
            found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
            assert found is not None
            return int(found[1]) / 1024

        try:
            for line in process.stderr:
                if found := re.search(r"AWS_ENDPOINT_URL_SFN=http://(\S+)", line):
                    yield found[1], resident
                    break
        finally:
            process.terminate()


def call(host: str, operation: str, **request: Any) -> Any:
    with closing(HTTPConnection(host)) as connection:
        return sent(connection, operation, request)


def sent(connection: HTTPConnection, operation: str, request: Any) -> Any:
    headers = {"X-Amz-Target": f"AWSStepFunctions.{operation}"}
    connection.request("POST", "/", json.dumps(request), headers)
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    return json.loads(body)


def start_many(host: str, machine: str, number: int) -> None:
    """Start executions over eight connections."""
    numbers = count()

    def work() -> None:
        with closing(HTTPConnection(host)) as connection:
            while next(numbers) < number:
                sent(connection, "StartExecution", {"stateMachineArn": machine})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
