"""Workers of Temporal: they run workflows, call agents, or both."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import (
    Interceptor,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
)

from asl import __version__
from asl.bindings import Bindings, bind
from asl.core.errors import AslError
from asl.core.lazy import load_object, wrap_errors
from asl.temporal.activities import AgentActivities
from asl.temporal.addresses import TemporalAddress
from asl.temporal.budgets.activities import BudgetActivities
from asl.temporal.claim_check import data_converter
from asl.temporal.slice_workflow import SliceWorkflow
from asl.temporal.workflow import ExecutionWorkflow

__all__ = ["LIVE", "WORKFLOWS", "connect", "is_gone", "make_worker", "new_identity"]

WORKFLOWS: Final[Sequence[type]] = (ExecutionWorkflow, SliceWorkflow)
"""The workflows of every worker."""
LIVE: Final[set[str]] = set()
"""Identities of the workers of this process."""
IDENTITY: Final = re.compile(r"asl-(\d+)-[0-9a-f]{8}@(.+)")


def new_identity() -> str:
    """Return the identity of a new worker of this process."""
    return f"asl-{os.getpid()}-{os.urandom(4).hex()}@{socket.gethostname()}"


def is_gone(identity: str) -> bool:
    """Return whether a worker has certainly ended; servers list it for some time."""
    found = IDENTITY.fullmatch(identity)
    if found is None or found[2] != socket.gethostname():
        return False
    if int(found[1]) == os.getpid():
        return identity not in LIVE
    processes = Path("/proc")
    return processes.exists() and not (processes / found[1]).exists()


async def connect(address: TemporalAddress) -> Client:
    """Connect to a server.

    TLS and keys are those of the environment and of the configuration file of Temporal's tools.

    Raises:
        AslError: It cannot be reached, or the namespace does not exist.
    """
    try:
        options: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
        options |= {"target_host": address.target, "namespace": address.namespace}
        options["data_converter"] = _converter(address)
        client = await Client.connect(**options)
        request = DescribeNamespaceRequest(namespace=address.namespace)
        await client.workflow_service.describe_namespace(request)
    except (RPCError, RuntimeError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            create = f"temporal operator namespace create -n {address.namespace}"
            raise AslError(
                f"Temporal at {address.target} has no namespace {address.namespace!r}: "
                f"{create!r} creates it"
            ) from None
        raise AslError(
            f"cannot reach Temporal at {address.target}: start it, or correct the address "
            f"({_shortened(str(error))})"
        ) from None
    return client


def _shortened(text: str) -> str:
    return text if len(text) < 200 else f"{text[:200]}..."


def _converter(address: TemporalAddress) -> DataConverter:
    """Return the data converter of an address.

    Raises:
        AslError: There is no such converter or bucket.
    """
    given = DataConverter.default
    if address.converter is not None:
        given = _load_converter(address.converter)
    return data_converter(address.payloads, given)


def _load_converter(place: str) -> DataConverter:
    """Return the data converter at `MODULE:NAME`.

    Raises:
        AslError: There is none.
    """
    with wrap_errors(f"cannot load the converter {place!r}"):
        found = load_object(place)
    if not isinstance(found, DataConverter):
        raise AslError(f"the converter {place!r} must be a temporalio.converter.DataConverter")
    return found


def make_worker(
    client: Client,
    queue: str,
    bindings: Bindings,
    *,
    workflows: bool = True,
    activities: bool = True,
    concurrency: int = 100,
    identity: str | None = None,
    grace: float = 0.0,
    interceptors: Sequence[Interceptor] = (),
    build: str | None = None,
) -> Worker:
    """Return a worker.

    Args:
        client: The client.
        queue: Name of the task queue.
        bindings: What it performs, as for `asl.run`.
        workflows: Whether it runs workflows.
        activities: Whether it calls agents.
        concurrency: Maximum number of calls at the same time.
        identity: Its name in lists; by default process and host.
        grace: Seconds that calls have to end after its stop.
        interceptors: Interceptors of its calls.
        build: Version of the worker in the deployment of the queue; executions stay on their
            version until another one is the current one and they continue as new runs. None for
            a worker without versions.

    Raises:
        AslError: A binding is invalid.
    """
    bind(bindings)
    budgets = BudgetActivities(bindings)
    calls = AgentActivities(bindings, budgets)
    return Worker(
        client,
        task_queue=queue,
        workflows=list(WORKFLOWS) if workflows else [],
        activities=[*(calls.all if activities else ()), *budgets.all],
        no_remote_activities=not activities,
        workflow_runner=UnsandboxedWorkflowRunner(),
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(queue, build or __version__),
            use_worker_versioning=build is not None,
            default_versioning_behavior=(
                VersioningBehavior.UNSPECIFIED if build is None else VersioningBehavior.PINNED
            ),
        ),
        max_concurrent_activities=concurrency if activities else None,
        identity=identity,
        graceful_shutdown_timeout=timedelta(seconds=grace),
        interceptors=interceptors,
        plugins=[SimplePlugin("asl.budgets", run_context=budgets.serving)],
        debug_mode=True,  # a long stretch of pure states is no deadlock
    )
