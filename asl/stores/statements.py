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
"""The values of `PARAMETER` in one use of a statement: texts, numbers, bytes, None, and lists of
texts or numbers for `one_of(GIVEN)`. Any: the columns of the tables say the types."""
Row: TypeAlias = tuple[Any, ...]
"""The values of the columns that were asked for."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of a column other than equality; see the functions that return one.

    None passes no test.
    """

    kind: Literal["<", "<=", ">", "><", "in", "not in", "set", "begins", "contains"]
    value: object = PARAMETER


Condition: TypeAlias = str | float | QueryParameter | Predicate | None
Where: TypeAlias = Mapping[str, Condition]
"""What each column of a row must be: this value, None, what is given, or what passes a test."""


def below(value: object = PARAMETER) -> Predicate:
    """Return the test for a lesser value."""
    return Predicate("<", value)


def at_most(value: object = PARAMETER) -> Predicate:
    """Return the test for a lesser or equal value."""
    return Predicate("<=", value)


def above(value: object = PARAMETER) -> Predicate:
    """Return the test for a greater value."""
    return Predicate(">", value)


def between() -> Predicate:
    """Return the test for a value above the first and at most the second one that are given."""
    return Predicate("><")


def one_of(*values: object) -> Predicate:
    """Return the test for one of some values, without any for one of a list that is given."""
    return Predicate("in", values or PARAMETER)


def none_of(*values: object) -> Predicate:
    """Return the test for any other value than these."""
    return Predicate("not in", values)


def is_set() -> Predicate:
    """Return the test for what is not None."""
    return Predicate("set", None)


def begins_with(value: object = PARAMETER) -> Predicate:
    """Return the test for a text, or bytes, that begins so."""
    return Predicate("begins", value)


def contains(value: object = PARAMETER) -> Predicate:
    """Return the test for bytes in which others stand."""
    return Predicate("contains", value)


@dataclass(frozen=True, eq=False, slots=True)
class Insert:
    """Adds a row of the columns; the other columns have their defaults.

    Args:
        table: The table.
        columns: The columns that are given.
        otherwise: What happens where there is a row of this key: `fail`, `keep` that, or `update`.
        update: The columns that an update sets to what was given, all others stay.
        where: What must hold for the row that is there, else nothing is updated.
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
    """Adds the next step of an execution: its number, that of the step, the hash and the body.

    The backend fills in the places, and keeps `HEAD`. A step that does not follow the last one is
    refused (StoreContradicted): then somebody else has gone on with the execution.
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
        order: The columns by which the rows are sorted; `-name` for the greatest first, `#name` by
            the length of a text.
        after: Whether the rows begin behind a position: the values of the columns of `order`, all
            of them ascending, are given after those of the conditions; for `#name` see `length_of`.
        limited: Whether the number of rows is limited; the limit is given last.
        checked: Whether one more column says if a row is what was written (1), or not (0).
        by: The column whose index is the best one, None for whichever.
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
    """Return the length by which `#name` sorts: to SQLite a text ends at its first NUL."""
    return len(text.partition("\0")[0]) if isinstance(text, str) else len(text)
