"""Looking at the executions of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from asl.engine.checkpoints import Checkpoint
from asl.engine.events import Event
from asl.engine.result import Result
from asl.executions.base import StoreBase
from asl.executions.execution_reader import EventFeed
from asl.executions.locking import interrupted_executions, is_interrupted
from asl.program import Program
from asl.stores.checkpoints import read_checkpoints
from asl.stores.executions import (
    Stored,
    descendants,
    due_executions,
    list_executions,
    top_of,
)
from asl.stores.workers import Workers

__all__ = ["StoreReader"]


class StoreReader(StoreBase):
    """The executions of a store, to look at: their results, histories and what they wait for."""

    def executions(
        self, *, status: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[Stored]:
        """Return a page of executions, the newest first, without those that others started.

        All of them, or those with a *status* (`"PAUSED"`); at most *limit*. The `number` of the
        last one, given as *before*, asks for the next page. Raises AslError for what is no status.
        """
        return list_executions(self.session, status=status, before=before, limit=limit)

    def descendants(self, name: str) -> list[Stored]:
        """Return the executions that one has started, and those that they have, in this order."""
        return descendants(self.session, self.get(name).number)

    def root(self, name: str) -> str:
        """Return the name of the execution that has led to this one; of a top one its own."""
        return top_of(self.session, self.get(name).name)

    def program(self, name: str) -> Program:
        """Return the program by which an execution goes on; raises ExecutionNotFound."""
        return self._reader.program(self.get(name))

    def events(self, name: str, *, wait: Callable[[], object] | None = None) -> Iterator[Event]:
        """Yield the history of an execution as far as it is written.

        With *wait* it is followed to its end, also while another process is at work on it: *wait*
        is called whenever there is nothing new.
        """
        return self._reader.events(name, wait)

    def feed(self, name: str) -> EventFeed:
        """Return what reads the history of an execution piece by piece, as it is written."""
        return EventFeed(self._reader, name)

    def result(self, name: str, *, with_history: bool = True) -> Result:
        """Return what an execution has come to.

        Args:
            name: Its name or id.
            with_history: Whether the result has the history so far. Without it a result is read
                in the same time for any length, and its `visited` and `events` are empty.
        """
        known = self.get(name)
        return self._reader.result(known, self._reader.program(known), with_history)

    def checkpoints(self, name: str | None = None) -> list[Checkpoint]:
        """Return what an execution has saved, or all of them have, the oldest first."""
        if name is not None:
            return self._reader.checkpoints(self.get(name))
        return read_checkpoints(self.session)

    def command(self, name: str) -> tuple[list[str], str] | None:
        """Return the options that bound the names of an execution, and the folder of their paths.

        None where it was not run by the command line.
        """
        found = self._reader.bound(self.get(self.root(name)))["command"]
        return None if found is None else (found["options"], found["folder"])

    def due(self) -> list[str]:
        """Return the names of the paused executions that have something to go on with.

        A request was answered, or the time for an escalation or a timeout has come.
        """
        return due_executions(self.session, self.clock.now())

    def is_interrupted(self, name: str) -> bool:
        """Whether an execution has not ended or paused, and nobody is at work on it any more."""
        return is_interrupted(self.session, self.get(name))

    def interrupted(self) -> list[str]:
        """Return the names of those whose process has died, the oldest first."""
        return interrupted_executions(self.session)

    def needs(self, name: str) -> list[str]:
        """Return what an execution needs and no runner has bound, a sentence on each."""
        return self._workers.needs(self.get(name).number)

    def stuck(self) -> dict[str, list[str]]:
        """Return the executions that no runner can go on with, by name, with what they need."""
        return {name: needs for _, name, needs in self._workers.needing()}

    def workers(self) -> list[str]:
        """Return the ids of the runners that are at work on the store."""
        return self._workers.alive()

    @property
    def _workers(self) -> Workers:
        return Workers(self.session)
