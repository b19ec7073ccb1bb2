"""Workflows as one writes them for Temporal by hand: activities in a row, and for each item."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from benchmarks.workloads import echo

__all__ = ["make_worker_by_hand"]

Json = Any
LIMIT = timedelta(seconds=60)
AT_ONCE = 500
"""Activities at the same time; the server refuses more than 2,000."""


@activity.defn(name="work")
async def work(payload: Json) -> Json:
    """Do what the agent does."""
    return await echo(payload)


@workflow.defn(name="Steps", sandboxed=False)
class Steps:
    """Activities in a row."""

    @workflow.run
    async def run(self, count: int) -> Json:
        """Call so many activities, each with the result of the one before."""
        value: Json = {}
        for _ in range(count):
            value = await workflow.execute_activity("work", value, start_to_close_timeout=LIMIT)
        return value


@workflow.defn(name="Each", sandboxed=False)
class Each:
    """An activity for each item."""

    @workflow.run
    async def run(self, items: list[Json]) -> list[Json]:
        """Call an activity for each item."""
        window = asyncio.Semaphore(AT_ONCE)

        async def one(item: Json) -> Json:
            async with window:
                return await workflow.execute_activity("work", item, start_to_close_timeout=LIMIT)

        return list(await asyncio.gather(*map(one, items)))


def make_worker_by_hand(client: Client) -> Worker:
    """Return the worker of these workflows."""
    return Worker(
        client,
        task_queue="by hand",
        workflows=[Steps, Each],
        activities=[work],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=100,
    )
