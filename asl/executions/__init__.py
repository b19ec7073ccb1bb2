"""Executions in a store: started once, and continued after anything that happens.

`store` is the front door and runs executions. Its parts are `base` (the open file), `reader`
(looking), `control` (answers and cancellation) and `maintenance` (deletion, copies, verification).
`kept` reads what is in the file, `running` runs it, `again` begins anew what has ended, `people`
takes answers, `requirements` knows which bindings an execution needs.
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
