"""What is remembered: values by namespace and key, for Memory blocks and caches (8.4, 8.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from asl.core.errors import NotJson
from asl.core.values import Json, copy_foreign
from asl.states.blocks.memory import Rights
from asl.states.errors import RaisedError

__all__ = ["Memory", "MemoryEntry", "MemoryView", "ProcessMemory", "Searchable"]


class MemoryEntry(NamedTuple):
    """One value that is remembered; times in epoch seconds."""

    key: str
    value: Json
    written: float
    expires: float | None
    """When it is forgotten, None for never."""


class Memory(Protocol):
    """Where values are kept. An entry that has expired at *now* does not exist.

    What cannot be reached raises StateError("States.MemoryNotConfigured"). One that has a true
    attribute `remote` is asked off the event loop, from several threads at the same time.
    """

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None where there is none."""
        ...

    def entries(self, namespace: str, now: float) -> Iterable[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        ...

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by what *make* makes of it; None keeps it as it is. Nobody else writes
        meanwhile; *make* may be called again where somebody has."""
        ...


@runtime_checkable
class Searchable(Protocol):
    """A memory that finds entries by words without reading all of them."""

    def search(
        self, namespace: str, words: Sequence[str], now: float, most: int
    ) -> Iterable[MemoryEntry]:
        """Return entries with one of *words* (`asl.expr.text_matching.words`), the latest first.

        Of more than *most* those are returned that have the rarer words.
        """
        ...


class ProcessMemory:
    """A memory that ends with its process."""

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, MemoryEntry]] = {}

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None where there is none."""
        entry = self.namespaces.get(namespace, {}).get(key)
        return None if entry is None or _expired(entry, now) else entry

    def entries(self, namespace: str, now: float) -> list[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        kept = self.namespaces.get(namespace, {})
        for key in [key for key, entry in kept.items() if _expired(entry, now)]:
            del kept[key]
        return sorted(kept.values(), key=lambda entry: entry.written)[::-1]

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by what *make* makes of it."""
        entry = make(self.get(namespace, key, now))
        if entry is not None:
            kept = self.namespaces.setdefault(namespace, {})
            kept.pop(key, None)
            kept[key] = entry


def _expired(entry: MemoryEntry, now: float) -> bool:
    return entry.expires is not None and entry.expires <= now


class MemoryView:
    """The memory as an agent sees it in one call: `call.memory`. Safe to use from any thread.

    It is the namespace of the state, read and written as far as the state may. Values are copies.
    Raises StateError: States.Permissions for what the state may not, States.MemoryNotConfigured for
    a memory that is down.
    """

    def __init__(self, rights: Rights, serve: Callable[[dict[str, Json]], Json]) -> None:
        self._rights = rights
        self._serve = serve
        self._over = False
        self._keys: dict[str, dict[str, None]] = {"MemoryRead": {}, "MemoryWritten": {}}
        """The keys that were used, by the events that tell of them."""

    @property
    def namespace(self) -> str | None:
        """The namespace that the state names, None for that of the document."""
        return self._rights.namespace

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value of a key, *default* where there is none."""
        found = self._read({"do": "read", "keys": [_key(key)]})
        self._keys["MemoryRead"].update(dict.fromkeys(found))
        return found.get(key, default)

    def search(self, query: str, limit: int = 5, least: float = 0) -> list[Json]:
        """Return what has most words in common with a query: objects `key`, `value`, `score`."""
        request = {"do": "search", "query": str(query), "limit": limit, "least": least}
        return self._entries(request)

    def recent(
        self, limit: int = 10, order: str = "desc", filter: Mapping[str, Json] | None = None
    ) -> list[Json]:
        """Return the latest entries (the oldest by *order* `asc`): `key`, `value`, `timestamp`.

        With a *filter* only objects with these members.
        """
        request = {"do": "recent", "limit": limit, "order": order, "filter": dict(filter or {})}
        return self._entries(request)

    def put(
        self,
        key: str,
        value: Json,
        *,
        ttl: str | int | None = None,
        merge: bool = False,
        overwrite: bool = True,
    ) -> None:
        """Keep a value, as an entry of `Write` does; raises TypeError for what is no JSON value."""
        try:
            own = copy_foreign(value)
        except NotJson as error:
            raise TypeError(f"what is remembered under {key!r} is no JSON: {error}") from None
        request: dict[str, Json] = {"do": "write", "key": _key(key), "value": own}
        request |= {"merge": merge, "overwrite": overwrite}
        if ttl is not None:
            request["ttl"] = ttl
        self._asked("writes", request)
        self._keys["MemoryWritten"][key] = None

    def _entries(self, request: dict[str, Json]) -> list[Json]:
        found: list[Json] = self._read(request)
        self._keys["MemoryRead"].update(dict.fromkeys(entry["key"] for entry in found))
        return found

    def _read(self, request: dict[str, Json]) -> Json:
        return copy_foreign(self._asked("reads", request))

    def _asked(self, right: str, request: dict[str, Json]) -> Json:
        if self._over:
            raise RaisedError(
                "States.Permissions", "the call is over, and so is its use of the memory"
            )
        if not getattr(self._rights, right):
            raise RaisedError("States.Permissions", f"the state's Memory block {right} nothing")
        return self._serve({"namespace": self.namespace, **request})

    def end(self) -> Iterable[tuple[str, list[str]]]:
        """End the use; returns what was used, by the events that tell of it."""
        self._over = True
        return [(event, list(keys)) for event, keys in self._keys.items() if keys]


def _key(key: str) -> str:
    if type(key) is not str or not key:
        raise TypeError(f"a key is a text that is not empty, not {key!r}")
    return key
