"""What workflows, activities and clients send each other, as JSON.

Executions travel compressed: their histories repeat names and shapes.
"""

from __future__ import annotations

import base64
import zlib
from typing import Final, NotRequired, TypedDict

import orjson

from asl.core.values import Json

__all__ = [
    "ANSWER",
    "CALL",
    "CANCEL",
    "EXECUTION",
    "SLICE",
    "STATE",
    "TOKEN",
    "AnswerMessage",
    "CallMessage",
    "CancelMessage",
    "SliceMessage",
    "StartMessage",
    "TokenMessage",
    "pack",
    "unpack",
]

EXECUTION: Final = "asl.Execution"
"""Type of the workflow."""
SLICE: Final = "asl.Slice"
"""Type of the workflow of some children of a distributed Map."""
CALL: Final = "asl.call"
"""Type of the activity that calls an agent."""
ANSWER: Final = "asl.answer"
TOKEN: Final = "asl.token"
CANCEL: Final = "asl.cancel"
STATE: Final = "asl.state"
"""Names of the updates, of the signal before a cancellation, and of the query."""


class StartMessage(TypedDict):
    """Input of the workflow: a new execution, or one that goes on."""

    document: NotRequired[Json]
    profile: NotRequired[str]
    workflow: NotRequired[str]
    input: NotRequired[Json]
    express: NotRequired[bool]
    requestor: NotRequired[str | None]
    content: NotRequired[str]
    """A packed execution to continue, instead of the others."""


class CallMessage(TypedDict):
    """Input of the activity."""

    kind: str
    """`agent` or `resource`."""
    name: str
    state: str
    key: str
    """Idempotency key of the call."""
    attempt: int
    payload: Json
    fields: dict[str, Json]
    """Further fields of the state: limits and blocks."""
    document: dict[str, Json]
    """Definitions of the document that the call needs."""
    profile: str
    execution: str
    workflow: str


class AnswerMessage(TypedDict):
    """An answer to a request."""

    request: str
    answer: dict[str, Json]
    given: float
    """Time of the answer in epoch seconds."""


class TokenMessage(TypedDict):
    """An answer to a task token."""

    token: str
    output: NotRequired[Json]
    failure: NotRequired[list[str | None]]
    """Error and cause."""
    heartbeat: NotRequired[bool]


class CancelMessage(TypedDict):
    """Why an execution is cancelled."""

    error: str | None
    cause: str | None


class SliceMessage(TypedDict):
    """Input of the workflow of some children of a distributed Map."""

    document: dict[str, Json]
    """Document of each child."""
    profile: str
    workflow: str
    """Name of the workflow of the children."""
    workflow_id: str
    express: bool
    run: str
    """Id of the run of the Map, with which the names of the children begin."""
    items: str
    """Packed inputs and items."""
    content: NotRequired[str]
    """Packed outcomes and unfinished executions of an earlier run, in the order of the items."""


def pack(value: Json) -> str:
    """Return JSON as compressed text."""
    return base64.b64encode(zlib.compress(orjson.dumps(value), 6)).decode()


def unpack(text: str) -> Json:
    """Return the JSON of a compressed text."""
    return orjson.loads(zlib.decompress(base64.b64decode(text)))
