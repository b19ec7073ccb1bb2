"""The tables of a store, as data that every backend implements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = [
    "AUDIT",
    "BLOB",
    "BUDGET",
    "CHECKPOINT",
    "CLAIM",
    "DOCUMENT",
    "EXECUTION",
    "HEAD",
    "LARGE",
    "LIVE",
    "MOST",
    "REQUEST",
    "RESOURCE",
    "STEP",
    "TABLES",
    "WORKER",
    "Column",
    "Table",
    "TableIndex",
]

LARGE: Final = 64 * 1024
"""Size in bytes from which on a value is stored once, by its content."""

MOST: Final = 1024 * 1024
"""Size in bytes from which on the gathered entries of an execution are split into several rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        type: Type of its values; an integer is not a `float`.
        optional: Whether it may be None.
        default: Value in new rows that do not set it.
        is_value: Whether it contains a packed value, which may refer to a large one.
    """

    type: type
    optional: bool = False
    default: int | None = None
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class TableIndex:
    """Columns by which rows are looked up; with `partial` only rows whose last column is not
    None.
    """

    columns: tuple[str, ...]
    partial: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A table of rows.

    Args:
        name: Its name.
        columns: Its columns by name, in order.
        key: Columns of the primary key.
        unique: Another column with unique values.
        indexes: Further indexes.
        counted: Whether the backend assigns the key, a number greater than all present ones.
        monotonic: Whether such a number is never reused, even after its row is deleted.
        guarded: Whether each row has a checksum over all of its columns.
    """

    name: str
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    unique: str | None = None
    indexes: tuple[TableIndex, ...] = ()
    counted: bool = False
    monotonic: bool = False
    guarded: bool = False

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that hold packed values."""
        return tuple(name for name, column in self.columns.items() if column.is_value)


_text, _bytes = Column(str), Column(bytes)
_number, _time = Column(int), Column(float)
_value = Column(bytes, is_value=True)
_count = Column(int, default=0)


def _optional(column: Column) -> Column:
    return Column(column.type, True, column.default, column.is_value)


DOCUMENT: Final = Table("document", {"hash": _text, "body": _bytes}, ("hash",))

BLOB: Final = Table("blob", {"hash": _bytes, "body": _bytes}, ("hash",))
"""Large values by the hash of their text."""

EXECUTION: Final = Table(
    "execution",
    {
        "number": _number,
        "name": _text,
        "workflow": _text,
        "document": _text,
        "profile": _text,
        "express": _number,
        "requestor": _optional(_text),
        "status": _text,
        "started": _time,
        "ended": _optional(_time),
        "wake": _optional(_time),
        "error": _optional(_text),
        "cause": _optional(_text),
        "redrives": _count,
        "parent": _optional(_number),
        "redriven": _optional(_time),
        "workflow_id": _optional(_text),
        "role": _optional(_text),
        "version": _optional(_text),
        "alias": _optional(_text),
        "trace_header": _optional(_text),
        "written_by": _text,
        "bound": _optional(_value),
        "input": _value,
        "output": _optional(_value),
        "usage": _optional(_value),
        "chain": _bytes,
    },
    ("number",),
    unique="name",
    indexes=(
        TableIndex(("status", "number")),
        TableIndex(("wake",), partial=True),
        TableIndex(("parent",), partial=True),
        TableIndex(("workflow_id", "number")),
    ),
    guarded=True,
)

STEP: Final = Table(
    "step",
    {
        "place": _number,
        "execution": _number,
        "number": _number,
        "before": _number,
        "hash": _bytes,
        "body": _bytes,
    },
    ("place",),
    counted=True,
)
"""The steps of all executions in the order of their commits; `before` is the place of the previous
step of the same execution. There is no index: steps are found from the last one backwards."""

HEAD: Final = Table(
    "head", {"execution": _number, "step": _number, "place": _number}, ("execution",)
)
"""Number and place of the last step of each execution."""

REQUEST: Final = Table(
    "request",
    {
        "id": _text,
        "execution": _number,
        "key": _text,
        "kind": _text,
        "status": _text,
        "created": _time,
        "wake": _optional(_time),
        "digest": _text,
        "notified": _number,
        "body": _value,
        "received": _value,
        "answer": _optional(_value),
    },
    ("id",),
    indexes=(TableIndex(("status", "created")), TableIndex(("execution",))),
    guarded=True,
)

CHECKPOINT: Final = Table(
    "checkpoint",
    {"execution": _number, "number": _number, "id": _text, "name": _text, "body": _value},
    ("execution", "number"),
    guarded=True,
)

BUDGET: Final = Table("budget", {"name": _text, "body": _value}, ("name",), guarded=True)
"""Budgets that executions share."""

WORKER: Final = Table(
    "worker", {"id": _text, "about": _bytes, "seen": _time, "fenced": _count}, ("id",)
)

CLAIM: Final = Table(
    "claim",
    {
        "execution": _number,
        "owner": _optional(_text),
        "needs": _optional(_bytes),
        "cancel": _optional(_bytes),
        "timer": _optional(_time),
    },
    ("execution",),
    indexes=tuple(TableIndex((column,), partial=True) for column in ("owner", "needs", "cancel")),
)
"""The worker that runs an execution, its missing bindings, its cancellation, and its timer."""

RESOURCE: Final = Table(
    "resource",
    {"arn": _text, "kind": _text, "owner": _text, "number": _number, "body": _value},
    ("arn",),
    indexes=(TableIndex(("kind", "owner", "number")),),
    guarded=True,
)
"""Registered state machines, their versions and aliases, and activities; the secret of a service,
its ended sessions and used links, and the end of the audit log."""

LIVE: Final = Table(
    "live",
    {"id": _number, "execution": _number, "body": _bytes},
    ("id",),
    indexes=(TableIndex(("execution", "id")),),
    counted=True,
    monotonic=True,
)
"""Streamed chunks of agents that are not in the log yet."""

AUDIT: Final = Table(
    "audit",
    {
        "id": _number,
        "time": _time,
        "user": _text,
        "method": _text,
        "action": _text,
        "target": _text,
        "hash": _bytes,
        "body": _value,
    },
    ("id",),
    counted=True,
    monotonic=True,
    guarded=True,
)
"""Actions of the users of a service; `hash` covers the entry and the hash of the previous one."""

TABLES: Final = (
    DOCUMENT,
    BLOB,
    EXECUTION,
    STEP,
    HEAD,
    REQUEST,
    CHECKPOINT,
    BUDGET,
    WORKER,
    CLAIM,
    LIVE,
    RESOURCE,
    AUDIT,
)
