"""Layer 7: memories that outlive a run."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.engine.memory import Memory
from asl.memories.custom import CustomMemory

__all__ = ["BACKENDS", "bind_memory"]

BACKENDS = ("memory", "file", "redis", "dynamodb", "custom")
"""Names of backends in documents (Specification 8.7)."""


def bind_memory(memory: Any) -> dict[str, Memory]:
    """Return the memories of a run by the backends that documents name.

    Args:
        memory: A path, for `memory` and `file`; the URL of a Redis server or a DynamoDB table, for
            `memory` and `redis` or `dynamodb`; an object, for `memory` and `custom`; or a mapping
            from backends to these.

    Raises:
        AslError: The value is not a memory.
    """
    if isinstance(memory, Mapping):
        return {_backend(name): _memory(each) for name, each in memory.items()}
    made, scheme = _memory(memory), _scheme(memory)
    kind = "custom" if scheme is None else _URLS[scheme][0] if scheme else "file"
    return dict.fromkeys(("memory", kind), made)


def _backend(name: Any) -> str:
    if name not in BACKENDS:
        hint = did_you_mean(str(name), BACKENDS) or f"there are {', '.join(BACKENDS)}"
        raise AslError(f"unknown memory backend {name!r} ({hint})")
    return str(name)


def _scheme(memory: Any) -> str | None:
    """Return the scheme of a URL, an empty text for a path, None for an object."""
    if isinstance(memory, os.PathLike):
        return ""
    if not isinstance(memory, str):
        return None
    scheme, colon, _ = memory.partition("://")
    return scheme if colon else ""


def _memory(memory: Any) -> Memory:
    scheme = _scheme(memory)
    if scheme:
        if scheme not in _URLS:
            hint = did_you_mean(scheme, _URLS) or f"there are {', '.join(_URLS)}, and paths"
            raise AslError(f"no memory has URLs of {scheme}:// ({hint})")
        return _URLS[scheme][1](memory)
    if scheme is not None and memory != "":
        from asl.memories.sqlite import SqliteMemory

        return SqliteMemory(memory)
    methods = [getattr(memory, name, None) for name in ("get", "entries", "change")]
    if not all(map(callable, methods)):
        raise AslError(
            "memory is the path of a file, a URL, or an object with get, entries and change, "
            f"not {memory!r}"
        )
    return CustomMemory(memory)


def _redis(url: str) -> Memory:
    from asl.memories.redis import RedisMemory

    return RedisMemory(url)


def _dynamodb(url: str) -> Memory:
    from asl.memories.dynamodb import table_at

    return table_at(url)


_URLS: Mapping[str, tuple[str, Callable[[str], Memory]]] = {
    "redis": ("redis", _redis),
    "rediss": ("redis", _redis),
    "unix": ("redis", _redis),
    "dynamodb": ("dynamodb", _dynamodb),
}
"""Backend and factory of a memory by the scheme of its URL."""
