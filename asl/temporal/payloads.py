"""What workflows, activities and clients send each other, as JSON.

Executions and documents travel compressed: they repeat names and shapes. Values travel as JSON
text: converters of Temporal sort the keys of objects.
"""

from __future__ import annotations

import base64
import zlib
from typing import Final, NotRequired, TypedDict

import orjson

from asl.core.values import Json, compact
from asl.program import Program

__all__ = [
    "ANSWER",
    "CALL",
    "CANCEL",
    "EXECUTION",
    "LISTED",
    "ROLL",
    "SLICE",
    "STATE",
    "TOKEN",
    "AnswerMessage",
    "CallMessage",
    "CancelMessage",
    "Memo",
    "SliceMessage",
    "StartMessage",
    "TokenMessage",
    "pack",
    "start_message",
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
"""Names of the updates, which are signals too, of the signal before a cancellation, and of the
query.
"""
ROLL: Final = "asl.roll"
"""Name of the signal that makes a waiting execution look for another version of the workers."""


class StartMessage(TypedDict):
    """Input of the workflow: a new execution, or one that goes on."""

    document: NotRequired[str]
    """The packed document."""
    profile: NotRequired[str]
    workflow: NotRequired[str]
    input: NotRequired[str]
    """The input as JSON text."""
    express: NotRequired[bool]
    requestor: NotRequired[str | None]
    command: NotRequired[Json]
    """The command line that runs the execution, recorded with it."""
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
    answer: str
    """The answer as JSON text."""
    given: float
    """Time of the answer in epoch seconds."""


class TokenMessage(TypedDict):
    """An answer to a task token."""

    token: str
    given: float
    """Time of the answer in epoch seconds."""
    output: NotRequired[str]
    """The answer as JSON text."""
    failure: NotRequired[list[str | None]]
    """Error and cause."""
    heartbeat: NotRequired[bool]


class CancelMessage(TypedDict):
    """Why an execution is cancelled."""

    error: str | None
    cause: str | None


class SliceMessage(TypedDict):
    """Input of the workflow of some children of a distributed Map."""

    document: str
    """The packed document of each child."""
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


class Memo(TypedDict, total=False):
    """What lists show of a workflow."""

    status: str
    """Status of the execution."""
    workflow: str
    """Name of its workflow."""
    started: float
    """Time of its start in epoch seconds."""
    waits: list[str]
    """Ids of its open requests and tokens, at most `LISTED`."""
    more: bool
    """Whether there are more."""


LISTED: Final = 100
"""Maximum number of ids in a memo."""


def start_message(
    program: Program,
    data: Json,
    *,
    express: bool = False,
    requestor: str | None = None,
    command: Json = None,
) -> StartMessage:
    """Return the input of the workflow of a new execution.

    Args:
        program: Its program.
        data: Its input.
        express: Whether it is an express execution.
        requestor: Name of the user who starts it.
        command: The command line that runs it; None for none.
    """
    return StartMessage(
        document=pack(program.document),
        profile=program.profile.name,
        workflow=program.name,
        input=compact(data),
        express=express,
        requestor=requestor,
        command=command,
    )


def pack(value: Json) -> str:
    """Return JSON as compressed text."""
    return base64.b64encode(zlib.compress(orjson.dumps(value), 6)).decode()


def unpack(text: str) -> Json:
    """Return the JSON of a compressed text."""
    return orjson.loads(zlib.decompress(base64.b64decode(text)))
