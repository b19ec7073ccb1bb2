"""The size of values that Temporal takes."""

from __future__ import annotations

from typing import Final

from asl.core.errors import StateError
from asl.core.values import Json, measure

__all__ = ["MAX_SIZE", "check_size"]

MAX_SIZE: Final = 1_500_000
"""Maximum size of a value in bytes; Temporal refuses payloads of 2 MB."""


def check_size(value: Json, what: str) -> None:
    """Check that a value fits into a history.

    Args:
        value: The value.
        what: What it is, for the message.

    Raises:
        StateError: `States.DataLimitExceeded`; it does not.
    """
    if measure(value, MAX_SIZE) > MAX_SIZE:
        raise StateError(
            "States.DataLimitExceeded",
            f"{what} takes more than {MAX_SIZE} bytes, which Temporal refuses: put it into an "
            "object store and pass its key",
        )
