"""`console`: lines on standard error."""

import sys

from asl.core.values import Json
from asl.notifiers import Notify
from asl.notifiers.text import title, told

__all__ = ["channel"]


def channel(address: str) -> Notify:
    """Return what writes to standard error."""
    return _tell


def _tell(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
    body = told(request, details).replace("\n", "\n  ")
    print(f"asl: {title(kind, details)}\n  {body}", file=sys.stderr, flush=True)
