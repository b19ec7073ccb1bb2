"""Operations on activities and task tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.values import Json, compact
from asl.effects import task_tokens
from asl.engine.pending_callback import PendingCallback
from asl.service.arns import RequestScope, parse_arn
from asl.service.configurations import encryption_of
from asl.service.errors import ServiceError
from asl.service.pages import page_of
from asl.service.service import StatesService, check_name
from asl.service.tags import ACTIVITY, check_tags, tags_of
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)

__all__ = [
    "create_activity",
    "delete_activity",
    "describe_activity",
    "get_activity_task",
    "list_activities",
    "send_task_failure",
    "send_task_heartbeat",
    "send_task_success",
]

POLL: Final = 60.0
"""Seconds that a poll for a task waits."""
PATIENCE: Final = 1.0
"""Seconds after which a poll that is not the first looks whether its client is still there."""
_REFUSALS: Final = {
    task_tokens.InvalidToken: ("InvalidToken", "Invalid Token: 'Invalid token'"),
    task_tokens.TaskDoesNotExist: (
        "TaskDoesNotExist",
        "Task does not exist: 'Provided task does not exist'",
    ),
    task_tokens.TaskTimedOut: (
        "TaskTimedOut",
        "Task Timed Out: 'Provided task does not exist anymore'",
    ),
}


async def create_activity(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Register an activity; the same name again returns the same activity.

    Raises:
        ServiceError: The request is refused.
    """
    name, session = request["name"], service.store.session
    check_name(name)
    encryption = encryption_of(request)
    arn = f"{scope.prefix}:{ACTIVITY}:{name}"
    known = find_resource(session, arn)
    if known is None:
        tags = tags_of(request)
        check_tags(tags, arn)
        siblings = list_resources(session, ACTIVITY, scope.prefix)
        number = 1 + max((each.number for each in siblings), default=0)
        body = {
            "name": name,
            "creationDate": service.now(),
            "tags": tags,
            "encryptionConfiguration": encryption,
        }
        known = Resource(arn, ACTIVITY, scope.prefix, number, body)
        put_resource(session, known)
    elif known.body["encryptionConfiguration"] != encryption:
        raise ServiceError("ActivityAlreadyExists", f"Activity Already Exists: '{arn}'")
    return {"activityArn": arn, "creationDate": known.body["creationDate"]}


def _activity(service: StatesService, arn: str) -> Resource:
    """Return the activity of an ARN.

    Raises:
        ServiceError: ActivityDoesNotExist or InvalidArn.
    """
    parse_arn(arn, ACTIVITY)
    found = find_resource(service.store.session, arn)
    if found is None:
        raise ServiceError("ActivityDoesNotExist", f"Activity Does Not Exist: '{arn}'")
    return found


async def describe_activity(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return an activity."""
    found = _activity(service, request["activityArn"])
    encryption = found.body["encryptionConfiguration"]
    return {
        "activityArn": found.arn,
        **_listed(found),
        "encryptionConfiguration": encryption,
    }


def _listed(activity: Resource) -> dict[str, Json]:
    return {member: activity.body[member] for member in ("name", "creationDate")}


async def list_activities(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the activities, by name."""
    found = list_resources(service.store.session, ACTIVITY, scope.prefix)
    page, token = page_of(request, sorted(found))
    listed: list[Json] = [{"activityArn": each.arn, **_listed(each)} for each in page]
    return {"activities": listed, "nextToken": token}


async def delete_activity(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Delete an activity, if there is one."""
    arn = request["activityArn"]
    parse_arn(arn, ACTIVITY)
    delete_resource(service.store.session, arn)
    return {}


async def get_activity_task(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return the next task of an activity; wait for one for up to a minute.

    A client that has disconnected gets no task.
    """
    arn, worker = request["activityArn"], request.get("workerName")
    deadline = service.now() + POLL
    _activity(service, arn)
    with service.polls.queued(arn) as turn:
        while not await scope.is_disconnected():
            if turn.is_first:
                _activity(service, arn)
                task = await _next_task(service, arn, worker)
                if task is not None:
                    return {"taskToken": task.token, "input": compact(task.payload)}
            if service.now() >= deadline:
                break
            look = service.store.tokens.look
            await (asyncio.sleep(look) if turn.is_first else turn.wait(PATIENCE))
    return {}


async def _next_task(
    service: StatesService, arn: str, worker: str | None
) -> PendingCallback | None:
    """Take the next task of an activity; in a thread if that asks another server."""
    store = service.store
    if store.runs_elsewhere:
        return await asyncio.to_thread(lambda: store.tokens.next_task(arn, worker))
    return store.tokens.next_task(arn, worker)


# Answers


def _answered(
    service: StatesService, send: Callable[..., object], *answer: Json
) -> dict[str, Json]:
    """Send an answer to a task token, and wake the runners.

    Raises:
        ServiceError: The token or the answer is refused.
    """
    try:
        send(*answer)
    except task_tokens.InvalidOutput as error:
        raise ServiceError("InvalidOutput", f"Invalid Output: '{error}'") from None
    except task_tokens.TokenError as error:
        raise ServiceError(*_REFUSALS[type(error)]) from None
    service.store.notify()
    return {}


async def send_task_success(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Answer the task of a token."""
    send = service.store.tokens.send_task_success
    return _answered(service, send, request["taskToken"], request["output"])


async def send_task_failure(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Fail the task of a token."""
    send = service.store.tokens.send_task_failure
    return _answered(
        service, send, request["taskToken"], request.get("error"), request.get("cause")
    )


async def send_task_heartbeat(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Report that the work on the task of a token continues."""
    return _answered(service, service.store.tokens.send_task_heartbeat, request["taskToken"])
