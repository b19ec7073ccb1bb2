"""Conditions on workflows, in the server's language."""

from __future__ import annotations

from collections.abc import Sequence

from asl.temporal.payloads import EXECUTION

__all__ = ["execution_query", "quoted"]


def quoted(text: str) -> str:
    """Return a text for quotes in the server's language."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def execution_query(queue: str, conditions: Sequence[str]) -> str:
    """Return the condition on the executions of a queue, each by its latest run."""
    own = {"WorkflowType": EXECUTION, "TaskQueue": queue}
    whole = [f"{name} = '{quoted(value)}'" for name, value in own.items()]
    return " AND ".join((*whole, "ExecutionStatus != 'ContinuedAsNew'", *conditions))
