"""Durable executions in a store.

`store` is the public class. Its parts are `base` (the open store), `reader` (results and
histories), `control` (answers, task tokens, cancellation) and `maintenance` (deletion, copies,
verification). `execution_reader` reads stored executions, `executor` runs them, `redrive` restarts
those that ended, `fork` starts new ones from a visit, `runner` runs all that are due, `approvals`
records answers, `requirements` determines the bindings that an execution needs.
"""

from asl.executions.errors import (
    BindingsMissing,
    ExecutionBusy,
    ExecutionExists,
    ExecutionNotFound,
    ExecutionNotRedrivable,
    RequestNotFound,
)
from asl.executions.store import Store, open_store

__all__ = [
    "BindingsMissing",
    "ExecutionBusy",
    "ExecutionExists",
    "ExecutionNotFound",
    "ExecutionNotRedrivable",
    "RequestNotFound",
    "Store",
    "open_store",
]
