"""Addresses of Temporal: `temporal://HOST:PORT/NAMESPACE?queue=NAME`."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

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
    options = parse_qs(parts.query, keep_blank_values=True)
    unknown = sorted(options.keys() - {*OPTIONS})
    if parts.scheme != SCHEME or not parts.netloc or unknown or parts.path.count("/") > 1:
        hint = f", without {unknown[0]!r}" if unknown else ""
        raise AslError(
            f"{text!r} must have the form {SCHEME}://HOST:PORT/NAMESPACE?queue=NAME{hint}"
        )
    host = parts.netloc if ":" in parts.netloc else f"{parts.netloc}:7233"
    queue, converter, payloads = (options.get(name, [""])[-1] for name in OPTIONS)
    namespace = parts.path.strip("/") or "default"
    return TemporalAddress(host, namespace, queue or QUEUE, converter or None, payloads or None)
