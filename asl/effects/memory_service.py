"""The memory as a service of a run: reads and writes of blocks pass here and are recorded.

A request is `{"do": ..., "namespace": ..., ...}`; times are those of the execution's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from threading import RLock
from types import MappingProxyType
from typing import Any, Final

from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, json_equal
from asl.core.work import WorkMeter, fail_beyond_limits
from asl.engine.agent import Agent, Call
from asl.engine.document_blocks import document_block
from asl.engine.frame import Frame
from asl.engine.memory import Memory, MemoryEntry, ProcessMemory, Searchable
from asl.expr.intrinsics.containers import merge_deep
from asl.expr.text_matching import similarity, words
from asl.expr.times import format_timestamp, parse_duration

__all__ = ["MemoryService", "memory_settings"]

DEFAULT: Final = "default"
MAX_WORDS: Final = 256
"""Maximum number of different words of a query."""
LEAST_LOOKED_AT: Final = 100
"""Minimum number of entries compared with a query, if the memory finds them by words."""


class MemoryService(Agent):
    """Serves the requests of Memory blocks and caches."""

    is_internal = True

    def __init__(self, given: Mapping[str, Memory]) -> None:
        self.memories: dict[str, Memory] = {"memory": _SharedMemory(), **given}
        """Memories by the backends that documents name."""
        self.blocking = any(getattr(each, "remote", False) for each in given.values())

    def answer(self, payload: Json, call: Call | None) -> Any:
        """Perform a request, in a thread if it may take long."""
        assert call is not None
        return (
            self.do(call.at, payload, call.performer.now())
            if self.blocking
            else self._done(payload, call)
        )

    async def _done(self, request: Json, call: Call) -> Json:
        return self.do(call.at, request, call.performer.now())

    def do(self, frame: Frame, request: Json, now: float) -> Json:
        """Perform a request of a machine.

        Raises:
            StateError: The memory is not bound.
        """
        return self.perform(request, memory_settings(frame), frame.step.name, now)

    def perform(self, request: Json, settings: Mapping[str, Json], state: str, now: float) -> Json:
        """Perform a request.

        Args:
            request: The request.
            settings: The `Memory` block of the document.
            state: Name of the state, for messages.
            now: Time in epoch seconds.

        Raises:
            StateError: The memory is not bound.
        """
        what = request["do"]
        if what in _CACHE:
            return _CACHE[what](self._memory("memory", state), request, now)
        memory = self._memory(settings.get("Backend", "memory"), state)
        namespace = request.get("namespace")
        if namespace is None:
            namespace = settings.get("Namespace", DEFAULT)
        ttl = request.get("ttl", settings.get("DefaultTTL", "never"))
        return _DO[what](memory, f"memory:{namespace}", request, ttl, now)

    def _memory(self, backend: str, state: str) -> Memory:
        """Return the memory of a backend.

        Raises:
            StateError: It is not bound.
        """
        if backend not in self.memories:
            hint = {"file": "give its path: memory=PATH", "custom": "give an object: memory=..."}
            otherwise = f"say what serves it: memory={{{backend!r}: ...}}"
            raise StateError(
                "States.MemoryNotConfigured",
                f"state '{state}': the memory backend {backend!r} is not available: "
                f"{hint.get(backend, otherwise)}",
            )
        return self.memories[backend]


def memory_settings(frame: Frame) -> Mapping[str, Json]:
    """Return the `Memory` block around a machine: of the document and of included ones."""
    settings: Mapping[str, Json] = document_block(frame.execution, "Memory") or {}
    for scope in frame.scopes:
        settings = {**settings, **(scope.block("Memory") or {})}
    return settings


class _SharedMemory(ProcessMemory):
    """The memory of one run, which agents may use from several threads."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()

    def get(self, namespace: str, key: str, now: float) -> MemoryEntry | None:
        """Return an entry, None without one."""
        with self.lock:
            return super().get(namespace, key, now)

    def entries(self, namespace: str, now: float) -> list[MemoryEntry]:
        """Return all entries of a namespace, the latest first."""
        with self.lock:
            return super().entries(namespace, now)

    def change(
        self,
        namespace: str,
        key: str,
        now: float,
        make: Callable[[MemoryEntry | None], MemoryEntry | None],
    ) -> None:
        """Replace an entry by the result of *make*."""
        with self.lock:
            super().change(namespace, key, now, make)


def _read(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    found = ((key, memory.get(namespace, key, now)) for key in request["keys"])
    return {key: entry.value for key, entry in found if entry is not None}


def _search(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    query, limit = request["query"], int(request["limit"])
    wanted = list(dict.fromkeys(words(query)))[:MAX_WORDS]
    if isinstance(memory, Searchable):
        entries = memory.search(namespace, wanted, now, max(LEAST_LOOKED_AT, 10 * limit))
    else:
        entries = memory.entries(namespace, now)
    scored = [
        {"key": entry.key, "value": entry.value, "score": similarity(query, entry.value)}
        for entry in entries
    ]
    found = [each for each in scored if each["score"] > 0 and each["score"] >= request["least"]]
    return sorted(found, key=lambda each: -each["score"])[:limit]


def _recent(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    entries = list(memory.entries(namespace, now))
    if request["order"] == "asc":
        entries.reverse()
    wanted: Mapping[str, Json] = request["filter"]
    found = (
        {
            "key": entry.key,
            "value": entry.value,
            "timestamp": format_timestamp(entry.written),
        }
        for entry in entries
        if not wanted or _has(entry.value, wanted)
    )
    return list(islice(found, int(request["limit"])))


def _has(value: Json, wanted: Mapping[str, Json]) -> bool:
    return type(value) is dict and all(
        key in value and json_equal(value[key], each) for key, each in wanted.items()
    )


def _write(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    key, value = request["key"], request["value"]

    def make(known: MemoryEntry | None) -> MemoryEntry | None:
        new = value
        if known is not None and request["merge"]:
            with fail_beyond_limits():
                new = merge_deep(known.value, value, WorkMeter())
        elif known is not None and not request["overwrite"]:
            return None
        return MemoryEntry(key, new, now, _expiry(ttl, now))

    memory.change(namespace, key, now, make)
    return None


def _expiry(ttl: Json, now: float) -> float | None:
    try:
        seconds = parse_duration(ttl, allow_never=True)
    except ExpressionFault as fault:
        raise StateError("States.InvalidTTL", str(fault)) from None
    return None if seconds == float("inf") else now + seconds


def _recall(memory: Memory, request: Json, now: float) -> Json:
    entry = memory.get(request["namespace"], request["key"], now)
    return [] if entry is None else [entry.value]


def _keep(memory: Memory, request: Json, now: float) -> Json:
    key, expires = request["key"], _expiry(request["ttl"], now)
    memory.change(
        request["namespace"],
        key,
        now,
        lambda known: MemoryEntry(key, request["value"], now, expires),
    )
    return None


_CACHE: Mapping[str, Callable[[Memory, Json, float], Json]] = MappingProxyType(
    {"recall": _recall, "keep": _keep}
)
_DO: Mapping[str, Callable[[Memory, str, Json, Json, float], Json]] = MappingProxyType(
    {"read": _read, "search": _search, "recent": _recent, "write": _write}
)
