"""What keeps a store from being used."""

from typing import Final

from asl.core.errors import AslError

__all__ = [
    "CLOSED",
    "CONTRADICTED",
    "UNREADABLE",
    "LeaseLost",
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
"""What reading raises for a value that has another shape than what this program writes."""


class StoreError(AslError):
    """The store cannot be used; the text says why and what to do. Nothing acknowledged is lost."""


class LeaseLost(StoreError):
    """This worker was silent for so long that others have taken over what it ran."""


class StoreContradicted(StoreError):
    """Others have written what contradicts a change: this connection takes nothing more."""


class StoreDamaged(StoreError):
    """The store is not what was written; `what` says in which way.

    Args:
        place: The file of the store.
        what: What is damaged.
    """

    def __init__(self, place: object, what: str) -> None:
        super().__init__(f"{place} is damaged: {what}; 'asl doctor --store {place}' says more")
        self.place, self.what = place, what
