"""What users do with schedules, for the REST interface, the pages and the command line."""

from __future__ import annotations

import orjson

from asl.core.document import PlannedStart
from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions.schedules import (
    CatchUp,
    Overlap,
    Schedule,
    delete_schedule,
    find_schedule,
    list_schedules,
    next_times,
    pause_schedule,
    save_schedule,
)
from asl.expr.times import instant, seconds_of
from asl.server.audit import record_action
from asl.server.documents import reference_arn
from asl.server.projects import Access
from asl.states.effects import ABSENT

__all__ = [
    "delete",
    "document_name",
    "find",
    "pause",
    "put",
    "put_planned",
    "schedules_of",
    "upcoming",
]


def schedules_of(access: Access) -> list[Schedule]:
    """Return the schedules of a project by name."""
    return list_schedules(access.store.session)


def find(access: Access, name: str) -> Schedule:
    """Return a schedule.

    Raises:
        ScheduleNotFound: There is no such schedule.
    """
    return find_schedule(access.store.session, name)


def upcoming(access: Access, schedule: Schedule, most: int = 1) -> list[float]:
    """Return the next times of a schedule in epoch seconds; none if it is paused."""
    return next_times(schedule, access.store.clock.now(), most)


def document_name(schedule: Schedule) -> str:
    """Return the reference of the document that a schedule starts: `NAME` or `NAME:VERSION`."""
    return schedule.machine.split(":stateMachine:", 1)[-1]


def put(
    access: Access,
    name: str,
    document: str,
    expression: str,
    *,
    timezone: str = "UTC",
    data: Json = ABSENT,
    catch_up: CatchUp = "last",
    limit: int = 10,
    overlap: Overlap = "skip",
    start: float | None = None,
    end: float | None = None,
    paused: bool = False,
) -> Schedule:
    """Create a schedule, or replace the one of its name.

    Args:
        access: The project and the user.
        name: Name of the schedule.
        document: `NAME` or `NAME:VERSION` of a published document.
        expression: `rate(...)`, `cron(...)`, `at(...)` or five fields of cron.
        timezone: Time zone of the expression.
        data: Input of the executions; without one the name of the schedule and the time.
        catch_up: Which of the times that passed while no process ran are made up for.
        limit: Maximum number of times that are made up for.
        overlap: What happens while the execution of an earlier time runs.
        start: The earliest time in epoch seconds; None for no bound.
        end: The latest time in epoch seconds; None for no bound.
        paused: Whether nothing is started.

    Raises:
        NotFound: There is no such document.
        AslError: A part of the schedule is wrong.
    """
    session, machine = access.store.session, reference_arn(access.project, document)
    made = Schedule(
        name=name, machine=machine, expression=expression, timezone=timezone, input=data,
        catch_up=catch_up, limit=limit, overlap=overlap, start=start, end=end, paused=paused,
        user=access.principal.user,
    )  # fmt: skip
    saved = save_schedule(session, made, access.store.clock.now())
    details: dict[str, Json] = {"document": document_name(saved), "expression": expression}
    record_action(access, "schedule.put", name, details)
    return saved


def put_planned(access: Access, document: str, planned: PlannedStart) -> Schedule:
    """Create or replace a schedule as a template plans it.

    Args:
        access: The project and the user.
        document: Name of the document.
        planned: The schedule of the template.

    Raises:
        AslError: A part of it is wrong or not supported.
    """
    try:
        data = ABSENT if planned.input is None else orjson.loads(planned.input)
    except orjson.JSONDecodeError:
        raise AslError("its input is not JSON") from None
    start, end = (_time(each) for each in (planned.start, planned.end))
    return put(
        access,
        planned.name,
        document,
        planned.expression,
        timezone=planned.timezone,
        data=data,
        start=start,
        end=end,
        paused=planned.paused,
    )


def _time(text: str | None) -> float | None:
    """Return a timestamp in epoch seconds.

    Raises:
        AslError: It is none.
    """
    if text is None:
        return None
    moment = instant(text)
    if moment is None:
        raise AslError(f"{text!r} is not a timestamp such as 2027-01-31T12:00:00Z")
    return seconds_of(moment)


def pause(access: Access, name: str, paused: bool, *, reason: str | None = None) -> Schedule:
    """Pause or resume a schedule; times that pass meanwhile are not made up for.

    Raises:
        ScheduleNotFound: There is no such schedule.
    """
    store = access.store
    found = pause_schedule(store.session, name, paused, store.clock.now())
    record_action(access, f"schedule.{'pause' if paused else 'resume'}", name, reason=reason)
    return found


def delete(access: Access, name: str, *, reason: str | None = None) -> None:
    """Delete a schedule; its executions stay.

    Raises:
        ScheduleNotFound: There is no such schedule.
    """
    delete_schedule(access.store.session, name)
    record_action(access, "schedule.delete", name, reason=reason)
