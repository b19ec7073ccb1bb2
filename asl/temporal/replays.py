"""The state of an execution, computed from the history of its workflow where no worker answers."""

from __future__ import annotations

from asyncio import Lock
from typing import Final

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import (
    Replayer,
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)

from asl.core.values import Json
from asl.stores.errors import StoreError
from asl.temporal.workflow import ExecutionWorkflow

__all__ = ["replayed_execution"]

_REPLAYING: Final = Lock()
"""Held while a replay collects its workflow."""


class _CapturingRunner(UnsandboxedWorkflowRunner):
    """Runs a workflow in a replay, and captures its execution before it is evicted.

    Args:
        name: Name of the execution.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._flow: ExecutionWorkflow | None = None
        self.content: Json = None
        """The exported execution."""

    def see(self, flow: ExecutionWorkflow) -> None:
        """Note a workflow that begins; workers of this process begin others."""
        if flow.name == self._name:
            self._flow = flow

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return the instance of the workflow."""
        instance = super().create_instance(det)
        activate = instance.activate

        def capture(activation: WorkflowActivation) -> WorkflowActivationCompletion:
            if any(job.HasField("remove_from_cache") for job in activation.jobs) and self._flow:
                self.content = self._flow.content()  # an eviction cancels the execution
            return activate(activation)

        instance.activate = capture  # type: ignore[method-assign, assignment]
        return instance


async def replayed_execution(history: WorkflowHistory, converter: DataConverter) -> Json:
    """Return the exported execution of a workflow, with the answers that no worker has seen.

    Raises:
        StoreError: The history cannot be replayed by this version.
    """
    runner = _CapturingRunner(history.workflow_id)
    replayer = Replayer(
        workflows=[ExecutionWorkflow],
        unsandboxed_workflow_runner=runner,
        data_converter=converter,
        debug_mode=True,
    )
    async with _REPLAYING:
        ExecutionWorkflow.on_start = runner.see
        try:
            replay = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        finally:
            ExecutionWorkflow.on_start = None
    if replay.replay_failure is not None or runner.content is None:
        raise StoreError(
            f"this version of asl cannot replay the execution {history.workflow_id!r}: start a "
            f"worker of the version that runs it ({replay.replay_failure})"
        )
    return runner.content
