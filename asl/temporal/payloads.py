"""What workflows, activities and clients send each other, as JSON.

Executions and documents travel compressed: they repeat names and shapes. Values travel as JSON
text: converters of Temporal sort the keys of objects.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Final, NotRequired, TypedDict, cast

from asl.core.values import Json, compact
from asl.executions.execution_start import ExecutionStart

__all__ = [
    "ANSWER",
    "BINDING",
    "BOUND",
    "CALL",
    "CANCEL",
    "CHECKPOINT",
    "EXECUTION",
    "FOREIGN_TOKEN",
    "ITEMS",
    "LISTED",
    "MACHINE",
    "MEMORY",
    "MISSING",
    "NOTIFY",
    "OBJECT",
    "SEND",
    "SLICE",
    "STATE",
    "TOKEN",
    "AnswerMessage",
    "CallMessage",
    "CancelMessage",
    "ForeignTokenMessage",
    "GivenBindings",
    "Memo",
    "MemoryMessage",
    "NoticeMessage",
    "ObjectMessage",
    "SliceMessage",
    "StartMessage",
    "TargetMessage",
    "TokenMessage",
    "pack",
    "pack_call",
    "start_message",
    "unpack",
    "unpack_call",
]

EXECUTION: Final = "asl.Execution"
"""Type of the workflow."""
SLICE: Final = "asl.Slice"
"""Type of the workflow of some children of a distributed Map."""
CALL: Final = "asl.call"
"""Type of the activity that calls an agent."""
BINDING: Final = "asl.binding"
"""Type of the activity that waits for a worker with the binding of a call."""
MEMORY: Final = "asl.memory"
"""Type of the activity that performs a request of a memory."""
MISSING: Final = "BindingMissing"
"""Type of the failure of a worker that has no binding for a call."""
ITEMS: Final = "asl.items"
"""Type of the activity that reads items of a distributed Map."""
OBJECT: Final = "asl.object"
"""Type of the activity that writes an object of a bucket."""
BOUND: Final = "asl.bound"
"""Type of the activity that says whether a worker has a binding."""
FOREIGN_TOKEN: Final = "asl.foreignToken"
"""Type of the activity that answers a task token of another workflow."""
MACHINE: Final = "asl.machine"
"""Type of the activity that finds a registered state machine."""
CHECKPOINT: Final = "asl.checkpoint"
"""Type of the activity that saves a checkpoint in a storage."""
SEND: Final = "asl.send"
"""Type of the activity that sends events to channels."""
NOTIFY: Final = "asl.notify"
"""Type of the activity that notifies people of a request."""
ANSWER: Final = "asl.answer"
TOKEN: Final = "asl.token"
CANCEL: Final = "asl.cancel"
STATE: Final = "asl.state"
"""Names of the updates, which are signals too, of the signal before a cancellation, and of the
query.
"""
ROLL: Final = "asl.roll"
"""Name of the signal that makes a waiting execution look for another version of the workers."""


class GivenBindings(TypedDict, total=False):
    """The bindings that a start gives to the workflow."""

    workflows: dict[str, Json]
    """Documents that states may start, by name or ARN."""
    prices: dict[str, Json]
    """Prices of models, as for `asl.run`."""
    pools: dict[str, str]
    """Amounts of pools; those of a worker come first."""
    policy: dict[str, Json]
    """The budget of the operator's policy."""


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
    bindings: NotRequired[str]
    """Bindings in the workflow (`GivenBindings`) as JSON text."""
    origin: NotRequired[list[str | None]]
    """The registered state machine that it belongs to."""
    content: NotRequired[str]
    """A packed execution to continue, instead of the others."""
    map_runs: NotRequired[str]
    """Its packed Map Runs, as rows without children."""


class TurnMessage(TypedDict):
    """What a worker has to know of a call whose tools have requested consent before."""

    noted: dict[str, int]
    """Number of recorded events by subject."""
    values: dict[str, Json]
    """Earlier answers of tools and models by name."""
    decisions: dict[str, Json]
    """Decision and error of requests by name."""
    digests: dict[str, str]
    """Digests of the requests that count for the same content only, after a redrive."""


class TurnOutcome(TypedDict):
    """What a call waits for, and what it has done so far."""

    requests: list[Json]
    """Name, kind, body and plan of each request."""
    values: dict[str, Json]
    """Answers of tools and models by name."""
    noted: dict[str, int]
    """Number of recorded events by subject."""
    budget: bool
    """Whether it waits for a decision on a limit of the budget, and for nothing else."""


class CallMessage(TypedDict):
    """Input of the activity that calls an agent; its text omits `USUAL` values."""

    kind: str
    """`agent` or `resource`."""
    name: str
    state: str
    helper: bool
    """Whether it is a helper of the state's agent."""
    optional: bool
    """Whether the state continues if nothing is bound to the name."""
    payload: Json
    options: dict[str, Json]
    """Limits of the state and values of its blocks; empty for neither."""
    key: str
    """Key of the visit."""
    retries: int
    redrives: int
    entered: float
    """Time at which the state was entered."""
    progress: Json
    """Reported progress of the visit: the latest update and the milestones reached."""
    rights: Json
    """Tool policies around the call."""
    budget: dict[str, dict[str, Json]]
    """Remaining amounts of limits, by `workflow` and `state`."""
    tracking: Json
    """What the limits of the document require to record about tool calls."""
    ledger: Json
    """Accounts around the call and usage of earlier calls; None without a budget."""
    document: dict[str, Json]
    """Definitions of the document that the call needs."""
    profile: str
    execution: str
    """Name of the execution."""
    workflow: str
    """Id of its workflow."""
    express: bool
    requestor: str | None
    turn: NotRequired[TurnMessage]
    """What is known of the call, if its tools have requested consent."""


class TargetMessage(TypedDict):
    """Input of the activity that says whether a worker has a binding."""

    kind: str
    name: str
    state: str


USUAL: Final[Mapping[str, Json]] = {
    "kind": "agent",
    "helper": False,
    "optional": False,
    "options": {},
    "retries": 0,
    "redrives": 0,
    "progress": None,
    "rights": [],
    "budget": {"workflow": {}, "state": {}},
    "tracking": [0.0, False],
    "ledger": None,
    "document": {},
    "profile": "default",
    "express": False,
    "requestor": None,
}
"""Values that most calls have.

Texts of calls are short for the server, which needs much longer for 500 calls that begin together
if each has more than some 500 bytes.
"""


class MemoryMessage(TypedDict):
    """Input of the activity that performs a request of a memory."""

    request: dict[str, Json]
    settings: dict[str, Json]
    """The `Memory` block of the document."""
    state: str
    now: float
    """Time of the request in epoch seconds."""


class ObjectMessage(TypedDict):
    """Input of the activity that writes an object of a bucket."""

    bucket: str
    key: str
    text: str


class NoticeMessage(TypedDict):
    """Input of the activity that notifies people of a request."""

    kind: str
    """`request`, `reminder` or `escalation`."""
    request: dict[str, Json]
    details: dict[str, Json]


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
    worker: NotRequired[str | None]
    """Name of the worker that takes the task of an activity, instead of an answer."""


class ForeignTokenMessage(TypedDict):
    """Input of the activity that answers a task token of another workflow."""

    answer: TokenMessage
    starter: str | None
    """The workflow that has started this one, if any; it often waits for the answer."""


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
    bindings: NotRequired[str]
    """Bindings in the workflow (`GivenBindings`) as JSON text."""
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
    activities: list[str]
    """ARNs of the activities whose workers poll for its tasks."""
    error: str | None
    """Name of the error with which it has ended."""
    bucket: bool
    """Whether large payloads go to a bucket."""
    origin: list[str | None]
    """The registered state machine that it belongs to."""
    redrives: int
    redriven: float | None
    """Number of its redrives and time of the latest one in epoch seconds."""


LISTED: Final = 100
"""Maximum number of ids in a memo."""

LARGE: Final = 100_000
"""Size in bytes from which on a message is compressed faster, and less."""


def start_message(
    new: ExecutionStart, command: Json = None, bindings: GivenBindings | None = None
) -> StartMessage:
    """Return the input of the workflow of a new execution.

    Args:
        new: The execution.
        command: The command line that runs it; None for none.
        bindings: Its bindings in the workflow.
    """
    program = new.program
    return StartMessage(
        document=pack(program.document),
        profile=program.profile.name,
        workflow=program.name,
        input=compact(new.data),
        express=new.express,
        requestor=new.requestor,
        command=command,
        bindings=compact(bindings or {}),
        origin=[*new.origin],
    )


def pack_call(message: CallMessage) -> str:
    """Return a call as JSON text, without the usual values."""
    return compact({name: each for name, each in message.items() if USUAL.get(name, ...) != each})


def unpack_call(text: str) -> CallMessage:
    """Return the call of a JSON text."""
    return cast("CallMessage", {**USUAL, **json.loads(text)})


def pack(value: Json) -> str:
    """Return JSON as compressed text."""
    data = compact(value).encode()
    level = 6 if len(data) < LARGE else 1
    return base64.b64encode(zlib.compress(data, level)).decode()


def unpack(text: str) -> Json:
    """Return the JSON of a compressed text."""
    found: Json = json.loads(zlib.decompress(base64.b64decode(text)))  # integers of any size
    return found
