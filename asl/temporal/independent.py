"""Executions that states start without waiting for them: workflows of their own."""

from __future__ import annotations

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from asl.core.values import Json
from asl.effects.child_execution import StartRequest
from asl.executions.execution_start import ExecutionStart
from asl.program import Program
from asl.stores.executions import UNREGISTERED, StoredExecution
from asl.temporal.machines import RegisteredMachines
from asl.temporal.payloads import EXECUTION, Memo, StartMessage, pack, start_message
from asl.temporal.remote import CallGate, RemoteRegistry
from asl.temporal.sizes import check_length

__all__ = ["ExecutionStarter"]


class ExecutionStarter:
    """Starts executions for which no state waits, as workflows of their own.

    Args:
        gate: Admits the starts.
        bindings: The bindings of the workflow that starts them, as JSON text.

    Attributes:
        machines: The registered state machines.
    """

    def __init__(self, gate: CallGate, bindings: str) -> None:
        self._gate = gate
        self._bindings = bindings
        self.machines = RegisteredMachines(RemoteRegistry(gate).find)

    async def start(self, program: Program, request: StartRequest) -> bool:
        """Start an execution; return False if its name is in use.

        Raises:
            StateError: `States.DataLimitExceeded`; its input is too large.
            Suspension: The next run of the workflow starts it.
        """
        origin = self.machines.origin(request)
        name = request.name if origin is UNREGISTERED else request.id
        new = ExecutionStart(
            name, program, request.data, request.express, request.requestor, origin
        )
        message = start_message(new)
        check_length(message["input"], f"the input of the execution {request.name!r}")
        memo = Memo(workflow=program.name, started=workflow.time(), origin=[*origin])
        async with self._gate:
            return await self._start(name, memo, message)

    async def hand_over(self, stored: StoredExecution, content: Json) -> bool:
        """Let a workflow of its own continue an execution; return False if its name is in use."""
        message = StartMessage(content=pack(content))
        memo = Memo(workflow=stored.workflow, started=stored.started)
        return await self._start(stored.name, memo, message)

    async def _start(self, name: str, memo: Memo, message: StartMessage) -> bool:
        memo |= {"status": "RUNNING", "bucket": workflow.memo_value("bucket", False)}
        try:
            await workflow.start_child_workflow(
                EXECUTION,
                {**message, "bindings": self._bindings},
                id=name,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                memo=memo,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True
