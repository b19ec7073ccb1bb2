"""SQL of the tables and statements of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from asl.core.values import compact
from asl.stores.statements import (
    PARAMETER,
    Append,
    Change,
    Condition,
    Delete,
    Insert,
    Predicate,
    Select,
    Update,
    Values,
    Where,
)
from asl.stores.tables import TABLES, Table

__all__ = ["TRACE", "compile_statement", "parameters", "schema", "triggers"]

_TYPES: Final = {str: "TEXT", bytes: "BLOB", int: "INTEGER", float: "REAL"}

TRACE: Final = (
    "WITH RECURSIVE back (place, number, before) AS ("
    "SELECT place, number, before FROM step WHERE place = ? AND number = ? UNION ALL "
    "SELECT step.place, step.number, step.before FROM back JOIN step "
    "ON step.place = back.before AND step.number = back.number - 1 WHERE back.number > ?) "
    "SELECT number, place FROM back"
)
"""Steps from the last one back to a number."""
_APPEND: Final = (
    "INSERT INTO step (execution, number, before, hash, body) "
    "VALUES (?, ?, (SELECT place FROM head WHERE execution = ?), ?, ?)"
)
_HISTORIES: Final = """
    CREATE TRIGGER execution_begun AFTER INSERT ON execution BEGIN
        INSERT INTO head VALUES (NEW.number, 0, 0);
    END;
    CREATE TRIGGER step_made AFTER INSERT ON step BEGIN
        UPDATE head SET place = NEW.place, step = CASE step
            WHEN NEW.number - 1 THEN NEW.number
            ELSE raise(ABORT, 'another step is the next one') END
        WHERE execution = NEW.execution;
    END;
"""


def schema() -> Iterator[str]:
    """Yield the statements that create all tables."""
    for table in TABLES:
        yield _created(table)
        for index in table.indexes:
            last = index.columns[-1]
            partial = f" WHERE {last} IS NOT NULL" if index.partial else ""
            name = "_".join((table.name, *index.columns))
            yield f"CREATE INDEX {name} ON {table.name} ({', '.join(index.columns)}){partial}"
        if table.guarded:
            yield from _guards(table)
    for trigger in _HISTORIES.split("    END;\n")[:-1]:
        yield f"{trigger}    END"


@cache
def triggers() -> frozenset[str]:
    """Return the names of the triggers of a store."""
    words = (statement.split(maxsplit=3) for statement in schema())
    return frozenset(name for _, kind, name, _ in words if kind == "TRIGGER")


def _created(table: Table) -> str:
    """Return the statement that creates a table."""
    columns = []
    for name, column in table.columns.items():
        text = f"{name} {_TYPES[column.type]}"
        if table.key == (name,):
            text += " PRIMARY KEY AUTOINCREMENT" if table.monotonic else " PRIMARY KEY"
        if name == table.unique:
            text += " UNIQUE"
        if not column.optional:
            text += " NOT NULL"
        if column.default is not None:
            text += f" DEFAULT {column.default}"
        columns.append(text)
    if table.guarded:
        columns.append("guard INTEGER")
    if len(table.key) > 1:
        columns.append(f"PRIMARY KEY ({', '.join(table.key)})")
    # A table with a numeric key is sorted by it already.
    by_number = len(table.key) == 1 and table.columns[table.key[0]].type is int
    return (
        f"CREATE TABLE {table.name} ({', '.join(columns)}){'' if by_number else ' WITHOUT ROWID'}"
    )


def _guards(table: Table) -> Iterator[str]:
    """Yield the triggers that update the checksums of a table's rows."""
    columns = ", ".join(table.columns)
    row = " AND ".join(f"{key} = NEW.{key}" for key in table.key)
    for name, event in (("made", "INSERT"), ("changed", f"UPDATE OF {columns}")):
        yield (
            f"CREATE TRIGGER {table.name}_{name} AFTER {event} ON {table.name} BEGIN "
            f"UPDATE {table.name} SET guard = guard({columns}) WHERE {row}; END"
        )


class CompiledStatement(NamedTuple):
    """The SQL of a statement, and the indices of its list values."""

    sql: str
    lists: tuple[int, ...]

    def values(self, values: Values) -> Values:
        """Return the values in SQLite's form: a list as JSON."""
        if not self.lists:
            return values
        return tuple(
            compact(value) if index in self.lists else value for index, value in enumerate(values)
        )


_COMPILED: Final[dict[Change | Select, CompiledStatement]] = {}
"""By identity, since statements are created once."""


def compile_statement(statement: Change | Select) -> CompiledStatement:
    """Return the SQL of a statement."""
    found = _COMPILED.get(statement)
    if found is None:
        found = _COMPILED[statement] = _compiled(statement)
    return found


def parameters(change: Change, values: Iterable[Values]) -> list[Values]:
    """Return the values of several uses of a change in SQLite's form."""
    if isinstance(change, Append):
        return [_of_step(*step) for step in values]
    sql = compile_statement(change)
    return [sql.values(each) for each in values] if sql.lists else [*values]


def _of_step(execution: int, number: int, hash: bytes, body: bytes) -> Values:
    """Return the values of a step; copying bytes is cheaper than `sqlite3`'s search for an
    adapter.
    """
    return execution, number, execution, bytearray(hash), bytearray(body)


def _compiled(statement: Change | Select) -> CompiledStatement:
    match statement:
        case Append():
            return CompiledStatement(_APPEND, ())
        case Insert():
            return CompiledStatement(_insert(statement), ())
        case Update(table, changes, where):
            given = sum(1 for value in changes.values() if value is PARAMETER)
            assigned = ", ".join(f"{name} = {_literal(value)}" for name, value in changes.items())
            return _with(f"UPDATE {table.name} SET {assigned}", where, given)
        case Delete(table, where):
            return _with(f"DELETE FROM {table.name}", where)
        case Select():
            return _select(statement)


def _insert(insert: Insert) -> str:
    table, marks = insert.table.name, ", ".join("?" for _ in insert.columns)
    sql = f"INSERT INTO {table} ({', '.join(insert.columns)}) VALUES ({marks})"
    if insert.otherwise == "keep":
        return sql + " ON CONFLICT DO NOTHING"
    if insert.otherwise == "update":
        changes = ", ".join(f"{name} = excluded.{name}" for name in insert.update)
        sql += f" ON CONFLICT ({', '.join(insert.table.key)}) DO UPDATE SET {changes}"
        return sql + _conditions({f"{table}.{name}": test for name, test in insert.where.items()})
    return sql


def _select(select: Select) -> CompiledStatement:
    table, columns = select.table, ", ".join(select.columns)
    if select.checked:
        whole = f"guard({', '.join(table.columns)}) = guard"
        columns = f"{columns}, {whole}" if columns else whole
    sql = _with(f"SELECT {columns} FROM {table.name}", select.where, by=select.by)
    text, order = sql.sql, ", ".join(map(_ordered, select.order))
    if select.after:
        marks = ", ".join("?" for _ in select.order)
        text += f" {'AND' if select.where else 'WHERE'} ({order}) > ({marks})"
    if order:
        text += f" ORDER BY {order}"
    if select.limited:
        text += " LIMIT ?"
    return sql._replace(sql=text)


def _ordered(column: str) -> str:
    kinds: dict[str, Callable[[str], str]] = {"-": "{} DESC".format, "#": "length({})".format}
    return kinds[column[0]](column[1:]) if column[0] in kinds else column


def _with(sql: str, where: Where, before: int = 0, by: str | None = None) -> CompiledStatement:
    """Return a statement with its conditions.

    Args:
        sql: The statement.
        where: The conditions.
        before: Number of values before theirs.
        by: Column whose index to use; None to let SQLite choose.
    """
    lists = []
    for condition in where.values():
        if isinstance(condition, Predicate) and condition.value is PARAMETER:
            if condition.kind == "in":
                lists.append(before)
            before += 1 + (condition.kind == "><")
        elif condition is PARAMETER:
            before += 1
    return CompiledStatement(sql + _conditions(where, by), tuple(lists))


def _conditions(where: Where, by: str | None = None) -> str:
    if not where:
        return ""
    # SQLite uses no index for a column with a sign.
    named = ((name if by in (None, name) else f"+{name}", test) for name, test in where.items())
    return " WHERE " + " AND ".join(_condition(name, test) for name, test in named)


def _condition(column: str, test: Condition) -> str:
    if test is None:
        return f"{column} IS NULL"
    if not isinstance(test, Predicate):
        return f"{column} = {_literal(test)}"
    match test.kind:
        case "set":
            return f"{column} IS NOT NULL"
        case "in" if test.value is PARAMETER:
            return f"{column} IN (SELECT value FROM json_each(?))"
        case "in" | "not in":
            assert isinstance(test.value, tuple)
            values = ", ".join(map(_literal, test.value))
            return f"{column} {'NOT ' * (test.kind == 'not in')}IN ({values})"
        case "><":
            return f"{column} > ? AND {column} <= ?"
        case "begins":
            return _begins(column, test.value)
        case "contains":
            return f"instr({column}, {_literal(test.value)})"
        case kind:
            return f"{column} {kind} {_literal(test.value)}"


def _begins(column: str, value: object) -> str:
    """Return the condition for a prefix; `LIKE` would interpret its wildcards."""
    if value is PARAMETER:
        return f"instr({column}, ?) = 1"
    assert isinstance(value, (str, bytes))
    return f"substr({column}, 1, {len(value)}) = {_literal(value)}"


def _literal(value: object) -> str:
    """Return a value as an SQL literal, or the mark of a parameter."""
    if value is PARAMETER:
        return "?"
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    assert isinstance(value, (int, float))
    return repr(value)
