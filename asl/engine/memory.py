"""Memory: values by namespace and key, for Memory blocks and caches (8.4, 8.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from asl.core.errors import NotJson
from asl.core.values import Json, copy_foreign
from asl.states.blocks.memory import MemoryAccess
from asl.states.errors import RaisedError

__all__ = ["Memory", "MemoryEntry", "MemoryView", "ProcessMemory", "Searchable"]


class MemoryEntry(NamedTuple):
    """A stored value; times in epoch seconds."""

    key: str
    value: Json
    written: float
    expires: float | None
    """Expiry time, None for never."""


class Memory(Protocol):
    """A storage of values. An entry that has expired at *now* does not exist.

    A storage that cannot be reached raises StateError("States.MemoryNotConfigured"). One with a
    true attribute `remote` is called off the event loop, from several threads concurrently.
    """

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
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
        """Replace an entry atomically by the result of *make*.

        Args:
            namespace: The namespace.
            key: Key of the entry.
            now: Current time in epoch seconds.
            make: Maps the present entry, None without one, to the new entry; None leaves it
                unchanged. May be called again after a concurrent change.
        """
        ...


@runtime_checkable
class Searchable(Protocol):
    """A memory that finds entries by words without reading all of them."""

    def search(
        self, namespace: str, words: Sequence[str], now: float, most: int
    ) -> Iterable[MemoryEntry]:
        """Return entries that contain one of *words* (`asl.expr.text_matching.words`), the latest
        first.

        Of more than *most* entries, those with the rarer words are returned.
        """
        ...


class ProcessMemory:
    """A memory that lasts as long as the process."""

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, MemoryEntry]] = {}

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
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
        """Replace an entry by the result of *make*."""
        entry = make(self.get(namespace, key, now))
        if entry is not None:
            kept = self.namespaces.setdefault(namespace, {})
            kept.pop(key, None)
            kept[key] = entry


def _expired(entry: MemoryEntry, now: float) -> bool:
    return entry.expires is not None and entry.expires <= now


class MemoryView:
    """The memory that an agent may use in one call: `call.memory`. Safe to use from any thread.

    It reads and writes the namespace of the state, as far as the state has the rights. Values are
    copies. Methods raise StateError: States.Permissions without the right,
    States.MemoryNotConfigured if the storage cannot be reached.
    """

    def __init__(self, rights: MemoryAccess, serve: Callable[[dict[str, Json]], Json]) -> None:
        self._rights = rights
        self._serve = serve
        self._is_closed = False
        self._keys: dict[str, dict[str, None]] = {"MemoryRead": {}, "MemoryWritten": {}}
        """Keys that were used, by name of the event that reports them."""

    @property
    def namespace(self) -> str | None:
        """Namespace that the state names, None for that of the document."""
        return self._rights.namespace

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value of a key, *default* without an entry."""
        found = self._read({"do": "read", "keys": [_key(key)]})
        self._keys["MemoryRead"].update(dict.fromkeys(found))
        return found.get(key, default)

    def search(self, query: str, limit: int = 5, least: float = 0) -> list[Json]:
        """Return the entries with the most words in common with a query.

        Args:
            query: Text to compare with.
            limit: Maximum number of entries.
            least: Minimum score, 0 to 1.

        Returns:
            Objects with `key`, `value` and `score`.
        """
        request = {"do": "search", "query": str(query), "limit": limit, "least": least}
        return self._entries(request)

    def recent(
        self, limit: int = 10, order: str = "desc", filter: Mapping[str, Json] | None = None
    ) -> list[Json]:
        """Return the latest entries as objects with `key`, `value` and `timestamp`.

        Args:
            limit: Maximum number of entries.
            order: `desc` for the latest first, `asc` for the oldest first.
            filter: Members that the values must have; None for all entries.
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
        """Store a value, as an entry of `Write` does.

        Args:
            key: Key of the entry.
            value: A JSON value.
            ttl: Seconds or an ISO 8601 duration until it expires; None for the default of the
                state.
            merge: Whether to merge an object into the present one.
            overwrite: Whether to replace a present value.

        Raises:
            TypeError: The value is not a JSON value.
        """
        try:
            own = copy_foreign(value)
        except NotJson as error:
            raise TypeError(f"the value of the key {key!r} is not JSON: {error}") from None
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
        if self._is_closed:
            raise RaisedError(
                "States.Permissions", "the call has ended, so its memory cannot be used"
            )
        if not getattr(self._rights, right):
            raise RaisedError("States.Permissions", f"the state's Memory block {right} nothing")
        return self._serve({"namespace": self.namespace, **request})

    def end(self) -> Iterable[tuple[str, list[str]]]:
        """End the use and return the used keys, by name of the event that reports them."""
        self._is_closed = True
        return [(event, list(keys)) for event, keys in self._keys.items() if keys]


def _key(key: str) -> str:
    if type(key) is not str or not key:
        raise TypeError(f"'key' must be a non-empty text, got {key!r}")
    return key
