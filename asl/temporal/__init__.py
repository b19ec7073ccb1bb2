"""Executions on Temporal: a workflow runs an execution, activities call its agents.

The memory of the workflow holds a store with the execution. Temporal's history makes it durable: a
replay computes the same store again. Answers, cancellations and restarts are those of any store.
"""

from asl.temporal.claim_check import data_converter
from asl.temporal.plugins import plugin

__all__ = ["data_converter", "plugin"]
