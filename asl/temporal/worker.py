"""Workers of Temporal: they run workflows, call agents, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from asl.bindings import Bindings, bind
from asl.core.errors import AslError
from asl.temporal.activities import AgentActivities
from asl.temporal.addresses import TemporalAddress
from asl.temporal.slice_workflow import SliceWorkflow
from asl.temporal.workflow import ExecutionWorkflow

__all__ = ["WORKFLOWS", "connect", "make_worker"]

WORKFLOWS: Final[Sequence[type]] = (ExecutionWorkflow, SliceWorkflow)
"""The workflows of every worker."""


async def connect(address: TemporalAddress) -> Client:
    """Connect to a server.

    Raises:
        AslError: It cannot be reached, or the namespace does not exist.
    """
    try:
        client = await Client.connect(address.target, namespace=address.namespace)
        await client.service_client.check_health()
    except (RPCError, RuntimeError) as error:
        raise AslError(f"cannot reach Temporal at {address}: {error}") from None
    return client


def make_worker(
    client: Client,
    queue: str,
    bindings: Bindings,
    *,
    workflows: bool = True,
    activities: bool = True,
    concurrency: int = 100,
) -> Worker:
    """Return a worker.

    Args:
        client: The client.
        queue: Name of the task queue.
        bindings: What it performs, as for `asl.run`.
        workflows: Whether it runs workflows.
        activities: Whether it calls agents.
        concurrency: Maximum number of calls at the same time.

    Raises:
        AslError: A binding is invalid.
    """
    bind(bindings)
    calls = AgentActivities(bindings)
    return Worker(
        client,
        task_queue=queue,
        workflows=list(WORKFLOWS) if workflows else [],
        activities=[calls.call] if activities else [],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=concurrency if activities else None,
        debug_mode=True,  # a long stretch of pure states is no deadlock
    )
