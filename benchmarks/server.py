"""The workloads of the service for people: live streams, requests and answers."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.workloads import Sides, Workload

__all__ = ["WORKLOADS"]

SERVER = """
import asyncio, resource, asl, asl.server
from asl.service.server import bind_socket, run_server

async def work(data):
    await asyncio.sleep(0.06)
    return data

application = asl.server.app(asl.Store("memory:", agents={"Work": work}), local=True)
listener = bind_socket("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
try:
    run_server(application, listener)
except KeyboardInterrupt:
    pass
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, flush=True)
"""
WATCHERS = 200
ITEMS = 40
REQUESTS = 10_000
PAGES = 20
ANSWERS = 20


class Server:
    """A service in a process of its own.

    Attributes:
        port: Its port.
        seconds: Processor time that it has used, after its end.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.port = int(process.stdout.readline())
        self.seconds = 0.0

    def call(self, path: str, body: Any = None) -> Any:
        """Return the answer to a request; with a body it is a POST."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", data, headers)
        with urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def start(self, states: dict[str, Any], data: Any) -> str:
        """Start an execution of a document and return its key."""
        document = json.dumps({"StartAt": next(iter(states)), "States": states})
        key: str = self.call("executions", {"text": document, "input": data})["id"]
        return key


@contextmanager
def served() -> Iterator[Server]:
    """Start a service."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        server = Server(process)
        try:
            yield server
        finally:
            process.send_signal(2)
            assert process.stdout is not None
            server.seconds = float(process.stdout.read())


def each_item(state: dict[str, Any], concurrency: int) -> dict[str, Any]:
    """Return the states of a Map over the input."""
    inner = {"StartAt": "Item", "States": {"Item": {**state, "End": True}}}
    kind = {"Type": "Map", "ItemsPath": "$", "MaxConcurrency": concurrency, "End": True}
    return {"Items": {**kind, "ItemProcessor": inner}}


async def watched(port: int, key: str) -> int:
    """Read a stream to its end and return the number of its events."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET /api/v1/executions/{key}/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    )
    events = 0
    while (line := await reader.readline()) and not line.startswith(b"event: end"):
        events += line.startswith(b"id:")
    writer.close()
    return events


def watchers() -> Sides:
    """Return the milliseconds of a core allowed for an event, and those of 200 watchers."""

    def used(number: int) -> tuple[float, int]:
        async def scenario(server: Server) -> int:
            key = server.start(each_item({"Type": "Task", "Agent": "Work"}, 1), [0] * ITEMS)
            return max(await asyncio.gather(*(watched(server.port, key) for _ in range(number))))

        with served() as server:
            events = asyncio.run(scenario(server))
        return server.seconds, events

    def run() -> float:
        (alone, _), (all_of_them, events) = used(1), used(WATCHERS)
        return (all_of_them - alone) / events * 1000

    return lambda: 2.0, run, 1


def listed() -> Sides:
    """Return the milliseconds allowed for a page of 10,000 open requests, and the median."""

    def run() -> float:
        approval = {"Type": "Approval", "Prompt": "Go?", "Options": ["go", "stop"]}
        spent, after = [], ""
        with served() as server:
            key = server.start(each_item(approval, 0), [0] * REQUESTS)
            while server.call(f"executions/{key}")["status"] != "PAUSED":
                time.sleep(0.2)
            for _ in range(PAGES):
                begun = time.perf_counter()
                page = server.call(f"requests?limit=50{after}")
                spent.append(time.perf_counter() - begun)
                after = f"&after={page['next']}"
        return median(spent) * 1000

    return lambda: 50.0, run, 1


def answered() -> Sides:
    """Return the milliseconds allowed from an answer to the next state, and the median."""

    def run() -> float:
        states = {
            "Ask": {"Type": "Approval", "Prompt": "Go?", "Options": ["go"], "Next": "Done"},
            "Done": {"Type": "Pass", "End": True},
        }
        spent = []
        with served() as server:
            for _ in range(ANSWERS):
                key = server.start(states, {})
                while not (found := server.call("requests")["requests"]):
                    time.sleep(0.01)
                begun = time.perf_counter()
                server.call(f"requests/{found[0]['id']}/answer", {"approval": "go"})
                while server.call(f"executions/{key}")["status"] != "SUCCEEDED":
                    pass
                spent.append(time.perf_counter() - begun)
        return median(spent) * 1000

    return lambda: 50.0, run, 1


def shown(items: int, allowed: float) -> Callable[[], Sides]:
    """Return the sides of the page of an execution with six events for each item, in a browser.

    Args:
        items: Number of items of its Map.
        allowed: Seconds allowed until the first event is shown.
    """

    def run() -> float:
        from playwright.sync_api import sync_playwright

        with served() as server, sync_playwright() as driver:
            key = server.start(each_item({"Type": "Pass"}, 0), [0] * items)
            while server.call(f"executions/{key}")["status"] != "SUCCEEDED":
                time.sleep(0.1)
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            page = browser.new_page()
            url = f"http://127.0.0.1:{server.port}/ui/executions"
            page.goto(url)
            begun = time.perf_counter()
            page.goto(f"{url}/{key}", wait_until="load")
            page.locator(".event", has_text="ExecutionStarted").wait_for()
            spent = time.perf_counter() - begun
            browser.close()
            return spent

    return lambda: (lambda: allowed, run, 1)


WORKLOADS = (
    Workload("LW", "an event for 200 watchers; vs 2 ms of a core", 1, watchers, gives="ms"),
    Workload("LQ", "a page of 10,000 open requests; vs 50 ms", 1, listed, gives="ms"),
    Workload("LA", "an answer until the next state; vs 50 ms", 1, answered, gives="ms"),
    Workload("LP", "a page with 1,000 events; vs 1 s", 1, shown(250, 1.0), gives="s"),
    Workload("LX", "a page with 25,000 events; vs 3 s", 1, shown(6250, 3.0), gives="s"),
)
