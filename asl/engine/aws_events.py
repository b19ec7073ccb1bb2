"""AWS's form of events: the names of a task's events, and `GetExecutionHistory` (AWS, recorded).

AWS has three forms of task events: for functions, activities and integrations. Outside the `aws`
profile all tasks have one.
"""

from collections.abc import Mapping
from typing import NamedTuple

from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact
from asl.engine.events import Event
from asl.expr.times import format_timestamp

__all__ = ["NATIVE", "TaskEvents", "export_event", "task_events"]

_FUNCTION = lazy_pattern(r"arn:[^:]+:lambda:.*")
_ACTIVITY = lazy_pattern(r"arn:[^:]+:states:[^:]*:[^:]*:activity:.*")
_INTEGRATION = lazy_pattern(r"arn:[^:]+:states:[^:]*:[^:]*:((?:aws-sdk:)?[^:]+):(.+)")


class TaskEvents(NamedTuple):
    """The event names and common details of one kind of task."""

    prefix: str = "Task"
    """Prefix of the names of all events."""
    payload: str = "parameters"
    """Name of the detail with the parameters."""
    always: Mapping[str, Json] = {}
    """Details of every event."""
    scheduled: Mapping[str, Json] = {}
    """Additional details of the first event."""
    started: bool = True
    """Whether the call starts as soon as it is scheduled."""


NATIVE = TaskEvents()


def task_events(resource: str, region: str) -> TaskEvents:
    """Return AWS's event names of a task with this `Resource`."""
    if _FUNCTION.fullmatch(resource):
        return TaskEvents("LambdaFunction", "input", scheduled={"resource": resource})
    if _ACTIVITY.fullmatch(resource):
        scheduled: dict[str, Json] = {"resource": resource}
        return TaskEvents("Activity", "input", scheduled=scheduled, started=False)
    integration = _INTEGRATION.fullmatch(resource)
    if integration is None:
        return TaskEvents(always={"resource": resource})
    service, action = integration.groups()
    return TaskEvents(
        always={"resourceType": service, "resource": action},
        scheduled={"region": region},
    )


_OF_STATE = lazy_pattern(r"[A-Z][a-z]+State(Entered|Exited)")
_BESIDE = ("itemCounts", "failures")
"""Details of a distributed Map that AWS reports in its API for Map runs, not in the history."""
_TEXTS = ("input", "output")
_WHOLE = {"truncated": False}


def export_event(event: Event) -> dict[str, Json]:
    """Return an event in the form of `GetExecutionHistory`; JSON values in it are compact text.

    Event types that AWS does not have follow the same rule.
    """
    written: dict[str, Json] = {
        "timestamp": format_timestamp(event.timestamp),
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
    }
    details = _details(event.details)
    if details or event.type == "ExecutionAborted":  # AWS, recorded
        written[_key(event.type)] = details
    return written


def _key(kind: str) -> str:
    of_state = _OF_STATE.fullmatch(kind)
    name = kind if of_state is None else f"State{of_state.group(1)}"
    return f"{name[0].lower()}{name[1:]}EventDetails"


def _details(details: dict[str, Json]) -> dict[str, Json]:
    written: dict[str, Json] = {}
    for name, value in details.items():
        if name in _BESIDE:
            continue
        if name in _TEXTS:
            written |= {name: compact(value), f"{name}Details": _WHOLE}
        elif name == "parameters":
            written[name] = compact(value)
        elif name == "assignedVariables":
            texts = {variable: compact(given) for variable, given in value.items()}
            written |= {name: texts, "assignedVariablesDetails": _WHOLE}
        else:
            written[name] = value
    return written
