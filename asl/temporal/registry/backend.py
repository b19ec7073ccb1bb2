"""Rows in memory whose registered resources are those of the registry of a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import orjson

from asl.core.values import Json
from asl.stores.audit import HEAD, AuditEntry
from asl.stores.backend import Write
from asl.stores.checkpoint_folder import CheckpointFolder
from asl.stores.errors import StoreConflict
from asl.stores.memory import MemoryConnection
from asl.stores.statements import Row, Select, Values
from asl.stores.tables import AUDIT, BLOB, DOCUMENT, RESOURCE
from asl.temporal.client import TemporalClient
from asl.temporal.registry.copies import RegistryCopy
from asl.temporal.registry.resources import Registry
from asl.temporal.registry.workflow import ResourceRow

__all__ = ["RegistryBackend"]

ATTEMPTS: Final = 5
"""Maximum number of attempts at changes that depend on nothing that was read."""


class RegistryBackend(RegistryCopy):
    """Stores executions in memory, and resources in a registry.

    Args:
        client: The client.
    """

    def __init__(self, client: TemporalClient) -> None:
        super().__init__()
        self.place = str(client.address)
        self.checkpoints = CheckpointFolder()  # as without a store: this process is one of many
        self.registry = Registry(client, self.apply)

    def connect(self) -> MemoryConnection:
        """Return a connection for the calling thread."""
        super().connect()  # raises in a forked process
        connection = _RegistryRows(self._shared)
        connection.registry, connection.put_entries = self.registry, self.put_entries
        return connection


class _RegistryRows(MemoryConnection):
    """The rows as one thread uses them; changes of resources are sent to the registry."""

    registry: Registry
    put_entries: Callable[[Iterable[AuditEntry]], None]
    _in_transaction = False
    _has_looked = False
    """Whether this transaction has looked at the registry."""

    def select(self, statement: Select, values: Values = ()) -> list[Row]:
        """Return the rows of a query, of resources and the audit log after a look at the server."""
        if statement.table is AUDIT:
            with self._shared.lock:
                self.put_entries(self.registry.entries())
                return super().select(statement, values)
        is_local = statement.columns == RESOURCE.values or values[:1] == (HEAD,)
        if statement.table is not RESOURCE or is_local:
            return super().select(statement, values)
        with self._shared.lock:
            if not self._has_looked:
                self.registry.pull()
                self._has_looked = self._in_transaction
            return super().select(statement, values)

    def commit(self, writes: Iterable[Write], check: Callable[[], object] | None) -> None:
        """Make changes in one transaction; they depend on nothing that was read before."""
        gathered = [*writes]
        for _ in range(ATTEMPTS):
            try:
                super().commit(gathered, check)
            except StoreConflict:
                self.registry.pull()
            else:
                return
        super().commit(gathered, check)

    @contextmanager
    def transaction(
        self, writes: Callable[[], Iterable[Write]], check: Callable[[], object] | None
    ) -> Iterator[None]:
        """Read and write in one transaction; resources that others change meanwhile refuse it.

        Raises:
            StoreConflict: Another process has changed one of the resources.
        """
        with self._shared.lock:
            self._in_transaction = True
            try:
                with super().transaction(writes, check):
                    yield
            finally:
                self._in_transaction = self._has_looked = False

    def _confirm(self) -> None:
        """Send the changed resources to the registry, and new entries to the audit log."""
        changed = {
            key[0]: row for key, row in self._changed_rows(RESOURCE).items() if key != (HEAD,)
        }
        if changed:
            self._push(changed)
        for row in self._changed_rows(AUDIT).values():
            if row is not None:
                _, time, user, method, action, target, _, body = row
                details: Json = orjson.loads(self._text(body))
                entry = AuditEntry(time, user, method, action, target, details)
                self.registry.add_entry(entry)

    def _push(self, changed: Mapping[str, Row | None]) -> None:
        """Send changed resources to the registry."""
        rows = list[ResourceRow]()
        documents = dict[str, str]()
        for arn, row in changed.items():
            if row is None:
                rows.append((arn, "", "", 0, None))
                continue
            text = self._text(row[4])
            rows.append((arn, *row[1:4], text))
            documents |= self._document_of(text)
        self.registry.push(rows, documents)

    def _text(self, body: bytes) -> str:
        """Return the JSON text of a stored form."""
        if body[:1] != b"#":
            return body[9:].decode()
        large: bytes = self._shared.rows[BLOB].by_key[(body[1:],)][1]
        return large.decode()

    def _document_of(self, text: str) -> dict[str, str]:
        """Return the text of the document that a resource refers to, by its hash."""
        value: Json = orjson.loads(text)
        row = self._shared.rows[DOCUMENT].by_key.get((value.get("document"),))
        return {} if row is None else {row[0]: row[1].decode()}
