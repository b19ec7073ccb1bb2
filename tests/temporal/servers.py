"""Servers of Temporal with a worker in this process, and what runs on them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, distribution
from time import perf_counter
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

import asl
from asl.core.values import Json
from asl.executions.execution_start import ExecutionStart
from asl.temporal.payloads import EXECUTION, start_message
from asl.temporal.worker import make_worker

QUEUE: Final = "tests"


def find_binary(name: str) -> str:
    """Return the path of a server, or skip the test."""
    try:
        files = distribution(f"{name}-bin").files or []
    except PackageNotFoundError:
        files = []
    found = next((each.locate() for each in files if each.name == name), None)
    if found is None:
        pytest.skip(f"{name} is not installed: pip install -e '.[dev]'")
    return str(found)


class Run(NamedTuple):
    """One run of a workflow, as its history has it."""

    events: int
    """Number of events."""
    bytes: int
    """Size of the history."""
    input: int
    """Size of the input in bytes."""


class Server:
    """A server with a worker.

    Args:
        client: A client of the server.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    async def start(
        self,
        document: Mapping[str, Any],
        data: Json = None,
        name: str | None = None,
        workflows: Mapping[str, Json] | None = None,
    ) -> WorkflowHandle[Any, Any]:
        """Start an execution; *workflows* are the documents that it may start."""
        new = ExecutionStart(name, asl.compile(dict(document)), {} if data is None else data)
        message = start_message(new, bindings={"workflows": dict(workflows or {})})
        return await self.client.start_workflow(
            EXECUTION,
            message,
            id=name or uuid4().hex,
            task_queue=QUEUE,
            execution_timeout=timedelta(days=3650),  # without it the server has one of its own
        )

    async def run(self, document: Mapping[str, Any], data: Json = None) -> Measured:
        """Run an execution and return its output, its runs and its time."""
        began = perf_counter()
        handle = await self.start(document, data)
        output = await handle.result()
        return Measured(output, await self.runs(handle.id), perf_counter() - began)

    async def runs(self, name: str) -> list[Run]:
        """Return the runs of a workflow, the oldest first."""
        found, run = list[Run](), None
        while True:
            handle = self.client.get_workflow_handle(name, run_id=run)
            if run is None:
                run = (await handle.describe()).run_id
                handle = self.client.get_workflow_handle(name, run_id=run)
            history = await handle.fetch_history()
            first = history.events[0].workflow_execution_started_event_attributes
            size = sum(each.ByteSize() for each in history.events)
            given = sum(len(each.data) for each in first.input.payloads)
            found.insert(0, Run(len(history.events), size, given))
            assert history.events[0].event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
            run = first.continued_execution_run_id
            if not run:
                return found


class Measured(NamedTuple):
    """An execution that has ended."""

    output: Any
    runs: list[Run]
    seconds: float


@asynccontextmanager
async def skipping(agents: Mapping[str, Any], **options: Any) -> AsyncIterator[Server]:
    """Start a server whose time jumps over waits, and a worker."""
    binary = find_binary("temporal-test-server")
    async with (
        await WorkflowEnvironment.start_time_skipping(test_server_existing_path=binary) as env,
        make_worker(env.client, QUEUE, {"agents": dict(agents)}, **options),
    ):
        yield Server(env.client)


@asynccontextmanager
async def development(agents: Mapping[str, Any], **options: Any) -> AsyncIterator[Server]:
    """Start a development server, and a worker."""
    binary = find_binary("temporal")
    async with (
        await WorkflowEnvironment.start_local(
            dev_server_existing_path=binary, dev_server_log_level="error"
        ) as env,
        make_worker(env.client, QUEUE, {"agents": dict(agents)}, **options),
    ):
        yield Server(env.client)


def run(work: Any) -> Any:
    """Run a coroutine to its end."""
    try:
        return asyncio.run(work)
    finally:
        gc.collect()  # Python 3.11 fails if coroutines of workflows end while it parses a module
