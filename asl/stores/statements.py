"""Queries and changes of rows, as data that every backend executes.

Statements are module constants, created once, so that a backend can cache their compiled form by
identity. `PARAMETER` marks a value passed with each use. The values of one use form a tuple in this
order: values of new rows or changes, values of conditions, the position, the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from asl.stores.tables import Table

__all__ = [
    "APPEND",
    "PARAMETER",
    "Append",
    "Change",
    "Condition",
    "Delete",
    "Insert",
    "Predicate",
    "QueryParameter",
    "Row",
    "Select",
    "Update",
    "Values",
    "Where",
    "above",
    "at_most",
    "begins_with",
    "below",
    "between",
    "contains",
    "is_set",
    "length_of",
    "none_of",
    "one_of",
]


class QueryParameter(Enum):
    """The mark of a value passed with each use of a statement."""

    VALUE = "?"


PARAMETER: Final = QueryParameter.VALUE

Values: TypeAlias = tuple[Any, ...]
"""Values of `PARAMETER` in one use of a statement: texts, numbers, bytes, None, and lists of texts
or numbers for `one_of(PARAMETER)`. Any, because the columns define the types."""
Row: TypeAlias = tuple[Any, ...]
"""Values of the selected columns."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of a column other than equality; see the functions that return one.

    None fails every test.
    """

    kind: Literal["<", "<=", ">", "><", "in", "not in", "set", "begins", "contains"]
    value: object = PARAMETER


Condition: TypeAlias = str | float | QueryParameter | Predicate | None
Where: TypeAlias = Mapping[str, Condition]
"""Condition by column: this value, None, a parameter, or a predicate."""


def below(value: object = PARAMETER) -> Predicate:
    """Return the test for a smaller value."""
    return Predicate("<", value)


def at_most(value: object = PARAMETER) -> Predicate:
    """Return the test for a smaller or equal value."""
    return Predicate("<=", value)


def above(value: object = PARAMETER) -> Predicate:
    """Return the test for a greater value."""
    return Predicate(">", value)


def between() -> Predicate:
    """Return the test for a value above the first and at most the second parameter."""
    return Predicate("><")


def one_of(*values: object) -> Predicate:
    """Return the test for one of these values; without arguments for one of a list parameter."""
    return Predicate("in", values or PARAMETER)


def none_of(*values: object) -> Predicate:
    """Return the test for a value other than these."""
    return Predicate("not in", values)


def is_set() -> Predicate:
    """Return the test for a value other than None."""
    return Predicate("set", None)


def begins_with(value: object = PARAMETER) -> Predicate:
    """Return the test for a prefix of a text or bytes."""
    return Predicate("begins", value)


def contains(value: object = PARAMETER) -> Predicate:
    """Return the test for a part of bytes."""
    return Predicate("contains", value)


@dataclass(frozen=True, eq=False, slots=True)
class Insert:
    """Adds a row; columns that are not listed have their defaults.

    Args:
        table: The table.
        columns: The columns to set.
        otherwise: Action if the key exists: `fail`, `keep` the present row, or `update` it.
        update: Columns that an update sets.
        where: Conditions on the present row for an update.
    """

    table: Table
    columns: tuple[str, ...]
    otherwise: Literal["fail", "keep", "update"] = "fail"
    update: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Update:
    """Sets columns of the rows that meet the conditions."""

    table: Table
    set: Mapping[str, str | float | QueryParameter | None]
    where: Where


@dataclass(frozen=True, eq=False, slots=True)
class Delete:
    """Deletes the rows that meet the conditions."""

    table: Table
    where: Where


@dataclass(frozen=True, eq=False, slots=True)
class Append:
    """Adds the next step of an execution: its number, the number of the step, the hash and the
    body.

    The backend sets the places and updates `HEAD`. A step that does not follow the last one is
    refused (StoreContradicted), because another process has continued the execution.
    """


APPEND: Final = Append()

Change: TypeAlias = Insert | Update | Delete | Append


@dataclass(frozen=True, eq=False, slots=True)
class Select:
    """Reads columns of the rows that meet the conditions.

    Args:
        table: The table.
        columns: The columns.
        where: The conditions.
        order: Columns to sort by; `-name` for descending order, `#name` for the length of a text.
        after: Whether the rows start after a position: the values of the columns of `order`, all
            ascending, follow those of the conditions; for `#name` see `length_of`.
        limited: Whether the number of rows is limited; the limit is the last value.
        checked: Whether an additional column says if a row is intact (1) or not (0).
        by: Column with the best index; None to let the backend choose.
    """

    table: Table
    columns: tuple[str, ...]
    where: Where = field(default_factory=dict)
    order: tuple[str, ...] = ()
    after: bool = False
    limited: bool = False
    checked: bool = False
    by: str | None = None


def length_of(text: str | bytes) -> int:
    """Return the length by which `#name` sorts: for SQLite a text ends at its first NUL."""
    return len(text.partition("\0")[0]) if isinstance(text, str) else len(text)
