"""Keys of executions and requests in paths, and their summaries."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from asl.executions import Store
from asl.executions.errors import ExecutionNotFound, RequestNotFound
from asl.expr.times import format_timestamp
from asl.stores.executions import StoredExecution

__all__ = [
    "execution_key",
    "find_execution",
    "format_time",
    "request_id_of",
    "request_key",
    "short_name",
]

_PLAIN: Final = re.compile(r"[A-Za-z0-9._@:+-]+")


def execution_key(stored: StoredExecution) -> str:
    """Return the key of an execution in paths: its name, or `~` with its number."""
    return stored.name if _PLAIN.fullmatch(stored.name) else f"~{stored.number}"


def short_name(stored: StoredExecution) -> str:
    """Return the name of an execution without the rest of its ARN."""
    return stored.name.split(":")[7] if stored.workflow_id is not None else stored.name


def find_execution(store: Store, key: str) -> StoredExecution:
    """Return the execution of a key, a name or an id.

    Raises:
        ExecutionNotFound: There is none.
    """
    if not key.startswith("~"):
        return store.get(key)
    number = key[1:]
    found = store.of_number(int(number)) if number.isdecimal() else None
    if found is None:
        raise ExecutionNotFound(f"there is no execution {key!r}")
    return found


def request_key(request_id: str) -> str:
    """Return the key of a request in paths."""
    return base64.urlsafe_b64encode(request_id.encode()).decode().rstrip("=")


def request_id_of(key: str) -> str:
    """Return the id of the request of a key.

    Raises:
        RequestNotFound: The text is no key.
    """
    try:
        return base64.b64decode(key + "=" * (-len(key) % 4), b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        raise RequestNotFound(f"there is no request {key[:100]!r}") from None


def format_time(seconds: float | None) -> str | None:
    """Return a time in ISO 8601, None for none."""
    return None if seconds is None else format_timestamp(seconds)
