"""The memory as a service of a run: what blocks read and write goes by here, and is recorded.

A request is `{"do": ..., "namespace": ..., ...}`; times are those of the execution's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from asl.core.errors import StateError
from asl.core.values import Json, json_equal
from asl.engine.agent import Call
from asl.engine.memory import Entry, Memory, ProcessMemory
from asl.expr.intrinsics.objects import merged
from asl.expr.likeness import likeness
from asl.expr.times import format_timestamp, parse_duration
from asl.hosts.services import Service, host_of

__all__ = ["Remembering"]

DEFAULT: Final = "default"


class Remembering(Service):
    """Serves the requests of Memory blocks and caches."""

    needs_loop = False

    def __init__(self, given: Mapping[str, Memory]) -> None:
        self.memories: dict[str, Memory] = {"memory": ProcessMemory(), **given}
        """By the backends that documents name."""

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Carry a request out."""
        assert call is not None
        now = host_of(call).now()
        if payload["do"] in ("recall", "keep"):
            return _CACHE[payload["do"]](self.memories["memory"], payload, now)
        at: Any = call.at
        settings: Mapping[str, Json] = at.execution.program.document.get("Memory", {})
        memory = self._memory(settings.get("Backend", "memory"), call.state_name)
        namespace = payload.get("namespace")
        if namespace is None:
            namespace = settings.get("Namespace", DEFAULT)
        ttl = payload.get("ttl", settings.get("DefaultTTL", "never"))
        return _DO[payload["do"]](memory, f"memory:{namespace}", payload, ttl, now)

    def _memory(self, backend: str, state: str) -> Memory:
        """Return what serves a backend; raises StateError if nobody has given it."""
        if backend not in self.memories:
            hint = {"file": "give its path: memory=PATH", "custom": "give an object: memory=..."}
            otherwise = f"say what serves it: memory={{{backend!r}: ...}}"
            raise StateError(
                "States.MemoryNotConfigured",
                f"state '{state}': the memory backend {backend!r} is not available: "
                f"{hint.get(backend, otherwise)}",
            )
        return self.memories[backend]

    async def close(self) -> None:
        """Leave the memory to whoever gave it."""


def _read(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    found = ((key, memory.get(namespace, key, now)) for key in request["keys"])
    return {key: entry.value for key, entry in found if entry is not None}


def _search(memory: Memory, namespace: str, request: Json, ttl: Json, now: float) -> Json:
    scored = [
        {"key": entry.key, "value": entry.value, "score": likeness(request["query"], entry.value)}
        for entry in memory.entries(namespace, now)
    ]
    found = [each for each in scored if each["score"] > 0 and each["score"] >= request["least"]]
    return sorted(found, key=lambda each: -each["score"])[: int(request["limit"])]


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

    def make(known: Entry | None) -> Entry | None:
        new = value
        if known is not None and request["merge"]:
            new = merged(known.value, value)
        elif known is not None and not request["overwrite"]:
            return None
        return Entry(key, new, now, _expiry(ttl, now))

    memory.change(namespace, key, now, make)
    return None


def _expiry(ttl: Json, now: float) -> float | None:
    seconds = parse_duration(ttl, allow_never=True)
    return None if seconds == float("inf") else now + seconds


def _recall(memory: Memory, request: Json, now: float) -> Json:
    entry = memory.get(request["namespace"], request["key"], now)
    return [] if entry is None else [entry.value]


def _keep(memory: Memory, request: Json, now: float) -> Json:
    key, expires = request["key"], _expiry(request["ttl"], now)
    memory.change(
        request["namespace"], key, now, lambda known: Entry(key, request["value"], now, expires)
    )
    return None


_CACHE: Mapping[str, Callable[[Memory, Json, float], Json]] = MappingProxyType(
    {"recall": _recall, "keep": _keep}
)
_DO: Mapping[str, Callable[[Memory, str, Json, Json, float], Json]] = MappingProxyType(
    {"read": _read, "search": _search, "recent": _recent, "write": _write}
)
