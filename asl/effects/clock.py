"""Clocks: the wall clock, and a virtual one that jumps to the next deadline.

The virtual clock is an event loop of its own. When nothing is ready and no real work (a thread, a
process) is running, its selector advances the time instead of waiting, so a year of Waits takes
milliseconds. Real work takes no virtual time, so that a workflow takes the same time in every run;
but a timer that has been waited for in real time expires, and ends work that hangs. While an answer
from outside is pending, time does not advance until its patience is over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from asl.core.errors import AslError

if TYPE_CHECKING:
    import asyncio

__all__ = ["Clock", "VirtualClock", "WallClock", "steady_seconds"]

EPOCH_2024 = 1_704_067_200.0
"""Default start of virtual time: 2024-01-01T00:00:00Z."""


EARLIEST, LATEST = -62_135_596_800.0, 253_370_764_800.0
"""First instant of the year 1 and of the year 9999."""

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux's clock that cannot be set and counts while the machine is suspended."""


class Clock(Protocol):
    """The time of an execution, in epoch seconds, and the event loop that keeps it."""

    external_waits: dict[object, float]
    """Pending answers from outside the run, with their remaining real seconds."""

    def now(self) -> float:
        """Return the current time in epoch seconds."""
        ...

    def real_begins(self) -> None:
        """Register a running call outside the event loop."""
        ...

    def real_ends(self) -> None:
        """Unregister such a call."""
        ...

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop whose timers follow this clock."""
        ...


steady_seconds: Callable[[], float] = (
    time.monotonic if _BOOT_TIME is None else partial(time.clock_gettime, _BOOT_TIME)
)
"""Returns the seconds of a clock that cannot be set."""


class WallClock:
    """Real time, independent of changes to the system clock.

    The system's time is read once; later times add the seconds of a clock that cannot be set. So no
    timer becomes longer or shorter, and no time in a history goes back, when the system clock is
    set. If the system has such a clock, it also counts while the machine is suspended.
    """

    now: Callable[[], float]
    """Returns the start time plus the seconds since."""

    def __init__(self) -> None:
        self.external_waits: dict[object, float] = {}
        start, seconds = time.time() - steady_seconds(), steady_seconds
        self.now = lambda: start + seconds()  # called with every effect: avoids lookups

    def real_begins(self) -> None:
        """Do nothing."""

    real_ends = real_begins

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an ordinary event loop."""
        import asyncio

        return asyncio.new_event_loop()


class VirtualClock:
    """Time that advances only when everything waits for it."""

    def __init__(self, start: float = EPOCH_2024) -> None:
        if not isinstance(start, int | float):
            raise AslError(f"VirtualClock start must be seconds since the epoch, got {start!r}")
        if not EARLIEST <= start <= LATEST:
            raise AslError(
                f"VirtualClock start must be between the years 1 and 9998, got {start!r}"
            )
        self.start = start
        self.elapsed = 0.0
        self.waited_seconds = 0.0
        """Real seconds of waiting for running work since the last timer."""
        self.real_work = 0
        self.external_waits: dict[object, float] = {}

    def now(self) -> float:
        """Return the virtual time in epoch seconds."""
        return self.start + self.elapsed

    def real_begins(self) -> None:
        """Make timers wait in real time."""
        self.real_work += 1

    def real_ends(self) -> None:
        """Reset the waiting time once no real work is running."""
        self.real_work -= 1
        if not self.real_work:
            self.waited_seconds = 0.0

    def work(self, seconds: float) -> None:
        """Advance by the time of a computation, so that a timeout ends work that never waits."""
        self.elapsed += seconds

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop that uses this clock's time."""
        return _virtual_loop(self)


def _virtual_loop(clock: VirtualClock) -> asyncio.AbstractEventLoop:
    import asyncio
    import selectors

    class JumpingSelector(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> list[Any]:
            if timeout is not None and timeout <= 0:
                return super().select(timeout)
            if clock.real_work:
                begun = time.monotonic()
                ready = super().select(timeout)
                clock.waited_seconds += max(
                    time.monotonic() - begun, 0.0 if ready else timeout or 0.0
                )
                if not ready:
                    clock.elapsed += clock.waited_seconds
                    clock.waited_seconds = 0.0
                return ready
            patience = max(clock.external_waits.values(), default=0.0)
            ready = super().select(patience)
            if ready:
                return ready
            for awaited in clock.external_waits:
                clock.external_waits[awaited] = 0.0
            if timeout is None:
                raise AslError(
                    "nothing can happen any more on the virtual clock: an agent waits for "
                    "something that no timer, thread or process of this run will bring"
                )
            clock.elapsed += timeout
            return []

    class VirtualLoop(asyncio.SelectorEventLoop):
        def __init__(self) -> None:
            super().__init__(JumpingSelector())

        # A timer is due when `time + resolution` exceeds it. After years of virtual seconds a float
        # cannot represent the usual nanosecond, and no timer would ever be due.
        @property
        def _clock_resolution(self) -> float:
            """Do nothing: the base class would set the wall clock's."""
            return 2 * math.ulp(clock.elapsed)

        @_clock_resolution.setter
        def _clock_resolution(self, seconds: float) -> None:
            """Take no other one: the base class sets that of the wall clock."""

        def time(self) -> float:
            return clock.elapsed + clock.waited_seconds

        async def shutdown_default_executor(self, timeout: float | None = None) -> None:
            """Wait for the threads of libraries, without a timeout."""
            clock.real_begins()
            try:
                await super().shutdown_default_executor()
            finally:
                clock.real_ends()

    return VirtualLoop()
