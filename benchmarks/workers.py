"""What workers bring, how soon they take up an answer, and what they cost while all waits."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asl
from benchmarks.durability import ASKING
from benchmarks.workloads import Sides, Workload, program

__all__ = ["WORKLOADS", "work"]

Json = Any

EXECUTIONS, STEPS, WORKERS = 2_000, 5, 4
SPEEDUP = 0.67 if (os.cpu_count() or 1) > WORKERS else 1.3
"""Time of the workers against one; with fewer processors than workers no more than a guard."""
WAITING = 10_000
ANSWERS = 50
WORKER = (sys.executable, "-m", "asl", "worker", "--quiet", "--agent", "W=benchmarks.workers:work")


async def work(payload: Json) -> Json:
    """Do nothing, as an agent."""
    return {"seen": True}


def _steps() -> Json:
    states = {
        f"S{i}": {
            "Type": "Task",
            "Agent": "W",
            **({"Next": f"S{i + 1}"} if i < STEPS - 1 else {"End": True}),
        }
        for i in range(STEPS)
    }
    return {"StartAt": "S0", "States": states}


@contextmanager
def _workers(store: asl.Store, count: int) -> Iterator[None]:
    """Let so many processes work on a store."""
    with ExitStack() as running:
        for _ in range(count):
            process = subprocess.Popen([*WORKER, "--store", str(store.path)])
            running.callback(process.wait)
            running.callback(process.terminate)
        while len(store.workers()) < count:
            time.sleep(0.05)
        yield


def _seconds(workers: int, executions: int) -> float:
    """Return the seconds that workers need for executions that are there at once."""
    document = program(_steps())

    async def start(store: asl.Store) -> None:
        await asyncio.gather(*(store.astart(document, {}) for _ in range(executions)))

    with asl.open_store(Path(tempfile.mkdtemp()) / "runs.db") as store, _workers(store, workers):
        begun = time.perf_counter()
        asyncio.run(start(store))
        while len(store.executions(status="SUCCEEDED", limit=executions)) < executions:
            time.sleep(0.02)
        return time.perf_counter() - begun


def shared(executions: int) -> Callable[[], Sides]:
    """Compare one worker with four, each a process."""
    return lambda: (
        lambda: _seconds(1, executions),
        lambda: _seconds(WORKERS, executions),
        1,
    )


def answered() -> Sides:
    """Milliseconds from an answer to the start of the next step, in another process."""
    document = program(
        {
            "StartAt": "Ask",
            "States": {
                "Ask": {"Type": "Approval", "Prompt": "Go on?", "Next": "Do"},
                "Do": {"Type": "Task", "Agent": "W", "End": True},
            },
        }
    )

    def ours() -> float:
        with asl.open_store(Path(tempfile.mkdtemp()) / "runs.db") as store, _workers(store, 1):
            return statistics.median(_latency(store, document) for _ in range(ANSWERS))

    return lambda: 50.0, ours, 1


def _latency(store: asl.Store, document: Any) -> float:
    handle = store.start(document, {})
    while handle.status() != "PAUSED":
        time.sleep(0.005)
    begun = time.time()
    handle.answer(str(handle.pending()[0]["requestId"]), "approve", by="ann")
    handle.result(timeout=30)
    scheduled = [each for each in store.events(handle.name) if each.type == "TaskScheduled"]
    return (scheduled[0].timestamp - begun) * 1000


def idle() -> Sides:
    """Per cent of a processor that a worker takes while 10,000 executions wait."""
    document = program(ASKING)

    async def wait(store: asl.Store) -> None:
        for _ in range(WAITING // 100):
            await asyncio.gather(*(store.arun(document, {}) for _ in range(100)))

    async def rest(store: asl.Store) -> float:
        async with store.runner(agents={"W": work}):
            await asyncio.sleep(1)
            begun, spent = time.perf_counter(), time.process_time()
            await asyncio.sleep(5)
            return 100 * (time.process_time() - spent) / (time.perf_counter() - begun)

    def ours() -> float:
        path = Path(tempfile.mkdtemp()) / "runs.db"
        with asl.open_store(path, synchronous="OFF") as store:
            asyncio.run(wait(store))
            return asyncio.run(rest(store))

    return lambda: 1.0, ours, 1


WORKLOADS = (
    Workload(
        "WK",
        "2,000 executions of 5 steps, 4 workers; vs 1 worker",
        SPEEDUP,
        shared(EXECUTIONS),
        gives="s",
        quick=shared(EXECUTIONS // 10),
    ),
    Workload("WA", "from an answer to the next step; vs 50 ms", 1, answered, gives="ms"),
    Workload("WI", "a worker while 10,000 executions wait; vs 1 %", 1, idle, gives="%"),
)
