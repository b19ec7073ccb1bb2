"""Tabs that last as long as the process, or as the virtual time of one clock."""

from collections.abc import Callable
from threading import Lock

from asl.core.values import Json
from asl.engine.tabs import Tabs
from asl.hosts.clock import Clock, WallClock

__all__ = ["ProcessTabs", "tabs_of"]


class ProcessTabs:
    """Protocol `asl.engine.tabs.Tabs`, for all threads of the process."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}
        self.lock = Lock()

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a tab by what *make* makes of it."""
        with self.lock:
            self.kept[name] = make(self.kept.get(name))


_OF_PROCESS = ProcessTabs()


def tabs_of(clock: Clock) -> Tabs:
    """Return the tabs for executions in the time of a clock: there is one real time."""
    if isinstance(clock, WallClock):
        return _OF_PROCESS
    tabs: Tabs | None = getattr(clock, "tabs", None)
    if tabs is None:
        tabs = clock.tabs = ProcessTabs()  # type: ignore[attr-defined]  # of no interest otherwise
    return tabs
