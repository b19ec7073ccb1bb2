"""The scheduler, which starts executions at the times of schedules.

Several processes may run one on the same store: a schedule is dealt with under a lock, and the name
of an execution comes from the schedule and the time, so none is started twice.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from math import inf
from typing import Final

from asl.core.errors import AslError
from asl.engine.execution import execution_id
from asl.executions.errors import ExecutionBusy, ExecutionExists, ExecutionNotFound
from asl.executions.registrations import resolve_arn
from asl.executions.schedules import (
    Schedule,
    find_schedule,
    list_schedules,
    put_schedule,
)
from asl.executions.store import Store
from asl.stores.errors import StoreError
from asl.stores.executions import ENDED
from asl.stores.workers import lock_of

__all__ = ["Scheduler"]

POLL: Final = 1.0
"""Seconds between two looks at the schedules of the store."""
PAUSE: Final = 10.0
"""Seconds until another attempt when the store cannot be used."""


class Scheduler:
    """Starts the executions of a store's schedules.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Schedule, float]] = {}
        """The schedules with their next times."""
        self.lag = 0.0
        """Seconds between the time of the last start and the start."""

    async def run(self) -> None:
        """Start what is due until the task is cancelled."""
        while True:
            try:
                if self._store.runs_elsewhere:  # each look is a request to a server
                    await asyncio.to_thread(self.start_due)
                else:
                    self.start_due()
                pause = POLL
            except StoreError:  # the disk may be full, and have room later
                logging.getLogger("asl").exception("schedules cannot be read or started")
                pause = PAUSE
            wait = self._next() - self._store.clock.now()
            await asyncio.sleep(min(max(wait, 0.01), pause))

    def _next(self) -> float:
        return min((time for _, time in self._known.values()), default=inf)

    def start_due(self) -> list[str]:
        """Start what is due now, and return the names of the new executions.

        Raises:
            StoreError: The store cannot be read or written.
        """
        session, now = self._store.session, self._store.clock.now()
        known, self._known = self._known, {}
        started: list[str] = []
        for each in list_schedules(session):
            before = known.get(each.name)
            if before is None or before[0] != each:
                before = each, _next_time(each)
            if before[1] <= now:
                started += self._advance(each.name, now)
                current = find_schedule(session, each.name)
                before = current, _next_time(current)
            self._known[each.name] = before
        return started

    def _advance(self, name: str, now: float) -> list[str]:
        """Deal with the times of a schedule up to now, unless another process does."""
        session = self._store.session
        place = lock_of(f"schedule:{name}")
        if not session.connection.lock(place):
            return []
        try:
            schedule = find_schedule(session, name)
            advanced, started = self._started(schedule, now)
            if advanced != schedule:
                put_schedule(session, advanced)
                session.flush()
        finally:
            session.connection.unlock(place)
        return started

    def _started(self, schedule: Schedule, now: float) -> tuple[Schedule, list[str]]:
        """Start what is due of a schedule; return its new state and the executions."""
        queued = [] if schedule.queued is None else [schedule.queued]
        times = [*queued, *schedule.due(now)]
        done, started = replace(schedule, last=max(now, schedule.last), queued=None), list[str]()
        for time in times:
            busy = self._is_running(done.latest) and done.overlap != "allow"
            if busy and done.overlap == "cancel":
                self._cancel(done)
            elif busy and done.overlap == "queue" and done.queued is None:
                done = replace(done, queued=time)
                continue
            elif busy:
                done = replace(done, skipped=done.skipped + 1)
                continue
            done = self._start(done, time)
            if done.error is None and done.latest is not None:
                started.append(done.latest)
                self.lag = now - time
        if done.queued is not None and not started and times == queued:
            return schedule, []  # it still waits
        return done, started

    def _is_running(self, name: str | None) -> bool:
        if name is None:
            return False
        try:
            return self._store.get(name).status not in ENDED
        except ExecutionNotFound:  # it was deleted
            return False

    def _cancel(self, schedule: Schedule) -> None:
        assert schedule.latest is not None
        try:
            self._store.cancel(schedule.latest, f"the schedule {schedule.name!r} starts again")
        except StoreError:
            raise
        except AslError:  # it has ended meanwhile
            return

    def _start(self, schedule: Schedule, time: float) -> Schedule:
        """Start the execution of a time and return the new state of the schedule.

        A failure is recorded in the schedule: later times are tried again.
        """
        name = schedule.execution_name(time)
        try:
            found = resolve_arn(self._store.session, schedule.machine)
            if found is None:
                raise AslError(f"there is no {schedule.machine!r}")
            express = found.revision["type"] == "EXPRESS"
            arn = execution_id(found.machine.arn, name, express)
            program = found.program(self._store.reader)
            self._store.start(
                program,
                schedule.data(time),
                name=arn,
                express=express,
                requestor=schedule.user,
                origin=found.origin(),
            )
        except (ExecutionExists, ExecutionBusy):  # another process has started it
            return replace(schedule, latest=arn, error=None)
        except StoreError:
            raise
        except AslError as error:
            logging.getLogger("asl").warning("the schedule %r failed: %s", schedule.name, error)
            return replace(schedule, error=str(error))
        return replace(schedule, latest=arn, error=None)


def _next_time(schedule: Schedule) -> float:
    """Return the next time of a schedule; infinite if that is unknown."""
    try:
        return schedule.next_time()
    except AslError as error:  # the time zone may be unknown on this machine
        logging.getLogger("asl").warning("the schedule %r is ignored: %s", schedule.name, error)
        return inf
