"""The registry of a queue: registered state machines and other resources that servers share.

A workflow holds them. Any process that uses them runs it, in a worker of its own queue, and has a
copy of them in its store in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from asl.stores.audit import AuditEntry
from asl.stores.errors import StoreError
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import pack
from asl.temporal.registry.audit_log import AuditLog
from asl.temporal.registry.connection import RegistryConnection
from asl.temporal.registry.workflow import Changes, CommitMessage, ResourceRow

__all__ = ["Registry"]


class Registry:
    """The resources and the audit log that servers of a queue share.

    Args:
        client: The client.
        apply: Receives changes of other processes.
    """

    def __init__(self, client: TemporalClient, apply: Callable[[Changes], None]) -> None:
        self._client = client
        self._connection = RegistryConnection(client.raw, client.address.queue)
        self._log = AuditLog(client.raw, client.address.queue)
        self._apply = apply
        self._version = -1

    def pull(self) -> None:
        """Apply the changes of other processes.

        Raises:
            StoreError: The server cannot be reached.
        """
        found = self._client.run(self._connection.changes(self._version))
        self._version = found["version"]
        self._apply(found)

    def push(self, rows: list[ResourceRow], documents: dict[str, str]) -> None:
        """Send changes.

        Args:
            rows: The changed resources.
            documents: Texts of the documents that they refer to, by hash.

        Raises:
            StoreConflict: Another process has changed one of them since the last `pull`.
            StoreError: The registry is full, or the server cannot be reached.
        """
        message = CommitMessage(
            base=max(0, self._version), resources=pack(rows), documents=pack(documents)
        )
        version = self._client.run(self._connection.commit(message))
        if version == self._version + 1:  # nothing of others is between
            self._version = version

    def add_entry(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log.

        Raises:
            StoreError: The server cannot be reached.
        """
        try:
            self._client.run(self._log.add(entry))
        except StoreError:
            self._version = -1  # the caller undoes its changes, which may have been sent
            raise

    def entries(self) -> list[AuditEntry]:
        """Return the entries of the audit log, the oldest first.

        Raises:
            StoreError: The server cannot be reached.
        """
        return self._client.run(self._log.entries())

    def close(self) -> None:
        """Stop the worker of this process."""
        self._client.run(self._connection.close())
