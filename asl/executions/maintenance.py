"""Maintenance of a store: deletion, copies, transfer and verification."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from asl.bindings import bind
from asl.core.values import Json
from asl.engine.checkpoints import Storage
from asl.executions.reader import StoreReader
from asl.executions.retention import Retention, delete, prune
from asl.stores.pools import StoreBudgets
from asl.stores.transfer import export_executions, import_execution
from asl.stores.verification import find_faults

__all__ = ["StoreMaintenance"]


class StoreMaintenance(StoreReader):
    """Deletion, copies, transfer and verification of the executions of a store."""

    def delete(self, name: str) -> None:
        """Delete an ended execution and its descendants.

        Its history, requests and checkpoints are deleted, also from storages that can delete
        (`__delitem__`). Its spending from pools remains.

        Raises:
            ExecutionNotFound: There is no such execution.
            ExecutionBusy: Another process runs it.
            AslError: It has not ended, or another execution started it.
        """
        delete(self._executor, name, self._storages())

    def prune(
        self,
        keep: str | float | None = None,
        *,
        latest: int | None = None,
        express: str | float | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """Delete ended executions; running and paused ones remain.

        Args:
            keep: Delete those that ended longer ago: a duration such as `"30d"`, or seconds.
            latest: Delete all but this number of the latest started ones.
            express: Delete express executions that ended longer ago.
            dry_run: Whether to only return the names, without deleting; False by default.

        Returns:
            The names of the deleted executions, those of each limit oldest first.

        Raises:
            AslError: *keep* or *express* is not a duration, or *latest* is not a number.
        """
        return self.retain(Retention.read(keep, latest, express), dry_run=dry_run)

    def retain(self, retention: Retention, *, dry_run: bool = False) -> list[str]:
        """Delete the ended executions that are not retained; see `prune`."""
        return prune(self._executor, retention, self.clock.now(), self._storages(), dry_run)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store into a new file, also while executions run.

        The copy holds everything recorded before its start, without checkpoints in other storages.

        Args:
            path: The new file.

        Raises:
            StoreError: The file exists or cannot be written, or the store has no file.
        """
        self.session.flush()
        self.session.connection.backup(path)

    def export(
        self, names: Sequence[str] | None = None, *, damaged: list[str] | None = None
    ) -> Iterator[Json]:
        """Yield executions and their descendants as JSON for `import_execution`.

        Args:
            names: The executions; None for all.
            damaged: Receives a sentence about each damaged execution, which is left out.
        """
        tops = None if names is None else [self.root(each) for each in names]
        return export_executions(self.session, tops, [] if damaged is None else damaged)

    def import_execution(self, line: Json) -> str:
        """Add an exported execution and return its name.

        Raises:
            StoreError: The digest is wrong or the name is taken. Nothing changes.
        """
        self.session.insist_writable()
        return import_execution(self.session, line)

    def _storages(self) -> Mapping[str, Storage]:
        return bind(self._given({})).services.storages

    def faults(self, report: Callable[[str], object] = lambda part: None) -> Iterator[str]:
        """Verify the store; yield a sentence about each fault.

        Args:
            report: Called with the name of each part before its verification.
        """
        return find_faults(self._sessions.backend, self.session, report)

    def release_reservations(self) -> list[str]:
        """Release orphaned reservations in shared budgets.

        These are all reservations of ended executions, and those for calls of executions whose
        process has died.

        Returns:
            The names of the budgets that had such reservations.
        """
        released = list(StoreBudgets(self.session).release_lost())
        self.session.flush()
        return released
