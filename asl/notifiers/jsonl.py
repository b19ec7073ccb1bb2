"""`jsonl:FILE`: a line of JSON for each notification, appended to a file."""

from asl.core.private_files import private_opener
from asl.core.values import Json, compact
from asl.notifiers import Notify

__all__ = ["channel"]


def channel(address: str) -> Notify:
    """Return what appends to the file at *address*."""

    def tell(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        line = compact({"kind": kind, "request": request, "details": details})
        # One write: other processes append, too.
        with open(address, "ab", buffering=0, opener=private_opener) as file:
            file.write(f"{line}\n".encode())

    return tell
