"""Statuses of executions and of the workflows that run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from temporalio.client import WorkflowExecutionStatus

__all__ = ["CLOSED", "CONDITIONS"]

CLOSED: Final = {
    WorkflowExecutionStatus.COMPLETED: "SUCCEEDED",
    WorkflowExecutionStatus.FAILED: "FAILED",
    WorkflowExecutionStatus.CANCELED: "ABORTED",
    WorkflowExecutionStatus.TERMINATED: "ABORTED",
    WorkflowExecutionStatus.TIMED_OUT: "TIMED_OUT",
}
"""Status of the execution of a closed workflow."""
CONDITIONS: Final[Mapping[str, str]] = {
    "RUNNING": "ExecutionStatus = 'Running'",
    "PAUSED": "ExecutionStatus = 'Running'",
    "SUCCEEDED": "ExecutionStatus = 'Completed'",
    "FAILED": "ExecutionStatus = 'Failed'",
    "TIMED_OUT": "ExecutionStatus IN ('Failed', 'TimedOut')",
    "ABORTED": "ExecutionStatus IN ('Canceled', 'Terminated')",
}
"""Condition on workflows by status of the execution."""
