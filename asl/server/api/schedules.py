"""Routes of schedules: list, put, pause, resume, delete, next times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from asl.executions.schedules import Schedule
from asl.expr.times import format_timestamp
from asl.server import schedules
from asl.server.api.access import Operator, Viewer
from asl.server.api.models import (
    NextTimes,
    Reason,
    ScheduleModel,
    SchedulePage,
    ScheduleRequest,
    reason_of,
)
from asl.server.projects import Access
from asl.server.views import format_time
from asl.states.effects import ABSENT

__all__ = ["router"]

router = APIRouter(tags=["schedules"])


@router.get("/schedules")
def list_all(access: Viewer) -> SchedulePage:
    """List the schedules by name."""
    found = schedules.schedules_of(access)
    return SchedulePage(schedules=[_shown(access, each) for each in found])


@router.get("/schedules/{name}")
def describe(name: str, access: Viewer) -> ScheduleModel:
    """Show a schedule."""
    return _shown(access, schedules.find(access, name))


@router.put("/schedules/{name}")
def put(name: str, body: ScheduleRequest, access: Operator) -> ScheduleModel:
    """Create a schedule, or replace the one of this name."""
    saved = schedules.put(
        access,
        name,
        body.document,
        body.expression,
        timezone=body.timezone,
        data=body.input if "input" in body.model_fields_set else ABSENT,
        catch_up=body.catch_up,
        limit=body.catch_up_limit,
        overlap=body.overlap,
        start=None if body.start is None else body.start.timestamp(),
        end=None if body.end is None else body.end.timestamp(),
        paused=body.paused,
    )
    return _shown(access, saved)


@router.post("/schedules/{name}/pause")
def pause(name: str, access: Operator, body: Reason | None = None) -> ScheduleModel:
    """Pause a schedule; nothing is started until it is resumed."""
    return _shown(access, schedules.pause(access, name, True, reason=reason_of(body)))


@router.post("/schedules/{name}/resume")
def resume(name: str, access: Operator, body: Reason | None = None) -> ScheduleModel:
    """Resume a schedule; the times that passed meanwhile are not made up for."""
    return _shown(access, schedules.pause(access, name, False, reason=reason_of(body)))


@router.delete("/schedules/{name}", status_code=204)
def delete(name: str, access: Operator, reason: str | None = None) -> None:
    """Delete a schedule; its executions stay."""
    schedules.delete(access, name, reason=reason)


@router.get("/schedules/{name}/next")
def list_next(
    name: str, access: Viewer, count: Annotated[int, Query(ge=1, le=100)] = 10
) -> NextTimes:
    """List the next times of a schedule; none if it is paused."""
    found = schedules.upcoming(access, schedules.find(access, name), count)
    return NextTimes(times=[format_timestamp(each) for each in found])


def _shown(access: Access, schedule: Schedule) -> ScheduleModel:
    """Return a schedule as the interface shows it."""
    following = next(iter(schedules.upcoming(access, schedule)), None)
    return ScheduleModel.model_validate({
        "name": schedule.name,
        "document": schedules.document_name(schedule),
        "expression": schedule.expression,
        "timezone": schedule.timezone,
        "input": None if schedule.input is ABSENT else schedule.input,
        "catch_up": schedule.catch_up,
        "catch_up_limit": schedule.limit,
        "overlap": schedule.overlap,
        "start": format_time(schedule.start),
        "end": format_time(schedule.end),
        "paused": schedule.paused,
        "user": schedule.user,
        "created": format_time(schedule.created),
        "next": format_time(following),
        "latest": schedule.latest,
        "skipped": schedule.skipped,
        "error": schedule.error,
    })  # fmt: skip
