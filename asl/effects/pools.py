"""SharedBudgets that last as long as the process, or as the virtual time of one clock."""

from collections.abc import Callable
from threading import Lock

from asl.core.values import Json
from asl.effects.clock import Clock, WallClock
from asl.engine.pools import SharedBudgets

__all__ = ["ProcessBudgets", "shared_budgets_of"]


class ProcessBudgets:
    """Protocol `asl.engine.pools.SharedBudgets`, for all threads of the process."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}
        self.lock = Lock()

    def change(self, name: str, make: Callable[[Json], Json]) -> None:
        """Replace a shared budget by what *make* returns for it."""
        with self.lock:
            self.kept[name] = make(self.kept.get(name))


_OF_PROCESS = ProcessBudgets()


def shared_budgets_of(clock: Clock) -> SharedBudgets:
    """Return the shared budgets of the executions on a clock: there is one real time."""
    if isinstance(clock, WallClock):
        return _OF_PROCESS
    budgets: SharedBudgets | None = getattr(clock, "budgets", None)
    if budgets is None:
        budgets = clock.budgets = ProcessBudgets()  # type: ignore[attr-defined]  # for this module
    return budgets
