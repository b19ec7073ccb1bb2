"""Events of a history, with AWS's names where AWS has one."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt, fits
from asl.expr.times import format_timestamp
from asl.states.blocks.audit import HIDDEN, redact_text
from asl.states.errors import RaisedError

__all__ = [
    "COPIES",
    "CREATED",
    "ENDINGS",
    "FORKED",
    "PAUSED",
    "RESUMED",
    "TRUNCATED",
    "Event",
    "HistoryFull",
    "credentials",
    "error_details",
    "is_fatal",
    "needs_state_name",
    "redact_details",
    "redact_quotes",
]

CREATED = "CheckpointCreated"
"""Event of a saved checkpoint."""
FORKED = "ExecutionForked"
"""Event of an execution that starts at a state of another one."""
PAUSED, RESUMED = "ExecutionPaused", "ExecutionResumed"
"""Events of a pause, and of a resumption after it or from a checkpoint."""
TRUNCATED = "HistoryTruncated"
"""Event in the place of those that are no longer in memory."""
MAX_SHOWN = 64 * 1024 * 1024
"""Maximum size of a value in a printed event, in bytes."""
ENDINGS: Mapping[str, str] = {
    "SUCCEEDED": "ExecutionSucceeded",
    "FAILED": "ExecutionFailed",
    "TIMED_OUT": "ExecutionTimedOut",
    "ABORTED": "ExecutionAborted",
}
"""Type of the last event by the status of the execution."""


class Event(NamedTuple):
    """One event of an execution's history (Specification 8.14)."""

    id: int
    """Number of the event, from 1."""
    previous: int
    """Id of the event that led to this one, 0 for none (AWS, recorded).

    Branches and iterations each have a chain of their own; `_ASIDE` lists events without
    successors.
    """
    timestamp: float
    """Epoch seconds."""
    type: str
    """AWS's name where one exists: `TaskStateEntered`, `MapIterationStarted`, ..."""
    path: tuple[str | int, ...]
    """Names of states and indices of branches or items, outermost first."""
    details: dict[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the event as a JSON object; the timestamp in ISO 8601."""
        return {
            "id": self.id,
            "timestamp": format_timestamp(self.timestamp),
            "type": self.type,
            "path": list(self.path),
            "details": {
                key: value if fits(value, MAX_SHOWN) else excerpt(value, 0)
                for key, value in self.details.items()
            },
        }


COPIES = ("input", "parameters", "output")
"""Details that are data of the state, unchanged."""
_DERIVED = ("arguments", "assignedVariables", "chunk")
"""Details computed from that data; all of them are redacted if any data is."""
_TEXTS = ("cause", "message", "reason", "key", "keys")
"""Texts, which may quote that data."""


def redact_details(
    type: str, details: dict[str, Json], redact: Callable[[Json], Json]
) -> dict[str, Json]:
    """Return the details of an event without redacted data."""
    derived = (*_DERIVED, "result") if type.startswith("Tool") else _DERIVED
    shown = {key: redact(value) if key in COPIES else value for key, value in details.items()}
    for key in derived:
        if key == "assignedVariables" and key in shown:
            shown[key] = dict.fromkeys(shown[key], HIDDEN)
        elif key in shown:
            shown[key] = HIDDEN
    return shown


def redact_quotes(details: dict[str, Json], quoted: set[str]) -> dict[str, Json]:
    """Return the details of an event without quotations of redacted data in its texts."""
    return {
        key: _unquoted(value, quoted)
        if key in _TEXTS
        else redact_quotes(value, quoted)
        if key == "data" and type(value) is dict
        else value
        for key, value in details.items()
    }


def _unquoted(value: Json, quoted: set[str]) -> Json:
    if type(value) is list:
        return [_unquoted(each, quoted) for each in value]
    return redact_text(value, quoted) if type(value) is str else value


def credentials(value: Json) -> Json:
    """Name the role of a task as AWS's history does."""
    if type(value) is not dict:
        return value
    return {"roleArn" if key == "RoleArn" else key: item for key, item in value.items()}


class HistoryFull(StateError):
    """Error of an execution whose history is full; AWS does not name the state (recorded)."""

    def __init__(self, cause: str | None) -> None:
        super().__init__("States.Runtime", cause)


def needs_state_name(error: StateError) -> bool:
    """Return whether a cause was written by the engine and lacks the state's name."""
    if isinstance(error, RaisedError | HistoryFull):
        return False
    return error.name == "States.Runtime" or isinstance(error, EvaluationFailed)


def is_fatal(error: StateError) -> bool:
    """Return whether AWS ends the execution immediately, without events of the enclosing
    machines.
    """
    return error.name == "States.Runtime" and not isinstance(error, RaisedError)


def error_details(error: StateError) -> dict[str, Json]:
    """Return `error` and `cause` as far as they are present."""
    both = {"error": error.name, "cause": error.cause}
    return {key: value for key, value in both.items() if value is not None}
