"""Export of executions as lines of JSON, and import into another store.

A line is self-contained: the rows of a root execution and its descendants, with the documents and
large values that they refer to, and a digest.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from asl.core.values import MAX_DEPTH, Json, compact, deeper_than, encode, excerpt
from asl.stores.deletion import LARGE_IN_STEP
from asl.stores.errors import StoreDamaged, StoreError
from asl.stores.executions import (
    LARGEST_NUMBER,
    STATUSES,
    STORED,
    find_execution,
    numbers_below,
    read_row,
)
from asl.stores.log import Log
from asl.stores.requests import OF_EXECUTION, find_requests, find_tasks
from asl.stores.session import Session
from asl.stores.statements import APPEND, PARAMETER, Insert, Select
from asl.stores.tables import BLOB, CHECKPOINT, DOCUMENT, EXECUTION, REQUEST, STEP, Table

__all__ = ["export_executions", "import_execution", "joined_history", "with_briefs"]

TABLES: Final = {EXECUTION: "number", REQUEST: "execution", CHECKPOINT: "execution"}
"""Tables with rows of executions except the steps, and the column with their number."""
FORMER: Final = re.compile(rb'"(?:replaced|document)":"([0-9a-f]{64})"')
"""Reference of a step to an earlier document of the execution."""
LAST_TIME: Final = 253_402_300_799
"""The last second of the year 9999."""
DEEPEST: Final = MAX_DEPTH + 8
"""Maximum nesting of an exported execution: that of a document or a value, plus the levels around
it."""
TOPS = Select(EXECUTION, ("number", "name"), {"parent": None}, order=("number",))
STORED_OF = Select(EXECUTION, STORED, {"number": PARAMETER}, checked=True)
TAKEN = Select(EXECUTION, ("name",), {"number": PARAMETER})
STEPS = Select(STEP, ("hash", "body"), {"execution": PARAMETER}, order=("number",))
HAS_BLOB = Select(BLOB, ("hash",), {"hash": PARAMETER})
HAS_DOCUMENT = Select(DOCUMENT, ("hash",), {"hash": PARAMETER})
ROWS: Final = {
    table: Select(table, tuple(table.columns), {key: PARAMETER}, checked=True)
    for table, key in TABLES.items()
}
ADD: Final = {table: Insert(table, tuple(table.columns)) for table in TABLES}


def export_executions(
    session: Session, names: list[str] | None, damaged: list[str]
) -> Iterator[Json]:
    """Yield each readable root execution as JSON.

    Args:
        session: The store.
        names: The executions; None for all.
        damaged: Receives a sentence on each execution that is left out.
    """
    for number, name in session.select(TOPS):
        if names is None or name in names:
            try:
                content = _exported(session, number)
            except StoreDamaged as damage:
                damaged.append(f"{name}: {damage.what}")
            else:
                yield {"sha256": _digest(content), **content}


def _exported(session: Session, top: int) -> dict[str, Json]:
    """Return the complete content of an execution.

    Raises:
        StoreDamaged: It is damaged.
    """
    content: dict[str, Json] = {"executions": []}
    documents: set[str] = set()
    large: set[bytes] = set()
    for number in (top, *numbers_below(session, top)):
        (row,) = session.select(STORED_OF, number)
        documents.add(read_row(session, row).document)
        find_requests(session, OF_EXECUTION, number)  # raises for a damaged value
        find_tasks(session, OF_EXECUTION, number)
        for _ in Log(session, number).read():
            pass
        rows: dict[str, Json] = {table.name: _rows(session, table, number) for table in TABLES}
        found = session.select(STEPS, number)
        rows["step"] = [[_written(hash), _written(body)] for hash, body in found]
        content["executions"].append(rows)
        large.update(_large(session, number))
        for _, body in found:  # a missing one is data that looks like a reference
            keys = (bytes.fromhex(key.decode()) for key in LARGE_IN_STEP.findall(body))
            large.update(key for key in keys if session.select(HAS_BLOB, key))
            named = (key.decode() for key in FORMER.findall(body))
            documents.update(key for key in named if session.select(HAS_DOCUMENT, key))
    content["documents"] = {key: session.values.document(key) for key in sorted(documents)}
    content["large"] = {key.hex(): session.values.large(key) for key in sorted(large)}
    return content


def with_briefs(line: Json, briefs: Mapping[int, tuple[int, Json]]) -> Json:
    """Return an exported execution whose logs begin with what their first steps have led to.

    It continues like the whole one, and has only the history after these steps.

    Args:
        line: The exported execution.
        briefs: Number of the first steps, and their brief (`StoreJournal.brief`), by number of the
            execution.
    """
    content = {key: value for key, value in line.items() if key != "sha256"}
    executions = []
    for rows in content["executions"]:
        (execution,) = rows["execution"]
        count, brief = briefs[execution["number"]]
        chain, steps = _read(execution["chain"]), list[Json]()
        bodies = [
            encode([["brief", "", brief]]),
            *(_read(body) for _, body in rows["step"][count:]),
        ]
        for body in bodies:
            chain = sha256(chain + body).digest()
            steps.append([_written(chain), _written(body)])
        executions.append({**rows, "step": steps})
    content["executions"] = executions
    return {"sha256": _digest(content), **content}


def joined_history(lines: Sequence[Json]) -> Json:
    """Return the last of several exports of an execution, with the histories of all.

    Each but the first begins with a brief (`with_briefs`).
    """
    content = {key: value for key, value in lines[-1].items() if key != "sha256"}
    executions = []
    for rows in content["executions"]:
        (execution,) = rows["execution"]
        parts = [_steps_of(line, execution["name"]) for line in lines]
        bodies = [_read(body) for _, body in parts[0]]
        bodies += [_read(body) for part in parts[1:] for _, body in part if not _is_brief(body)]
        chain, steps = _read(execution["chain"]), list[Json]()
        for body in bodies:
            chain = sha256(chain + body).digest()
            steps.append([_written(chain), _written(body)])
        executions.append({**rows, "step": steps})
    content["executions"] = executions
    for part in ("documents", "large"):
        content[part] = {key: value for line in lines for key, value in line[part].items()}
    return {"sha256": _digest(content), **content}


def _steps_of(line: Json, name: str) -> list[Json]:
    for rows in line["executions"]:
        if rows["execution"][0]["name"] == name:
            steps: list[Json] = rows["step"]
            return steps
    return []


def _is_brief(body: Json) -> bool:
    text: bytes = _read(body)
    return text.startswith(b'[["brief",')


def _rows(session: Session, table: Table, number: int) -> list[Json]:
    """Return the rows of an execution in a table, each by names of the columns."""
    rows = []
    for *row, whole in session.select(ROWS[table], number):
        session.check(whole == 1, f"a row of the table {table.name!r}")
        by_name = dict(zip(table.columns, row, strict=True))
        for column in table.values:
            if by_name[column] is not None:
                session.values.check(by_name[column])
        rows.append({name: _written(value) for name, value in by_name.items()})
    return rows


def _large(session: Session, number: int) -> Iterator[bytes]:
    """Yield the hashes of the large values of an execution's rows."""
    for table in TABLES:
        for *row, _ in session.select(ROWS[table], number):
            by_name = dict(zip(table.columns, row, strict=True))
            for column in table.values:
                body = by_name[column]
                if body is not None and body[:1] == b"#":
                    yield body[1:]


def _digest(content: Json) -> str:
    return sha256(compact(content).encode()).hexdigest()


def _written(value: Any) -> Json:
    return {"base64": b64encode(value).decode()} if type(value) is bytes else value


def _read(value: Json) -> Any:
    return b64decode(value["base64"], validate=True) if type(value) is dict else value


def _cell(table: Table, name: str, written: Json) -> Any:
    """Return the value of a column.

    Raises:
        ValueError: The column cannot have it.
    """
    column, value = table.columns[name], _read(written)
    kind = type(value)
    if value is None:
        fits = column.optional
    elif column.type is float:
        fits = kind in (int, float) and 0 <= value <= LAST_TIME
    elif column.type is int:
        fits = kind is int and abs(value) < 2**63
    else:
        fits = kind is column.type
    if not fits:
        raise ValueError(f"{table.name}.{name} cannot be {excerpt(written, 100)}")
    return value


def import_execution(session: Session, line: Json) -> str:
    """Add an exported execution to a store and return its name.

    Raises:
        StoreError: The line is damaged, or the store has an execution of this name. Nothing is
            changed.
    """
    if deeper_than(line, DEEPEST):
        raise StoreError(f"it is nested deeper than {DEEPEST} levels")
    if type(line) is not dict or line.get("sha256") != _digest(
        {key: value for key, value in line.items() if key != "sha256"}
    ):
        raise StoreError("it is not an exported execution, or was changed: its digest differs")
    with session.transaction():
        try:
            return _import(session, line)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise StoreError(f"it is not an exported execution: {error!r}") from error


def _import(session: Session, line: dict[str, Json]) -> str:
    above: set[Json] = {None}
    """What may have started the next execution: nothing the first, one of the line the others."""
    for rows in line["executions"]:
        (execution,) = rows["execution"]
        number = _cell(EXECUTION, "number", execution["number"])
        if not 0 < number < LARGEST_NUMBER or execution["status"] not in STATUSES:
            raise ValueError(f"no execution has number {number} and the status that is given")
        if not execution["name"].isprintable() or execution["document"] not in line["documents"]:
            raise ValueError("an execution has a printable name, and its document in the line")
        if execution["parent"] not in above or number in above:
            raise ValueError(f"the line has no parent of {excerpt(execution['name'], 100)}")
        above = {*above, number} - {None}
        is_taken = find_execution(session, execution["name"]) is not None
        if is_taken or session.select(TAKEN, execution["number"]):
            raise StoreError(f"{session.place} has an execution {execution['name']!r} already")
    for key, document in line["documents"].items():
        body = encode(document)
        if sha256(body).hexdigest() != key:
            raise StoreError(f"the document {key[:12]} was changed")
        session.values.put_document(key, body)
    for key, value in line["large"].items():
        if session.values.put_large(encode(value)).hex() != key:
            raise StoreError(f"the large value {key[:12]} was changed")
    for rows in line["executions"]:
        _put(session, rows)
    return str(line["executions"][0]["execution"][0]["name"])


def _put(session: Session, rows: Json) -> None:
    """Write the rows of an execution."""
    for table in TABLES:
        for row in rows[table.name]:
            session.write(ADD[table], *(_cell(table, name, row[name]) for name in table.columns))
    (execution,) = rows["execution"]
    number, chain = execution["number"], _read(execution["chain"])
    for count, step in enumerate(rows["step"], start=1):
        hash, body = map(_read, step)
        chain = sha256(chain + body).digest()
        if hash != chain:
            raise StoreError(f"step {count} of the history of {execution['name']!r} was changed")
        session.write(APPEND, number, count, hash, body)
