"""The size of values that Temporal takes."""

from __future__ import annotations

import sys
from typing import Final

from temporalio import activity, workflow

from asl.core.errors import StateError
from asl.core.values import Json, measure
from asl.temporal.claim_check import has_bucket

__all__ = ["MAX_SIZE", "check_length", "check_size", "describe_excess"]

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
        _refuse(what, measure(value, sys.maxsize))


def check_length(text: str, what: str) -> None:
    """Check that a message fits into a history; see `check_size`.

    Raises:
        StateError: `States.DataLimitExceeded`; it does not.
    """
    if len(text) > MAX_SIZE:
        _refuse(what, len(text))


def describe_excess(what: str, size: int) -> str:
    """Return the message for something that Temporal refuses.

    Args:
        what: What it is.
        size: Its size in bytes.
    """
    return (
        f"{what} takes {size} bytes, more than the {MAX_SIZE} that a history takes: let large "
        "payloads go to a bucket (payloads=BUCKET in the address of the store, for commands and "
        "workers), or put the data into an object store and pass its key"
    )


def _refuse(what: str, size: int) -> None:
    if not _goes_to_bucket():
        raise StateError("States.DataLimitExceeded", describe_excess(what, size))


def _goes_to_bucket() -> bool:
    """Return whether large payloads of the workflow or activity go to a bucket."""
    if workflow.in_workflow():
        return bool(workflow.memo_value("bucket", False))
    return activity.in_activity() and has_bucket(activity.client().data_converter)
