"""Executions that are kept in a store: started once, gone on with after anything that happens.

`store` is the front door, `kept` reads what stands in the file, `running` runs it, `again` lets
begin anew what has ended, `people` takes answers, `requirements` knows which bindings an execution
needs.
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
