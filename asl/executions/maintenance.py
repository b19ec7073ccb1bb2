"""Maintenance of a store: deletion, copies, transfer and verification."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from asl.bindings import bind
from asl.core.values import Json
from asl.engine.checkpoints import Storage
from asl.executions import retention
from asl.executions.reader import StoreReader
from asl.stores.pools import StoreBudgets
from asl.stores.transfer import export_executions, import_execution
from asl.stores.verification import find_faults

__all__ = ["StoreMaintenance"]


class StoreMaintenance(StoreReader):
    """The executions of a store, to delete, copy, transfer and verify."""

    def delete(self, name: str) -> None:
        """Delete an execution that has ended, with all that it started.

        Its history, requests and checkpoints are deleted, also from storages that can delete
        (`__delitem__`). What it spent from a pool stays spent.

        Raises:
            ExecutionNotFound: There is none of this name.
            ExecutionBusy: Another process is at work on it.
            AslError: It has not ended, or another execution has started it.
        """
        retention.delete(self._executor, name, self._storages())

    def prune(self, keep: str | float, *, dry_run: bool = False) -> list[str]:
        """Delete the executions that ended longer ago than *keep*; running and paused ones stay.

        Args:
            keep: A duration such as `"30d"`, or seconds.
            dry_run: Delete nothing, and return what would be deleted.

        Returns:
            The names of the deleted executions, the oldest first.
        """
        return retention.prune(self._executor, keep, self.clock.now(), self._storages(), dry_run)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store into a new file, also while executions run; raises StoreError.

        The copy has all that was recorded when it began. Checkpoints in other storages are not in
        it.
        """
        self.session.flush()
        self.session.connection.backup(path)

    def export(
        self, names: Sequence[str] | None = None, *, damaged: list[str] | None = None
    ) -> Iterator[Json]:
        """Yield executions as JSON for `import_execution`, with all that they started.

        Args:
            names: The executions; None for all.
            damaged: Takes a sentence on each damaged execution, which is left out.
        """
        tops = None if names is None else [self.root(each) for each in names]
        return export_executions(self.session, tops, [] if damaged is None else damaged)

    def import_execution(self, line: Json) -> str:
        """Add an exported execution; returns its name.

        Raises StoreError, and changes nothing, where its digest is wrong or its name is taken.
        """
        self.session.insist_writable()
        return import_execution(self.session, line)

    def _storages(self) -> Mapping[str, Storage]:
        return bind(self._given({})).services.storages

    def faults(self, report: Callable[[str], object] = lambda part: None) -> Iterator[str]:
        """Yield what is wrong with the file, a sentence for each fault; nothing for a whole one.

        Args:
            report: Takes the name of each part before it is looked at.
        """
        return find_faults(self._sessions.backend, self.session, report)

    def release_reservations(self) -> list[str]:
        """Release what is held of shared budgets for nothing.

        That is all that executions hold that have ended, and what is held for the calls of those
        whose process has died.

        Returns:
            The names of the budgets of which something was held.
        """
        released = list(StoreBudgets(self.session).release_lost())
        self.session.flush()
        return released
