"""Operations on Map Runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.core.values import Json
from asl.executions.map_runs import LIMITS, MAP_RUN, counts_of
from asl.service.arns import RequestScope, parse_arn
from asl.service.errors import ServiceError, validation_error
from asl.service.pages import page_of
from asl.service.service import StatesService, find_execution
from asl.stores.executions import ENDED
from asl.stores.resources import Resource, find_resource, list_resources, put_resource

__all__ = [
    "describe_map_run",
    "find_child",
    "list_child_executions",
    "list_map_runs",
    "update_map_run",
]


def _find(service: StatesService, arn: str) -> Resource:
    """Return the Map Run of an ARN.

    Raises:
        ServiceError: ResourceNotFound or InvalidArn.
    """
    parse_arn(arn, MAP_RUN)
    service.store.refresh_map_run(arn)
    found = find_resource(service.store.session, arn)
    if found is None:
        raise ServiceError("ResourceNotFound", f"Resource not found: '{arn}'")
    return found


def _status(service: StatesService, run: Resource) -> str:
    """Return the status of a run; that of an ended execution decides about an unfinished run."""
    status: str = run.body["status"]
    if status == "RUNNING" and run.arn not in service.store.map_runs.live:
        execution = service.store.get(run.owner).status
        if execution in ENDED:
            return "ABORTED" if execution in ("ABORTED", "TIMED_OUT") else "FAILED"
    return status


async def list_map_runs(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a page of the Map Runs of an execution, newest first.

    Raises:
        ServiceError: The request is refused.
    """
    stored = find_execution(service, request["executionArn"])
    runs = list_resources(service.store.session, MAP_RUN, stored.name)[::-1]
    page, token = page_of(request, runs)
    listed: list[Json] = [
        {
            "executionArn": run.owner,
            "mapRunArn": run.arn,
            "stateMachineArn": run.body["workflowId"],
            "startDate": run.body["startDate"],
            **_stop(run),
        }
        for run in page
    ]
    return {"mapRuns": listed, "nextToken": token}


def _stop(run: Resource) -> dict[str, Json]:
    ended = run.body["stopDate"]
    return {} if ended is None else {"stopDate": ended}


async def describe_map_run(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Return a Map Run with its counts.

    Raises:
        ServiceError: The request is refused.
    """
    run = _find(service, request["mapRunArn"])
    body = {**run.body}
    live = service.store.map_runs.live.get(run.arn)
    if live is not None:
        body["itemCounts"] = counts_of(live.items, live.total)
        body["executionCounts"] = counts_of(live.executions, None)
    return {
        "mapRunArn": run.arn,
        "executionArn": run.owner,
        "status": _status(service, run),
        "startDate": body["startDate"],
        **_stop(run),
        **{name: body[name] or 0 for name in LIMITS},
        "itemCounts": body["itemCounts"],
        "executionCounts": body["executionCounts"],
        "redriveCount": 0,
    }


async def update_map_run(
    service: StatesService, request: Mapping[str, Any], scope: RequestScope
) -> dict[str, Json]:
    """Change the limits of a Map Run that has not ended.

    Raises:
        ServiceError: The request is refused.
    """
    run = _find(service, request["mapRunArn"])
    changes = {name: request[name] for name in LIMITS if name in request}
    if not changes:
        raise validation_error(
            "Must specify at least one of: maxConcurrency, toleratedFailureCount, or "
            "toleratedFailurePercentage",
            "MISSING_REQUIRED_PARAMETER",
        )
    if service.store.runs_elsewhere:
        raise validation_error(
            "The limits of a Map Run on Temporal cannot be changed",
            "CANNOT_UPDATE_COMPLETED_MAP_RUN",
        )
    if _status(service, run) != "RUNNING":
        raise validation_error("Map Run has already completed", "CANNOT_UPDATE_COMPLETED_MAP_RUN")
    put_resource(service.store.session, run._replace(body={**run.body, **changes}))
    live = service.store.map_runs.live.get(run.arn)
    if live is not None:
        live.update(*(changes.get(name) for name in LIMITS))
    return {}


async def list_child_executions(
    service: StatesService, request: Mapping[str, Any]
) -> dict[str, Json]:
    """Return a page of the child executions of a Map Run, newest first.

    Raises:
        ServiceError: The request is refused.
    """
    run = _find(service, request["mapRunArn"])
    if run.body["express"]:
        raise ServiceError(
            "StateMachineTypeNotSupported",
            "This operation is not supported by this type of state machine",
        )
    wanted = request.get("statusFilter")
    found = [each for each in _children(service, run) if wanted in (None, each["status"])]
    page, token = page_of(request, found[::-1])
    return {"executions": list(page), "nextToken": token}


def _children(service: StatesService, run: Resource) -> list[dict[str, Json]]:
    """Return what is known of the child executions of a Map Run, oldest first."""
    live = service.store.map_runs.live.get(run.arn)
    children = run.body["children"] if live is None else [*live.children.values()]
    prefix = run.body["workflowId"].replace(":stateMachine:", ":execution:")
    return [
        {
            "executionArn": f"{prefix}:{name}",
            "stateMachineArn": run.body["workflowId"],
            "name": name,
            "status": status,
            "startDate": started,
            **({} if ended is None else {"stopDate": ended}),
            "mapRunArn": run.arn,
            "redriveCount": 0,
        }
        for name, status, started, ended in children
    ]


def find_child(service: StatesService, arn: str) -> dict[str, Json] | None:
    """Return what is known of the child execution of an ARN, None for other ARNs."""
    run_arn = arn.replace(":execution:", ":mapRun:", 1).rpartition("-")[0]
    run = find_resource(service.store.session, run_arn)
    if run is None or run.kind != MAP_RUN:
        return None
    return next((each for each in _children(service, run) if each["executionArn"] == arn), None)
