"""Executions as lines of JSON: out of one store, damaged ones left out, and into another.

A line is self-contained: the rows of a top execution and of all that it started, with the documents
and large values that they refer to, and a digest of all of it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asl.core.values import Json, compact, encoded
from asl.stores.deletion import REFERENCE, REFERRING
from asl.stores.log import Log
from asl.stores.schema import GUARDED
from asl.stores.sqlite import BELOW, STORED, StoreDamaged, StoreError

if TYPE_CHECKING:
    from asl.stores.sqlite import SqliteStore

__all__ = ["export_executions", "import_execution"]

ROWS = {"execution": "number", "request": "execution", "checkpoint": "execution"}
"""The tables with rows of executions, beside the steps, and the column with their number."""
FORMER = re.compile(rb'"(?:replaced|document)":"([0-9a-f]{64})"')
"""How a step refers to a document that the execution has had."""
BLOB = "SELECT 1 FROM blob WHERE lower(hex(hash)) = ?"
DOCUMENT = "SELECT 1 FROM document WHERE hash = ?"
NEW_STEP = "INSERT INTO step (execution, number, before, hash, body) VALUES (?, ?, ?, ?, ?)"


def export_executions(
    store: SqliteStore, names: list[str] | None, damaged: list[str]
) -> Iterator[Json]:
    """Yield each readable top execution as JSON.

    Args:
        store: The store.
        names: The executions; None for all.
        damaged: Takes a sentence on each execution that is left out.
    """
    tops = "SELECT number, name FROM execution WHERE parent IS NULL ORDER BY number"
    for number, name in store.rows(tops):
        if names is None or name in names:
            try:
                content = _exported(store, number)
            except StoreDamaged as damage:
                damaged.append(f"{name}: {damage.what}")
            else:
                yield {"sha256": _digest(content), **content}


def _exported(store: SqliteStore, top: int) -> dict[str, Json]:
    """Return all of an execution; raises StoreDamaged where it is not what was written."""
    below = store.rows(f"{BELOW} SELECT number FROM below", top)
    content: dict[str, Json] = {"executions": []}
    documents: set[str] = set()
    large: set[bytes] = set()
    for number in (top, *(each for (each,) in below)):
        (row,) = store.rows(f"SELECT {STORED} FROM execution WHERE number = ?", number)
        documents.add(store.stored(row).document)
        store.requests("execution = ?", number)
        store.tasks("execution = ?", number)
        store.checkpoints("execution = ?", number)
        for _ in Log(store, number).read():  # raises for a step that was changed
            pass
        rows: dict[str, Json] = {table: _rows(store, table, number) for table in ROWS}
        steps = "SELECT hash, body FROM step WHERE execution = ? ORDER BY number"
        found = store.rows(steps, number)
        rows["step"] = [[_written(hash), _written(body)] for hash, body in found]
        content["executions"].append(rows)
        large.update(_large(store, number))
        for _, body in found:  # what is missing of these is data that looks like a reference
            large.update(key for key in REFERENCE.findall(body) if _has(store, BLOB, key.decode()))
            named = (key.decode() for key in FORMER.findall(body))
            documents.update(key for key in named if _has(store, DOCUMENT, key))
    content["documents"] = {key: store.document(key) for key in sorted(documents)}
    content["large"] = {key.decode(): store.large(bytes.fromhex(key.decode())) for key in large}
    return content


def _has(store: SqliteStore, query: str, key: str) -> bool:
    return bool(store.rows(query, key))


def _rows(store: SqliteStore, table: str, number: int) -> list[Json]:
    """Return the rows of an execution in a table, each by the names of its columns."""
    columns = GUARDED[table].split(", ")
    where = f"FROM {table} WHERE {ROWS[table]} = ?"
    changed = store.rows(f"SELECT 1 {where} AND guard({GUARDED[table]}) IS NOT guard", number)
    store.check(not changed, f"a row of the table {table!r}")
    found = store.rows(f"SELECT {GUARDED[table]} {where}", number)
    for row in found:
        for column in REFERRING[table]:
            if row[columns.index(column)] is not None:
                store.check_value(row[columns.index(column)])
    return [dict(zip(columns, map(_written, row), strict=True)) for row in found]


def _large(store: SqliteStore, number: int) -> Iterator[bytes]:
    """Yield the hashes of the large values to which the rows of an execution refer."""
    for table, key in ROWS.items():
        for column in REFERRING[table]:
            condition = f"{key} = ? AND substr({column}, 1, 1) = x'23'"
            for (body,) in store.rows(f"SELECT {column} FROM {table} WHERE {condition}", number):
                yield body[1:].hex().encode()


def _digest(content: Json) -> str:
    return sha256(compact(content).encode()).hexdigest()


def _written(value: Any) -> Json:
    return {"base64": b64encode(value).decode()} if type(value) is bytes else value


def _read(value: Json) -> Any:
    return b64decode(value["base64"]) if type(value) is dict else value


def import_execution(store: SqliteStore, line: Json) -> str:
    """Add an exported execution to a store; returns its name.

    Raises StoreError, and changes nothing, for a line that is not what was exported and for an
    execution whose name the store has.
    """
    if type(line) is not dict or line.get("sha256") != _digest(
        {key: value for key, value in line.items() if key != "sha256"}
    ):
        raise StoreError("it is not an exported execution, or was changed: its digest differs")
    with store.transaction():
        try:
            return _import(store, line)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise StoreError(f"it is not an exported execution: {error!r}") from error


def _import(store: SqliteStore, line: dict[str, Json]) -> str:
    for rows in line["executions"]:
        (execution,) = rows["execution"]
        taken = "SELECT 1 FROM execution WHERE name = ? OR number = ?"
        if store.rows(taken, execution["name"], execution["number"]):
            raise StoreError(f"{store.path} has an execution {execution['name']!r} already")
    ((place,),) = store.rows("SELECT coalesce(max(place), 0) FROM step")
    for key, document in line["documents"].items():
        body = encoded(document)
        if sha256(body).hexdigest() != key:
            raise StoreError(f"the document {key[:12]} was changed")
        store.put_document(key, body)
    for key, value in line["large"].items():
        if store.put_large(encoded(value)).hex() != key:
            raise StoreError(f"the large value {key[:12]} was changed")
    for rows in line["executions"]:
        place = _put(store, rows, place)
    return str(line["executions"][0]["execution"][0]["name"])


def _put(store: SqliteStore, rows: Json, place: int) -> int:
    """Write the rows of an execution; returns the place of the last step in the store."""
    for table in ROWS:
        columns = GUARDED[table].split(", ")
        marks = ", ".join("?" for _ in columns)
        for row in rows[table]:
            values = [_read(row[column]) for column in columns]
            store.write(f"INSERT INTO {table} ({GUARDED[table]}) VALUES ({marks})", *values)
    (execution,) = rows["execution"]
    number, before, chain = execution["number"], 0, _read(execution["chain"])
    for count, step in enumerate(rows["step"], start=1):
        hash, body = map(_read, step)
        chain = sha256(chain + body).digest()
        if hash != chain:
            raise StoreError(f"step {count} of the history of {execution['name']!r} was changed")
        store.write(NEW_STEP, number, count, before, hash, body)
        place += 1
        before = place
    return place
