"""Schedules: their times, and the executions that a scheduler starts at them."""

import asyncio
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("cronsim")

import asl
from asl.effects.clock import VirtualClock
from asl.executions.errors import ScheduleNotFound
from asl.executions.recurrence import latest_between, read_recurrence
from asl.executions.registrations import resolve_arn
from asl.executions.scheduler import Scheduler
from asl.executions.schedules import (
    Schedule,
    delete_schedule,
    find_schedule,
    list_schedules,
    next_times,
    pause_schedule,
    put_schedule,
    save_schedule,
)
from asl.service.arns import RequestScope
from asl.service.operations import perform
from asl.service.service import StatesService
from tests.stores.conftest import Place

pytestmark = pytest.mark.quick

SCOPE = RequestScope("111111111111", "us-east-1")
MACHINE = "arn:aws:states:us-east-1:111111111111:stateMachine:report"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5400, "End": True}}}


def times(expression: str, zone: str, after: str, most: int = 4) -> list[str]:
    """Return the next times of an expression in its time zone."""
    where = ZoneInfo(zone)
    start = datetime.fromisoformat(after).replace(tzinfo=where).timestamp()
    found = islice(read_recurrence(expression, zone, start).following(start), most)
    return [datetime.fromtimestamp(each, where).isoformat()[:-6] for each in found]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 12 * * 1-5", "2026-11-27T13:00", ["2026-11-30T12:00:00", "2026-12-01T12:00:00"]),
        ("cron(0 12 ? * MON-FRI *)", "2026-11-27T13:00", ["2026-11-30T12:00:00"]),
        ("cron(0 12 ? * 2-6 *)", "2026-11-27T13:00", ["2026-11-30T12:00:00"]),
        ("cron(0 12 ? * 1 *)", "2026-11-27T13:00", ["2026-11-29T12:00:00"]),
        ("cron(0 12 ? * 2/2 *)", "2026-11-27T13:00", ["2026-11-30T12:00:00"]),
        ("cron(0 12 ? * L *)", "2026-11-27T13:00", ["2026-11-28T12:00:00"]),
        ("cron(0 12 ? * 6L *)", "2026-11-27T13:00", ["2026-12-25T12:00:00"]),
        ("cron(0 12 ? * FRI#3 *)", "2026-11-27T13:00", ["2026-12-18T12:00:00"]),
        ("cron(0 12 L * ? *)", "2026-11-27T13:00", ["2026-11-30T12:00:00"]),
        ("cron(0 12 LW 1 ? *)", "2026-11-27T13:00", ["2027-01-29T12:00:00"]),
        ("cron(0 0 29 2 ? 2026-2040)", "2026-11-27T13:00", ["2028-02-29T00:00:00"]),
        ("cron(0 0 1 1 ? 2030/5)", "2026-11-27T13:00", ["2030-01-01T00:00:00"]),
        ("rate(90 minutes)", "2026-11-27T13:00", ["2026-11-27T14:30:00", "2026-11-27T16:00:00"]),
        ("rate(1 day)", "2026-11-27T13:00", ["2026-11-28T13:00:00"]),
        ("at(2026-12-24T18:00:00)", "2026-11-27T13:00", ["2026-12-24T18:00:00"]),
    ],
)
def test_times_of_an_expression(expression: str, after: str, expected: list[str]) -> None:
    """Rates, single times, fields of cron and of AWS."""
    assert times(expression, "Europe/Berlin", after)[: len(expected)] == expected


def test_daylight_saving_time() -> None:
    """In a gap cron's time comes after it and AWS's is left out; a repeated time counts once."""
    gap, repeated = "2026-03-28T12:00", "2026-10-24T12:00"
    assert times("30 2 * * *", "Europe/Berlin", gap, 2) == [
        "2026-03-29T03:00:00",
        "2026-03-30T02:30:00",
    ]
    assert times("cron(30 2 * * ? *)", "Europe/Berlin", gap, 1) == ["2026-03-30T02:30:00"]
    for expression in ("30 2 * * *", "cron(30 2 * * ? *)"):
        assert times(expression, "Europe/Berlin", repeated, 2) == [
            "2026-10-25T02:30:00",
            "2026-10-26T02:30:00",
        ]
    hours = times("0 * * * *", "Europe/Berlin", "2026-10-25T01:00", 3)
    assert hours == ["2026-10-25T02:00:00", "2026-10-25T02:00:00", "2026-10-25T03:00:00"]
    assert times("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", 1) == ["2026-04-24T01:00:00"]


@pytest.mark.parametrize("expression", ["17 2 * * *", "*/45 * * * *", "cron(0/50 * * * ? *)"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/New_York"])
def test_the_latest_times_are_those_that_follow(expression: str, zone: str) -> None:
    """Looking back from any time finds what looking forward does."""
    start = datetime(2026, 3, 27, tzinfo=ZoneInfo(zone)).timestamp()
    found = read_recurrence(expression, zone, start)
    all_of_them = [*islice(found.following(start), 240)]
    for last in range(40, 240, 31):
        until = all_of_them[last] + 1
        assert latest_between(found, start, until, 5) == all_of_them[last - 4 : last + 1]
    assert latest_between(found, start, all_of_them[2], 50) == all_of_them[:3]


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("every day", "use 'rate(5 minutes)'"),
        ("61 * * * *", "bad minute"),
        ("* * * * * *", "use 'rate(5 minutes)'"),
        ("rate(1 minutes)", "rate(1 minute)"),
        ("rate(0 minutes)", "rate(1 minute)"),
        ("at(2026-13-01T00:00:00)", "month"),
        ("cron(0 12 * * * *)", "must be '?'"),
        ("cron(0 12 ? * *)", "six fields"),
        ("cron(0 12 3W * ? *)", "'LW' only"),
        ("cron(0 12 L-3 * ? *)", "'L-n'"),
        ("cron(0 12 ? * 8 *)", "bad day-of-week"),
        ("cron(0 12 ? * 5#9 *)", "bad day-of-week"),
        ("cron(0 12 1 * ? 1900)", "bad year"),
        ("cron(0 12 1 * ? 2000)", "names no time"),
        ("cron(0 12 31 2 ? *)", "bad day-of-month"),
        ("1" * 300, "at most 256"),
    ],
)
def test_wrong_expressions(expression: str, part: str) -> None:
    """Each is refused with what is wrong."""
    with pytest.raises(asl.AslError) as refusal:
        read_recurrence(expression, "UTC", 1.8e9)
    assert part in str(refusal.value)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "..", "../../etc/passwd", "Europe", "a\0b"])
def test_wrong_time_zones(zone: str) -> None:
    """Also paths and folders of the database are none."""
    with pytest.raises(asl.AslError, match="there is no time zone"):
        read_recurrence("0 0 * * *", zone, 0)


# Starting ----------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(place: Place, clock: VirtualClock) -> Iterator[asl.Store]:
    with asl.open_store(place, clock=clock) as store:
        register(store, PASS)
        yield store


def register(store: asl.Store, definition: dict[str, Any]) -> None:
    """Register the state machine `report`, or replace its definition."""
    service, text = StatesService(store), json.dumps(definition)
    role = "arn:aws:iam::111111111111:role/r"
    request = {"name": "report", "definition": text, "roleArn": role}
    if resolve_arn(store.session, MACHINE) is not None:
        update = {"stateMachineArn": MACHINE, "definition": text}
        asyncio.run(perform(service, "UpdateStateMachine", update, SCOPE))
    else:
        asyncio.run(perform(service, "CreateStateMachine", request, SCOPE))


def add(store: asl.Store, expression: str = "rate(1 hour)", **more: Any) -> Schedule:
    made = Schedule(name="hourly", machine=MACHINE, expression=expression, **more)
    return save_schedule(store.session, made, store.clock.now())


def pass_time(clock: VirtualClock, seconds: float) -> None:
    clock.elapsed += seconds


def run(store: asl.Store, clock: VirtualClock) -> None:
    """Run what is due until nothing is."""

    async def main() -> None:
        async with store.runner() as runner:
            await runner.drain()

    with asyncio.Runner(loop_factory=clock.new_event_loop) as loop:
        loop.run(main())


def short(names: list[str]) -> list[str]:
    return [each.rpartition(":")[2] for each in names]


def test_executions_at_their_times(store: asl.Store, clock: VirtualClock) -> None:
    """They are named after the schedule and the time, which their input has."""
    add(store)
    scheduler = Scheduler(store)
    assert scheduler.start_due() == []
    pass_time(clock, 3599)
    assert scheduler.start_due() == []
    pass_time(clock, 2)
    (name,) = scheduler.start_due()
    assert name == MACHINE.replace("stateMachine", "execution") + ":hourly-20240101T010000Z"
    assert store.input(name) == {"schedule": "hourly", "scheduledTime": "2024-01-01T01:00:00Z"}
    assert scheduler.lag == 1
    assert scheduler.start_due() == []
    assert Scheduler(store).start_due() == []
    run(store, clock)
    assert store.get(name).status == "SUCCEEDED"


def test_two_schedulers_start_each_execution_once(place: Place, clock: VirtualClock) -> None:
    """Also one that died before it had noted the start."""
    with asl.open_store(place, clock=clock) as store:
        register(store, PASS)
        add(store)
        first, second = Scheduler(store), Scheduler(store)
        first.start_due()
        second.start_due()
        before = find_schedule(store.session, "hourly")
        pass_time(clock, 3600)
        assert len(first.start_due()) == 1
        assert second.start_due() == []
        put_schedule(store.session, before)  # as if it had died after the start
        second.start_due()
        assert len(store.executions()) == 1


@pytest.mark.parametrize(
    ("policy", "hours"), [("skip", []), ("last", [5]), ("all", [3, 4, 5])], ids=str
)
def test_catch_up(store: asl.Store, clock: VirtualClock, policy: Any, hours: list[int]) -> None:
    """Missed times are left out, made up for once, or each of the latest ones."""
    add(store, catch_up=policy, limit=3, overlap="allow")
    pass_time(clock, 5 * 3600 + 1200)
    names = short(Scheduler(store).start_due())
    assert names == [f"hourly-20240101T0{hour}0000Z" for hour in hours]
    pass_time(clock, 2400)
    assert short(Scheduler(store).start_due()) == ["hourly-20240101T060000Z"]


def test_overlap(store: asl.Store, clock: VirtualClock) -> None:
    """While an execution runs, the next one is skipped, queued, started, or replaces it."""
    register(store, WAIT)
    started: dict[str, list[str]] = {}
    statuses: dict[str, list[str]] = {}
    for policy in ("skip", "queue", "allow", "cancel"):
        made = Schedule(name=policy, machine=MACHINE, expression="rate(1 hour)", overlap=policy)  # type: ignore[arg-type]
        save_schedule(store.session, made, clock.now())
    scheduler = Scheduler(store)
    begin = clock.now()
    for half_hour in range(1, 11):
        clock.elapsed = begin + 1800 * half_hour - clock.start
        for name in short(scheduler.start_due()):
            policy, _, time = name.partition("-")
            started.setdefault(policy, []).append(f"{time[9:13]} at {half_hour / 2}")
        run(store, clock)
    for each in store.executions():
        policy = each.name.rpartition(":")[2].partition("-")[0]
        statuses.setdefault(policy, []).append(each.status)
    assert started["allow"] == [f"0{hour}00 at {hour}.0" for hour in range(1, 6)]
    assert started["cancel"] == started["allow"]
    assert statuses["cancel"] == ["PAUSED", *4 * ["ABORTED"]]
    assert started["skip"] == ["0100 at 1.0", "0300 at 3.0", "0500 at 5.0"]
    assert find_schedule(store.session, "skip").skipped == 2
    assert started["queue"] == ["0100 at 1.0", "0200 at 3.0", "0300 at 5.0"]


def test_bounds_and_pauses(store: asl.Store, clock: VirtualClock) -> None:
    """Nothing is started before the start, after the end or while the schedule is paused."""
    now = clock.now()
    add(store, start=now + 7200, end=now + 5 * 3600)
    assert next_times(find_schedule(store.session, "hourly"), now, 9) == [
        now + 3600 * hour for hour in (3, 4, 5)
    ]
    add(store, "0 * * * *", start=now + 7200, end=now + 5 * 3600, overlap="allow")
    assert next_times(find_schedule(store.session, "hourly"), now, 9) == [
        now + 3600 * hour for hour in (2, 3, 4, 5)
    ]
    scheduler = Scheduler(store)
    pass_time(clock, 2 * 3600)
    assert len(scheduler.start_due()) == 1
    assert pause_schedule(store.session, "hourly", True, clock.now()).paused
    pass_time(clock, 3600 + 60)
    assert scheduler.start_due() == []
    pause_schedule(store.session, "hourly", False, clock.now())
    pass_time(clock, 3600)
    assert short(scheduler.start_due()) == ["hourly-20240101T040000Z"]
    pass_time(clock, 48 * 3600)
    assert short(scheduler.start_due()) == ["hourly-20240101T050000Z"]
    assert scheduler.start_due() == []


def test_keywords_of_inputs(store: asl.Store, clock: VirtualClock) -> None:
    """The input may contain the time, the schedule and the execution, as with AWS."""
    data = {
        "at": "<aws.scheduler.scheduled-time>",
        "of": ["<aws.scheduler.schedule-arn>", "run <aws.scheduler.execution-id>!", 7],
    }
    add(store, input=data)
    pass_time(clock, 3600)
    (name,) = Scheduler(store).start_due()
    assert store.input(name) == {
        "at": "2024-01-01T01:00:00Z",
        "of": [
            "arn:aws:scheduler:us-east-1:111111111111:schedule/default/hourly",
            "run hourly-20240101T010000Z!",
            7,
        ],
    }


def test_a_failed_start_is_recorded(store: asl.Store, clock: VirtualClock) -> None:
    """The next time is tried again."""
    add(store, input="x" * 300_000)
    pass_time(clock, 3600)
    scheduler = Scheduler(store)
    assert scheduler.start_due() == []
    assert "300,002 characters" in str(find_schedule(store.session, "hourly").error)
    add(store)
    pass_time(clock, 3600)
    assert len(scheduler.start_due()) == 1
    assert find_schedule(store.session, "hourly").error is None


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"name": "../x"}, "cannot be the name"),
        ({"name": "x" * 61}, "cannot be the name"),
        ({"machine": "arn:aws:states:us-east-1:111111111111:stateMachine:no"}, "there is no"),
        ({"catch_up": "some"}, "skip, last, all"),
        ({"overlap": "some"}, "skip, queue, allow, cancel"),
        ({"limit": 0}, "1 to 1000"),
        ({"start": 5.0, "end": 4.0}, "ends before"),
        ({"end": 4.0}, "no time in the future"),
        ({"expression": "at(2020-01-01T00:00:00)"}, "no time in the future"),
    ],
)
def test_wrong_schedules(store: asl.Store, fields: dict[str, Any], part: str) -> None:
    """Each is refused and nothing is stored."""
    given: dict[str, Any] = {"name": "n", "machine": MACHINE, "expression": "rate(1 day)"}
    with pytest.raises(asl.AslError, match=part):
        save_schedule(store.session, Schedule(**{**given, **fields}), store.clock.now())
    assert list_schedules(store.session) == []


def test_deleting(store: asl.Store, clock: VirtualClock) -> None:
    """A deleted schedule starts nothing."""
    add(store)
    scheduler = Scheduler(store)
    scheduler.start_due()
    delete_schedule(store.session, "hourly")
    pass_time(clock, 3600)
    assert scheduler.start_due() == []
    with pytest.raises(ScheduleNotFound):
        delete_schedule(store.session, "hourly")


def test_the_loop_of_a_scheduler(store: asl.Store, clock: VirtualClock) -> None:
    """It starts each execution at its time."""
    add(store, "15,45 * * * *", timezone="Europe/Berlin")

    async def main() -> None:
        task = asyncio.create_task(Scheduler(store).run())
        async with store.runner():
            await asyncio.sleep(5000)
        task.cancel()

    with asyncio.Runner(loop_factory=clock.new_event_loop) as loop:
        loop.run(main())
    found = [(each.name[-16:], each.status, each.started) for each in store.executions()]
    assert [each[:2] for each in found] == [
        ("20240101T011500Z", "SUCCEEDED"),
        ("20240101T004500Z", "SUCCEEDED"),
        ("20240101T001500Z", "SUCCEEDED"),
    ]
    assert all(each[2] % 1800 - 900 < 1.1 for each in found)
