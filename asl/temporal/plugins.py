"""A plugin for workers of Temporal that run other workflows, too."""

from __future__ import annotations

from typing import Unpack

from temporalio.plugin import SimplePlugin

from asl.bindings import Bindings, bind, refuse_unknown, takes_bindings
from asl.temporal.activities import AgentActivities
from asl.temporal.budgets.activities import BudgetActivities
from asl.temporal.worker import WORKFLOWS

__all__ = ["plugin"]


@takes_bindings
def plugin(**bindings: Unpack[Bindings]) -> SimplePlugin:
    """Return a plugin that lets a worker run executions of documents.

    Pass it in `plugins` of `temporalio.worker.Worker` or of `temporalio.client.Client.connect`.

    Args:
        bindings: What the worker performs, as for `asl.run`.

    Raises:
        AslError: A binding is invalid.
    """
    refuse_unknown(plugin, bindings)
    bind(bindings)
    budgets = BudgetActivities(bindings)
    calls = AgentActivities(bindings, budgets)
    return SimplePlugin(
        "asl",
        workflows=list(WORKFLOWS),
        activities=[*calls.all, *budgets.all],
        run_context=budgets.serving,
    )
