"""Addresses of Temporal: `temporal://HOST:PORT/NAMESPACE?queue=NAME`."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from asl.core.errors import AslError

__all__ = ["SCHEME", "TemporalAddress", "parse_address"]

SCHEME: Final = "temporal"
QUEUE: Final = "asl"
"""Default name of the task queue."""


class TemporalAddress(NamedTuple):
    """Where executions run.

    Attributes:
        target: Host and port of the server.
        namespace: Namespace.
        queue: Name of the task queue of the workers.
    """

    target: str
    namespace: str = "default"
    queue: str = QUEUE

    def __str__(self) -> str:
        return f"{SCHEME}://{self.target}/{self.namespace}?queue={self.queue}"


def parse_address(text: str) -> TemporalAddress:
    """Return the parts of an address.

    Raises:
        AslError: It has another form.
    """
    parts = urlsplit(text)
    options = parse_qs(parts.query, keep_blank_values=True)
    unknown = sorted(options.keys() - {"queue"})
    if parts.scheme != SCHEME or not parts.netloc or unknown or parts.path.count("/") > 1:
        hint = f", without {unknown[0]!r}" if unknown else ""
        raise AslError(
            f"{text!r} must have the form {SCHEME}://HOST:PORT/NAMESPACE?queue=NAME{hint}"
        )
    host = parts.netloc if ":" in parts.netloc else f"{parts.netloc}:7233"
    queue = options.get("queue", [QUEUE])[-1]
    return TemporalAddress(host, parts.path.strip("/") or "default", queue or QUEUE)
