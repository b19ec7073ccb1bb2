"""Addresses of Temporal: `temporal://HOST:PORT/NAMESPACE?queue=NAME`."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from asl.core.errors import AslError

__all__ = ["SCHEME", "TemporalAddress", "parse_address"]

SCHEME: Final = "temporal"
QUEUE: Final = "asl"
"""Default name of the task queue."""
OPTIONS: Final = ("queue", "converter", "payloads")


class TemporalAddress(NamedTuple):
    """Where executions run.

    Attributes:
        target: Host and port of the server.
        namespace: Namespace.
        queue: Name of the task queue of the workers.
        converter: `MODULE:NAME` of a data converter, for encrypted payloads; None for none.
        payloads: Bucket of large payloads: a folder, or the URL of an object store; None for none.
    """

    target: str
    namespace: str = "default"
    queue: str = QUEUE
    converter: str | None = None
    payloads: str | None = None

    def __str__(self) -> str:
        options = {name: getattr(self, name) for name in OPTIONS}
        given = urlencode({key: value for key, value in options.items() if value}, safe=":/")
        return f"{SCHEME}://{self.target}/{self.namespace}?{given}"


def parse_address(text: str) -> TemporalAddress:
    """Return the parts of an address.

    Raises:
        AslError: It has another form.
    """
    parts = urlsplit(text)
    options = parse_qsl(parts.query, keep_blank_values=True)
    names = [name for name, value in options if name in OPTIONS and value]
    wrong = next((name for name, value in options if not value or names.count(name) != 1), None)
    if parts.scheme != SCHEME or wrong or not _is_target(parts) or parts.path.count("/") > 1:
        hint = f": the option {wrong!r} is unknown, empty or repeated" if wrong else ""
        raise AslError(
            f"{text!r} must have the form {SCHEME}://HOST:PORT/NAMESPACE?queue=NAME{hint}"
        )
    target = parts.netloc if parts.port is not None else f"{parts.netloc.removesuffix(':')}:7233"
    return TemporalAddress(target, parts.path.strip("/") or "default", **dict(options))


def _is_target(parts: SplitResult) -> bool:
    """Return whether an address has a host, and a port that is a number."""
    try:
        port = parts.port
    except ValueError:
        return False
    return bool(parts.hostname) and port != 0 and "@" not in parts.netloc
