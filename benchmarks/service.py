"""The workloads of the service: through boto3, against our endpoint and against moto's server."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from socket import create_server
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.workloads import Sides, Workload

__all__ = ["WORKLOADS"]

ROLE = "arn:aws:iam::123456789012:role/bench"
DEFINITION = json.dumps(
    {
        "StartAt": "S0",
        "States": {
            f"S{index}": {
                "Type": "Pass",
                **({"Next": f"S{index + 1}"} if index < 4 else {"End": True}),
            }
            for index in range(5)
        },
    }
)
"""Five states."""
CALLS = 200
READY = re.compile(r"AWS_ENDPOINT_URL_SFN=(\S+)")


@contextmanager
def ours() -> Iterator[str]:
    """Start our server; yields its URL."""
    command = [sys.executable, "-m", "asl", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := READY.search(line):
                    yield found[1]
                    break
        finally:
            process.terminate()


@contextmanager
def moto() -> Iterator[str]:
    """Start moto's server with executions; yields its URL."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    url = f"http://127.0.0.1:{port}"
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            body = json.dumps({"stepfunctions": {"execute_state_machine": True}}).encode()
            request = Request(f"{url}/moto-api/config", body, {"Content-Type": "application/json"})
            while True:
                try:
                    urlopen(request, timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield url
        finally:
            process.terminate()


def client(url: str) -> Any:
    """Return a client of a server."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "stepfunctions",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="123456789012",
        aws_secret_access_key="secret",
        config=Config(inject_host_prefix=False),
    )


def executed(server: Callable[[], Any], executions: int) -> Callable[[], float]:
    """Return a function that runs executions one after another and returns seconds for each."""

    def run() -> float:
        with server() as url:
            states = client(url)
            machine = states.create_state_machine(name="m", definition=DEFINITION, roleArn=ROLE)
            arn, names = machine["stateMachineArn"], count()
            begun = time.perf_counter()
            for _ in range(executions):
                started = states.start_execution(stateMachineArn=arn, name=f"e{next(names)}")
                while True:
                    found = states.describe_execution(executionArn=started["executionArn"])
                    if found["status"] != "RUNNING":
                        break
            return (time.perf_counter() - begun) / executions

    return run


def compared() -> Sides:
    """Return the seconds of an execution by moto, and by our server."""
    return executed(moto, 20), executed(ours, CALLS), 1


def synchronous() -> Sides:
    """Return the milliseconds allowed, and those that StartSyncExecution takes beyond a request."""

    def run() -> float:
        with ours() as url:
            states = client(url)
            machine = states.create_state_machine(
                name="m", definition=DEFINITION, roleArn=ROLE, type="EXPRESS"
            )
            arn = machine["stateMachineArn"]
            spent: tuple[list[float], list[float]] = [], []
            for _ in range(CALLS):
                for index, call in enumerate(
                    (
                        states.list_activities,
                        lambda: states.start_sync_execution(stateMachineArn=arn),
                    )
                ):
                    begun = time.perf_counter()
                    call()
                    spent[index].append(time.perf_counter() - begun)
            return max(0.0, median(spent[1]) - median(spent[0])) * 1000

    return lambda: 5.0, run, 1


def ready() -> Sides:
    """Return the second allowed, and the time until our server answers."""

    def run() -> float:
        begun = time.perf_counter()
        with ours():
            return time.perf_counter() - begun

    return lambda: 1.0, run, 1


WORKLOADS = (
    Workload("SE", "an execution through boto3; vs moto's server", 0.5, compared, gives="s"),
    Workload("SS", "StartSyncExecution beyond a request; vs 5 ms", 1, synchronous, gives="ms"),
    Workload("SR", "asl serve until it answers; vs 1 s", 1, ready, gives="s"),
)
