"""Where an execution stands, by its events: read one by one, and none of them is held for long."""

from collections.abc import Iterable
from operator import attrgetter

from asl.cli.places import Path
from asl.core.values import Json
from asl.engine.events import Event
from asl.states.blocks.progress import UPDATED

__all__ = ["Standing"]


class Standing:
    """The states in which an execution is, what they report, and the Map that failed last."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.percentage: float | None = None
        """The progress of the workflow, None where it is not tracked."""
        self.failed_items: list[dict[str, Json]] = []
        """The distributed Map with failed items that ended last, as in `Result.failed_items`."""
        self._inside: dict[Path, Event] = {}
        """The events with which states were entered, by their machines."""
        self._progress: dict[Path, Event] = {}
        """The latest progress of the states that have not been left, by their paths."""
        for event in events:
            self._add(event)

    def states(self, most: int) -> list[Event]:
        """Return with which events the first states were entered that have not been left."""
        around = {each[:length] for each in self._inside for length in range(len(each))}
        found = [event for event in self._inside.values() if event.path not in around]
        return sorted(found, key=attrgetter("id"))[:most]

    def progress(self, entered: Event) -> Json:
        """Return what a state has reported of its progress since it was entered, None if nothing.

        Args:
            entered: The event with which it was entered.
        """
        reported = self._progress.get(entered.path)
        return None if reported is None else reported.details

    def _add(self, event: Event) -> None:
        machine = event.path[:-1]
        if event.type == UPDATED:
            if event.path:
                self._progress[event.path] = event
            else:
                self.percentage = event.details["percentage"]
        elif event.type.endswith("StateEntered"):
            self._inside[machine] = event
            self._progress.pop(event.path, None)
        elif event.type.endswith("StateExited"):
            self._inside.pop(machine, None)
            self._progress.pop(event.path, None)
            self._leave_within(event.path)
        elif event.type.startswith("MapIteration") and not event.type.endswith("Started"):
            self._inside.pop(event.path, None)
        elif event.type == "ExecutionResumed" and "checkpoint" in event.details:
            self._inside.clear()
        elif "itemCounts" in event.details:
            counts, failures = event.details["itemCounts"], event.details["failures"]
            self.failed_items = [{"path": [*event.path], **counts, "failures": failures}]

    def _leave_within(self, path: Path) -> None:
        """Leave the states within a state that has been left."""
        length = len(path)
        for each in [each for each in self._inside if each[:length] == path]:
            del self._inside[each]
        for each in [each for each in self._progress if each[:length] == path]:
            del self._progress[each]
