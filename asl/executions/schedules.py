"""Schedules of a store: registered state machines that are started at planned times."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from itertools import islice, takewhile
from math import floor, inf
from typing import Any, Final, Literal, TypeAlias, get_args

from asl.core.errors import AslError
from asl.core.values import Json
from asl.executions.errors import ScheduleNotFound
from asl.executions.recurrence import Recurrence, latest_between, read_recurrence
from asl.executions.registrations import MACHINE, resolve_arn
from asl.expr.times import format_timestamp
from asl.states.effects import ABSENT
from asl.stores.resources import (
    Resource,
    delete_resource,
    find_resource,
    list_resources,
    put_resource,
)
from asl.stores.session import Session

__all__ = [
    "CATCH_UPS",
    "OVERLAPS",
    "CatchUp",
    "Overlap",
    "Schedule",
    "delete_schedule",
    "find_schedule",
    "list_schedules",
    "next_times",
    "pause_schedule",
    "put_schedule",
    "save_schedule",
]

KIND: Final = "schedule"
CatchUp: TypeAlias = Literal["skip", "last", "all"]
"""Which of the times that passed while no process ran are made up for."""
Overlap: TypeAlias = Literal["skip", "queue", "allow", "cancel"]
"""What happens at a time at which the execution of an earlier one has not ended."""
CATCH_UPS: Final[tuple[CatchUp, ...]] = get_args(CatchUp)
OVERLAPS: Final[tuple[Overlap, ...]] = get_args(Overlap)
MOST: Final = 1000
"""The largest number of times that are made up for."""
PUNCTUAL: Final = 60.0
"""Seconds up to which a start counts as in time."""
_TIMING: Final = ("expression", "timezone", "start", "end", "paused")
"""A replaced schedule with the same values continues where it was."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_KEYWORD: Final = re.compile(r"<aws\.scheduler\.(scheduled-time|schedule-arn|execution-id)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule and what has become of it. Times are in epoch seconds.

    Attributes:
        name: Its name.
        machine: ARN of the state machine, or of one of its versions or aliases.
        expression: `rate(...)`, `cron(...)`, `at(...)` or five fields of cron.
        timezone: Time zone of the expression.
        input: Input of the executions; without one they get the name of the schedule and the time.
        catch_up: Which of the missed times are made up for.
        limit: Maximum number of times that are made up for.
        overlap: What happens while the execution of an earlier time runs.
        start: The earliest time; None for no bound.
        end: The latest time; None for no bound.
        paused: Whether nothing is started.
        created: Time of its creation.
        user: Who changed it last.
        last: The last time that was dealt with.
        queued: The time of a start that waits for the end of an execution.
        latest: Name of the execution that was started last.
        skipped: Number of times at which nothing was started.
        error: Why the last start failed.
    """

    name: str
    machine: str
    expression: str
    timezone: str = "UTC"
    input: Json = ABSENT
    catch_up: CatchUp = "last"
    limit: int = 10
    overlap: Overlap = "skip"
    start: float | None = None
    end: float | None = None
    paused: bool = False
    created: float = 0.0
    user: str | None = None
    last: float = 0.0
    queued: float | None = None
    latest: str | None = None
    skipped: int = 0
    error: str | None = None

    def recurrence(self) -> Recurrence:
        """Return its times.

        Raises:
            AslError: The expression or the time zone is wrong.
        """
        anchor = self.created if self.start is None else self.start
        return read_recurrence(self.expression, self.timezone, anchor)

    def due(self, now: float) -> list[float]:
        """Return the times since the last one at which an execution is to be started."""
        if self.paused:
            return []
        until = min(now, inf if self.end is None else self.end)
        found = latest_between(self.recurrence(), self._after(self.last), until, self.limit)
        punctual = [each for each in found if now - each <= PUNCTUAL]
        missed = found[: len(found) - len(punctual)]
        if self.catch_up == "skip":
            return punctual
        return found if self.catch_up == "all" else punctual or missed[-1:]

    def next_time(self) -> float:
        """Return the first time after the last one that was dealt with, infinite without one."""
        if self.queued is not None:
            return self.last
        return next(iter(next_times(self, self.last, 1)), inf)

    def _after(self, time: float) -> float:
        """Return the time after which its times are searched; the bound `start` belongs to them."""
        return time if self.start is None else max(time, self.start - 0.001)

    def execution_name(self, time: float) -> str:
        """Return the name of the execution of a time: every process derives the same one."""
        moment = re.sub(r"\.000|[-:]", "", format_timestamp(time))
        return f"{self.name}-{moment.replace('.', '')}"

    def data(self, time: float) -> Json:
        """Return the input of the execution of a time."""
        when = format_timestamp(time).replace(".000Z", "Z")
        if self.input is ABSENT:
            return {"schedule": self.name, "scheduledTime": when}
        region, account = self.machine.split(":")[3:5]
        texts = {
            "scheduled-time": when,
            "schedule-arn": f"arn:aws:scheduler:{region}:{account}:schedule/default/{self.name}",
            "execution-id": self.execution_name(time),
        }
        return _filled(self.input, texts)


def _filled(value: Json, texts: dict[str, str]) -> Json:
    """Return a value with the keywords of AWS's scheduler replaced in its texts."""
    if isinstance(value, str):
        return _KEYWORD.sub(lambda found: texts[found[1]], value)
    if isinstance(value, list):
        return [_filled(each, texts) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, texts) for key, each in value.items()}
    return value


def next_times(schedule: Schedule, after: float, most: int) -> list[float]:
    """Return the next times of a schedule, none if it is paused.

    Args:
        schedule: The schedule.
        after: Times up to this one are left out.
        most: Maximum number of times.
    """
    if schedule.paused:
        return []
    end = inf if schedule.end is None else schedule.end
    times = schedule.recurrence().following(schedule._after(after))
    return [*islice(takewhile(lambda each: each <= end, times), most)]


def save_schedule(session: Session, schedule: Schedule, now: float) -> Schedule:
    """Check a schedule and store it; one of the same name is replaced, but not what it did.

    Args:
        session: The store.
        schedule: The schedule.
        now: Current time in epoch seconds; if its times have changed, only later ones count.

    Raises:
        AslError: A part of it is wrong.
    """
    _check(session, schedule)
    known = _found(session, schedule.name)
    if known is None:
        made = replace(schedule, created=float(floor(now)), last=now)
    else:
        made = replace(
            schedule, created=known.created, latest=known.latest, skipped=known.skipped, last=now
        )
        if all(getattr(known, name) == getattr(schedule, name) for name in _TIMING):
            made = replace(made, last=known.last, queued=known.queued)
    if not schedule.paused and not next_times(made, now, 1):
        raise AslError(f"the schedule {schedule.name!r} has no time in the future")
    put_schedule(session, made)
    session.flush()
    return made


def _check(session: Session, schedule: Schedule) -> None:
    """Raise AslError for a wrong schedule."""
    if not _NAME.fullmatch(schedule.name):
        raise AslError(
            f"{schedule.name[:80]!r} cannot be the name of a schedule: it has 1 to 60 letters, "
            "digits, '.', '_' and '-', and begins with a letter or digit"
        )
    found = resolve_arn(session, schedule.machine)
    if found is None:
        raise AslError(f"there is no {MACHINE} {schedule.machine!r}")
    if schedule.catch_up not in CATCH_UPS:
        raise AslError(f"the catch-up policy is one of {', '.join(CATCH_UPS)}")
    if schedule.overlap not in OVERLAPS:
        raise AslError(f"the overlap policy is one of {', '.join(OVERLAPS)}")
    if not 1 <= schedule.limit <= MOST:
        raise AslError(f"the limit of the catch-up policy is 1 to {MOST}")
    if schedule.start is not None and schedule.end is not None and schedule.end < schedule.start:
        raise AslError("the schedule ends before it starts")


def pause_schedule(session: Session, name: str, paused: bool, now: float) -> Schedule:
    """Pause or resume a schedule; times that pass while it is paused are not made up for.

    Raises:
        ScheduleNotFound: There is no such schedule.
    """
    schedule = find_schedule(session, name)
    if schedule.paused != paused:
        schedule = replace(schedule, paused=paused, last=max(now, schedule.last), queued=None)
        put_schedule(session, schedule)
        session.flush()
    return schedule


def delete_schedule(session: Session, name: str) -> None:
    """Delete a schedule; its executions stay.

    Raises:
        ScheduleNotFound: There is no such schedule.
    """
    delete_resource(session, _key(find_schedule(session, name).name))
    session.flush()


def find_schedule(session: Session, name: str) -> Schedule:
    """Return a schedule.

    Raises:
        ScheduleNotFound: There is none of this name.
        StoreDamaged: Its row is damaged.
    """
    found = _found(session, name)
    if found is None:
        raise ScheduleNotFound(f"there is no schedule {name[:80]!r}")
    return found


def list_schedules(session: Session) -> list[Schedule]:
    """Return all schedules by name.

    Raises:
        StoreDamaged: A row is damaged.
    """
    return [_read(session, each) for each in list_resources(session, KIND, "")]


def put_schedule(session: Session, schedule: Schedule) -> None:
    """Store a schedule with the next commit."""
    body: dict[str, Any] = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
    if schedule.input is ABSENT:
        del body["input"]
    put_resource(session, Resource(_key(schedule.name), KIND, "", 0, body))


def _found(session: Session, name: str) -> Schedule | None:
    row = find_resource(session, _key(name))
    return None if row is None else _read(session, row)


def _key(name: str) -> str:
    return f"{KIND}:{name}"


def _read(session: Session, row: Resource) -> Schedule:
    with session.damage_reports(f"the resource {row.arn!r}"):
        return Schedule(**row.body)
