"""The names that a task's events have, and what all of them say (AWS, recorded).

AWS tells of a function, of an activity and of an integration in three ways. Outside the `aws`
profile every kind of task is told of in one.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from asl.core.values import Json

__all__ = ["NATIVE", "TaskEvents", "task_events"]

_FUNCTION = re.compile(r"arn:[^:]+:lambda:.*")
_ACTIVITY = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:activity:.*")
_INTEGRATION = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:((?:aws-sdk:)?[^:]+):(.+)")


class TaskEvents(NamedTuple):
    """How the events of one kind of task are told."""

    prefix: str = "Task"
    """What the names of all events begin with."""
    payload: str = "parameters"
    """The name of what is handed over."""
    always: Mapping[str, Json] = {}
    """The details of every event."""
    scheduled: Mapping[str, Json] = {}
    """Further details of the first event."""
    started: bool = True
    """Whether the call begins as soon as it is scheduled."""


NATIVE = TaskEvents()


def task_events(resource: str, region: str) -> TaskEvents:
    """Return how AWS tells of a task with this `Resource`."""
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
