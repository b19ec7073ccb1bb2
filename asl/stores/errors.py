"""Errors of stores."""

from typing import Final

from asl.core.errors import AslError

__all__ = [
    "CLOSED",
    "CONTRADICTED",
    "UNREADABLE",
    "ExecutionWaits",
    "LeaseLost",
    "StoreConflict",
    "StoreContradicted",
    "StoreDamaged",
    "StoreError",
]

CLOSED: Final = (
    "the store is closed; open it again (read the events of a result before you close the store, "
    "or later by 'Store.result')"
)
CONTRADICTED: Final = (
    "others have written what contradicts this; it takes nothing more: open it again"
)

UNREADABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions raised by decoding a value of an unexpected shape."""


class StoreError(AslError):
    """The store cannot be used, for the reason in the message; acknowledged changes are safe."""


class ExecutionWaits(StoreError):
    """The execution on a server waits for a worker that makes its calls."""


class LeaseLost(StoreError):
    """The lease of this worker expired, and others run its executions."""


class StoreConflict(StoreError):
    """Another process has changed what the transaction has read: it has to be made again."""


class StoreContradicted(StoreError):
    """Another process wrote a conflicting change; this connection accepts no more writes."""


class StoreDamaged(StoreError):
    """The store is damaged; `what` describes the damage.

    Args:
        place: The file of the store.
        what: What is damaged.
    """

    def __init__(self, place: object, what: str) -> None:
        super().__init__(f"{place} is damaged: {what}; 'asl doctor --store {place}' says more")
        self.place, self.what = place, what
