"""Stores in the memory of one process, for tests and temporary executions."""

from __future__ import annotations

import os
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from operator import itemgetter
from threading import RLock, get_ident
from typing import Any, Final

from asl.engine.checkpoints import Storage
from asl.stores.backend import Write
from asl.stores.errors import CLOSED, CONTRADICTED, StoreContradicted, StoreError
from asl.stores.statements import (
    PARAMETER,
    Append,
    Change,
    Condition,
    Delete,
    Insert,
    Predicate,
    Row,
    Select,
    Update,
    Values,
    Where,
    length_of,
)
from asl.stores.tables import EXECUTION, HEAD, STEP, TABLES, Table

__all__ = ["MemoryBackend", "MemoryConnection"]

FORKED: Final = "a store in memory belongs to the process that has made it"
_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lambda value, given: value is not None and value < given,
    "<=": lambda value, given: value is not None and value <= given,
    ">": lambda value, given: value is not None and value > given,
    "in": lambda value, given: value is not None and value in given,
    "not in": lambda value, given: value is not None and value not in given,
    "set": lambda value, given: value is not None,
    "begins": lambda value, given: value is not None and value.startswith(given),
    "contains": lambda value, given: value is not None and given in value,
    "=": lambda value, given: value is not None and value == given,
    "><": lambda value, given: value is not None and given[0] < value <= given[1],
}


class _Rows:
    """The rows of one table by their keys, sorted by key."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.columns = {name: index for index, name in enumerate(table.columns)}
        self.by_key: dict[Row, Row] = {}
        self.keys: list[Row] = []
        self.unique: dict[Any, Row] = {}
        """Keys by the unique column."""
        self.counter = count(1)
        self._key = itemgetter(*(self.columns[name] for name in table.key))
        self._defaults = tuple(column.default for column in table.columns.values())
        self._floats = tuple(
            index for index, column in enumerate(table.columns.values()) if column.type is float
        )

    def key(self, row: Row) -> Row:
        """Return the key of a row."""
        found = self._key(row)
        return found if len(self.table.key) > 1 else (found,)

    def new_row(self, columns: Iterable[str], values: Iterable[Any]) -> Row:
        """Return a row of these columns, with the defaults of all others."""
        row = [*self._defaults]
        for name, value in zip(columns, values, strict=True):
            row[self.columns[name]] = value
        if self.table.counted and row[0] is None:
            row[0] = next(self.counter)
        return self.with_floats(row)

    def with_floats(self, row: list[Any]) -> Row:
        """Return a row whose times are floats, even if they were given as integers."""
        for index in self._floats:
            if row[index] is not None:
                row[index] = float(row[index])
        return tuple(row)

    def put(self, key: Row, row: Row | None) -> None:
        """Set the row of a key, None to delete it."""
        former = self.by_key.get(key)
        if self.table.unique is not None:
            place = self.columns[self.table.unique]
            if former is not None:
                del self.unique[former[place]]
            if row is not None:
                self.unique[row[place]] = key
        if row is not None:
            if former is None:
                insort(self.keys, key)
            self.by_key[key] = row
        elif former is not None:
            del self.by_key[key]
            self.keys.remove(key)

    def is_taken(self, row: Row) -> bool:
        """Return whether a row has this key, or this value of the unique column."""
        unique = self.table.unique
        taken = unique is not None and row[self.columns[unique]] in self.unique
        return taken or self.key(row) in self.by_key


class _Shared:
    """The rows and locks that all connections share."""

    def __init__(self) -> None:
        self.rows = {table: _Rows(table) for table in TABLES}
        self.lock = RLock()
        """Held by a transaction."""
        self.holders: dict[int, MemoryConnection] = {}
        self.version = 0
        self.process = os.getpid()


class MemoryConnection:
    """The rows as one thread uses them (protocol `asl.stores.backend.StoreConnection`)."""

    refusal: str | None = None

    def __init__(self, shared: _Shared) -> None:
        self.on_fail_point: Callable[[str], object] = _nothing
        self.is_closed = False
        self._shared = shared
        self._thread = get_ident()
        self._own = 0
        self._undo: list[tuple[_Rows, Row, Row | None]] = []

    @property
    def is_usable(self) -> bool:
        """Return whether thread and process are those that connected."""
        return self._thread == get_ident() and self._shared.process == os.getpid()

    def close(self) -> None:
        """Release all locks."""
        self.is_closed = True
        holders = self._shared.holders
        for number in [number for number, holder in holders.items() if holder is self]:
            del holders[number]

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Raise StoreError: a store in memory has no file."""
        raise StoreError("a store in memory has no file: export its executions instead")

    def faults(self) -> Iterator[str]:
        """Yield nothing: memory cannot be damaged."""
        yield from ()

    def _insist_open(self) -> None:
        if self.is_closed:
            raise StoreError(f"the store in memory: {CLOSED}")

    # Locks

    def lock(self, number: int) -> bool:
        """Take a lock; return False if another connection holds it."""
        with self._shared.lock:
            return self._shared.holders.setdefault(number, self) is self

    def unlock(self, number: int) -> None:
        """Release a lock."""
        with self._shared.lock:
            if self._shared.holders.get(number) is self:
                del self._shared.holders[number]

    def is_locked(self, number: int) -> bool:
        """Return whether another connection holds a lock."""
        return self._shared.holders.get(number, self) is not self

    # Reading

    def version(self) -> tuple[int, int]:
        """Return the numbers of writes by others and by this connection."""
        self._insist_open()
        return self._shared.version - self._own, self._own

    def change_marker(self) -> int:
        """Return the number of writes by all connections."""
        return self._shared.version

    def select(self, statement: Select, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""
        self._insist_open()
        with self._shared.lock:
            rows = self._shared.rows[statement.table]
            given = iter(values)
            found = [*_matching(rows, statement.where, given)]
            for order in reversed(statement.order):
                _sort(found, rows.columns, order)
            if statement.after:
                position = [next(given) for _ in statement.order]
                position_of = partial(_position, rows.columns, statement.order)
                found = found[bisect_right(found, position, key=position_of) :]
            if statement.limited:
                found = found[: next(given)]
            places = [rows.columns[name] for name in statement.columns]
            more = (1,) if statement.checked else ()
            return [(*(row[place] for place in places), *more) for row in found]

    def scan(self, statement: Select, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query."""
        yield from self.select(statement, values)

    def trace(self, place: int, number: int, first: int) -> list[tuple[int, int]]:
        """Return number and place of steps of one execution, from one back to another."""
        steps, found = self._shared.rows[STEP], []
        while number >= first and (row := steps.by_key.get((place,))) and row[2] == number:
            found.append((number, place))
            place, number = row[3], number - 1
        return found

    # Writing

    def commit(self, writes: Iterable[Write], check: Callable[[], object] | None) -> None:
        """Make changes in one transaction."""
        with self.transaction(lambda: writes, check):
            pass

    @contextmanager
    def transaction(
        self, writes: Callable[[], Iterable[Write]], check: Callable[[], object] | None
    ) -> Iterator[None]:
        """Read and write in one transaction; others wait for its end."""
        self._insist_open()
        self.on_fail_point("commit.begin")
        with self._shared.lock:
            self._undo = []
            try:
                if check is not None:
                    check()
                yield
                self._change(writes())
                self._confirm()
                self.on_fail_point("commit.written")
            except BaseException:  # after any exception nothing of it remains
                for rows, key, row in reversed(self._undo):
                    rows.put(key, row)
                raise
            self._shared.version += 1
            self._own += 1
        self.on_fail_point("commit.done")

    def _confirm(self) -> None:
        """Do nothing; a backend that shares rows with others sends the changes, or refuses them."""

    def _changed_rows(self, table: Table) -> dict[Row, Row | None]:
        """Return the rows that the transaction has changed, by key; None for deleted ones."""
        return {key: rows.by_key.get(key) for rows, key, _ in self._undo if rows.table is table}

    def _change(self, writes: Iterable[Write]) -> None:
        for change, values in writes:
            if isinstance(change, (Insert, Update, Delete, Append)):
                self._make(change, values)
            else:
                self._change(change(*values))

    def _make(self, change: Change, values: Values) -> None:
        match change:
            case Append():
                self._append(*values)
            case Insert():
                self._insert(change, values)
            case Update(table, changes, where):
                given = iter(values)
                rows = self._shared.rows[table]
                new = {
                    name: next(given) if value is PARAMETER else value
                    for name, value in changes.items()
                }
                for row in [*_matching(rows, where, given)]:
                    self._update(rows, row, new)
            case Delete(table, where):
                rows = self._shared.rows[table]
                for row in [*_matching(rows, where, iter(values))]:
                    self._put(rows, rows.key(row), None)

    def _append(self, execution: int, number: int, hash: bytes, body: bytes) -> None:
        heads = self._shared.rows[HEAD]
        ((_, last, before),) = _matching(heads, {"execution": execution}, iter(()))
        if last != number - 1:
            raise StoreContradicted(f"the store in memory: {CONTRADICTED}")
        steps = self._shared.rows[STEP]
        columns = ("execution", "number", "before", "hash", "body")
        step = steps.new_row(columns, (execution, number, before, hash, body))
        self._put(steps, steps.key(step), step)
        self._put(heads, (execution,), (execution, number, step[0]))

    def _insert(self, insert: Insert, values: Values) -> None:
        rows = self._shared.rows[insert.table]
        row = rows.new_row(insert.columns, values)
        key = rows.key(row)
        former = rows.by_key.get(key)
        if not rows.is_taken(row):
            self._put(rows, key, row)
            if insert.table is EXECUTION:
                self._put(self._shared.rows[HEAD], key, (*key, 0, 0))
        elif insert.otherwise == "update" and former is not None:
            if _meets(rows, former, insert.where):
                new = {name: row[rows.columns[name]] for name in insert.update}
                self._update(rows, former, new)
        elif insert.otherwise != "keep":
            raise StoreContradicted(f"the store in memory: {CONTRADICTED}")

    def _update(self, rows: _Rows, row: Row, new: Mapping[str, Any]) -> None:
        changed = [*row]
        for name, value in new.items():
            changed[rows.columns[name]] = value
        self._put(rows, rows.key(row), rows.with_floats(changed))

    def _put(self, rows: _Rows, key: Row, row: Row | None) -> None:
        self._undo.append((rows, key, rows.by_key.get(key)))
        rows.put(key, row)


def _matching(rows: _Rows, where: Where, given: Iterator[Any]) -> Iterator[Row]:
    """Yield the rows that meet conditions, in the order of their keys."""
    tests = [(rows.columns[name], *_test(test, given)) for name, test in where.items()]
    yield from (
        row
        for row in _candidates(rows, where, tests)
        if all(passes(row[place], value) for place, passes, value in tests)
    )


def _candidates(
    rows: _Rows, where: Where, tests: list[tuple[int, Callable[[Any, Any], bool], Any]]
) -> list[Row]:
    """Return rows that include those that meet the conditions: a single one for a given key."""
    names = [*where]
    for name, (_, passes, value) in zip(names, tests, strict=True):
        if passes is _TESTS["="] and (name,) == rows.table.key:
            return [rows.by_key[(value,)]] if (value,) in rows.by_key else []
        if passes is _TESTS["="] and name == rows.table.unique:
            return [rows.by_key[rows.unique[value]]] if value in rows.unique else []
        if passes is _TESTS["in"] and (name,) == rows.table.key:
            keys = sorted({(each,) for each in value})
            return [rows.by_key[key] for key in keys if key in rows.by_key]
    return [rows.by_key[key] for key in rows.keys]


def _test(test: Condition, given: Iterator[Any]) -> tuple[Callable[[Any, Any], bool], Any]:
    """Return a test and its value."""
    if test is None:
        return _is_none, None
    if not isinstance(test, Predicate):
        return _TESTS["="], next(given) if test is PARAMETER else test
    if test.kind == "><":
        return _TESTS["><"], (next(given), next(given))
    value = next(given) if test.value is PARAMETER else test.value
    return _TESTS[test.kind], value


def _is_none(value: Any, given: Any) -> bool:
    return value is None


def _meets(rows: _Rows, row: Row, where: Where) -> bool:
    tests = ((rows.columns[name], *_test(test, iter(()))) for name, test in where.items())
    return all(passes(row[place], value) for place, passes, value in tests)


def _sort(found: list[Row], columns: Mapping[str, int], order: str) -> None:
    """Sort rows by a column, stably."""
    place = columns[order.lstrip("-#")]
    if order[0] == "#":
        found.sort(key=lambda row: -1 if row[place] is None else length_of(row[place]))
    else:
        found.sort(key=lambda row: (row[place] is not None, row[place]), reverse=order[0] == "-")


def _position(columns: Mapping[str, int], order: Sequence[str], row: Row) -> list[Any]:
    """Return the values of a row's sort columns."""
    return [
        length_of(row[columns[name[1:]]]) if name[0] == "#" else row[columns[name]]
        for name in order
    ]


class MemoryBackend:
    """Stores executions until the process ends (protocol `asl.stores.backend.StoreBackend`)."""

    place = "memory:"

    def __init__(self) -> None:
        self._shared = _Shared()
        self.checkpoints: Storage = {}
        """The checkpoints of the storage `file`."""

    def connect(self) -> MemoryConnection:
        """Return a connection for the calling thread.

        Raises:
            StoreError: Another process created the store.
        """
        if self._shared.process != os.getpid():
            raise StoreError(FORKED)
        return MemoryConnection(self._shared)

    def faults(self) -> Iterator[str]:
        """Yield nothing: memory cannot be damaged."""
        yield from ()


def _nothing(point: str) -> None:
    """Ignore a fail point."""
