"""Layer 6: memories that outlive a run."""

import os
from collections.abc import Mapping
from typing import Any

from asl.core.errors import AslError
from asl.engine.memory import Memory

__all__ = ["BACKENDS", "bound"]

BACKENDS = ("memory", "file", "redis", "dynamodb", "custom")
"""What a document can name (Specification 8.7)."""


def bound(memory: Any) -> dict[str, Memory]:
    """Return the memories that a caller gave, by the backends that documents name.

    The path of a file serves `memory` and `file`, an object `memory` and `custom`; a mapping says
    which serves which.
    """
    if isinstance(memory, Mapping):
        return {str(backend): _memory(each) for backend, each in memory.items()}
    kind = "file" if isinstance(memory, str | os.PathLike) else "custom"
    return dict.fromkeys(("memory", kind), _memory(memory))


def _memory(memory: Any) -> Memory:
    if isinstance(memory, str | os.PathLike):
        from asl.memories.sqlite import SqliteMemory

        return SqliteMemory(memory)
    methods = [getattr(memory, name, None) for name in ("get", "entries", "change")]
    if not all(map(callable, methods)):
        raise AslError(
            "memory is the path of a file, or an object with get, entries and change, "
            f"not {memory!r}"
        )
    found: Memory = memory
    return found
