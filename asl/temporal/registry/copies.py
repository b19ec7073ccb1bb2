"""Rows in memory with a copy of the resources of a registry."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from asl.core.values import Json, compact
from asl.executions.map_runs import MAP_RUN
from asl.stores.audit import AuditEntry
from asl.stores.memory import MemoryBackend
from asl.stores.tables import AUDIT, BLOB, DOCUMENT, LARGE, RESOURCE
from asl.stores.values import pack_small
from asl.temporal.registry.workflow import Changes

__all__ = ["RegistryCopy"]


class RegistryCopy(MemoryBackend):
    """Stores executions in memory, and the resources of a registry as they are received."""

    def apply(self, changes: Changes) -> None:
        """Put changes of other processes into the rows."""
        resources, documents = self._shared.rows[RESOURCE], self._shared.rows[DOCUMENT]
        with self._shared.lock:
            for key, text in changes["documents"].items():
                documents.put((key,), (key, text.encode()))
            if changes["whole"]:
                for former in [*resources.keys]:
                    if resources.by_key[former][1] != MAP_RUN:
                        resources.put(former, None)
            for row in changes["resources"]:
                stored = None if row[4] is None else (*row[:4], self._packed(row[4]))
                resources.put((row[0],), stored)
            self._shared.version += bool(changes["resources"])

    def put_map_runs(self, runs: Iterable[Json]) -> None:
        """Put the Map Runs of an execution, which are no resources of the registry."""
        resources = self._shared.rows[RESOURCE]
        with self._shared.lock:
            for *fields, body in runs:
                resources.put((fields[0],), (*fields, self._packed(compact(body))))

    def put_entries(self, entries: Iterable[AuditEntry]) -> None:
        """Put the entries of the audit log in the place of the present ones."""
        rows = self._shared.rows[AUDIT]
        with self._shared.lock:
            for former in [*rows.keys]:
                rows.put(former, None)
            for each in entries:
                body = self._packed(compact(each.details))
                rows.put((each.id,), (each.id, *each[:5], each.hash, body))

    def _packed(self, text: str) -> bytes:
        """Return the stored form of a text; a large one is stored once."""
        body = text.encode()
        if len(body) < LARGE:
            return pack_small(body)
        key = sha256(body).digest()
        self._shared.rows[BLOB].put((key,), (key, body))
        return b"#" + key
