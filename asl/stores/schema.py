"""The tables of a store and their versions; a version is reached by one upgrade from the last."""

from asl.stores.live import TABLE as LIVE
from asl.stores.regroup import regroup
from asl.stores.workers import TABLES as WORKERS

__all__ = ["APPLICATION_ID", "GUARDED", "LARGE", "MOST", "UPGRADES", "VERSION"]

LARGE = 64 * 1024
"""Bytes from which on a value is stored by its content, once."""

MOST = 1024 * 1024
"""Bytes from which on what an execution has gathered becomes more than one row."""

APPLICATION_ID = 0x41534C31
"""`ASL1`: marks a SQLite file as a store of ours."""

_FORMER = (
    "number, name, workflow, document, profile, express, requestor, status, started, ended, "
    "wake, error, cause, redrives, parent, redriven, written_by, bound"
)
"""The columns of an execution that had a checksum up to version 11."""
GUARDED = {
    "execution": f"{_FORMER}, input, output, usage, chain",
    "request": "id, execution, key, kind, status, created, wake, digest, told, body, received, "
    "answer",
    "checkpoint": "execution, number, id, name, body",
    "tab": "name, body",
}
"""The columns of which `guard` holds a checksum: all columns of these tables."""
_KEYS = {
    "execution": ("number",),
    "request": ("id",),
    "checkpoint": ("execution", "number"),
    "tab": ("name",),
}


def _guards(table: str, columns: str) -> str:
    """Return the statements that add a checksum to the rows of a table, and keep it up to date."""
    return f"ALTER TABLE {table} ADD COLUMN guard INTEGER;{_triggers(table, columns)}"


def _triggers(table: str, columns: str, former: str | None = None) -> str:
    """Return the statements that fill the checksums of a table, and keep them up to date.

    Args:
        table: The table.
        columns: The columns whose checksum is stored.
        former: The columns whose checksum was stored until now; rows that do not match it are
            damaged, and stay so. None if there was none.
    """
    guard = f"UPDATE {table} SET guard = guard({columns})"
    whole = "" if former is None else f" WHERE guard({former}) IS guard"
    row = " AND ".join(f"{key} = NEW.{key}" for key in _KEYS[table])
    return f"""
    DROP TRIGGER IF EXISTS {table}_made;
    DROP TRIGGER IF EXISTS {table}_changed;
    {guard}{whole};
    CREATE TRIGGER {table}_made AFTER INSERT ON {table} BEGIN
        {guard} WHERE {row};
    END;
    CREATE TRIGGER {table}_changed AFTER UPDATE OF {columns} ON {table} BEGIN
        {guard} WHERE {row};
    END;
    """


UPGRADES = (
    """
    CREATE TABLE document (
        hash TEXT PRIMARY KEY,
        body BLOB NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE execution (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        workflow TEXT NOT NULL,
        document TEXT NOT NULL REFERENCES document (hash),
        profile TEXT NOT NULL,
        express INTEGER NOT NULL,
        input BLOB NOT NULL,
        requestor TEXT,
        status TEXT NOT NULL,
        started REAL NOT NULL,
        ended REAL,
        wake REAL,
        output BLOB,
        error TEXT,
        cause TEXT,
        usage BLOB,
        redrives INTEGER NOT NULL DEFAULT 0,
        written_by TEXT NOT NULL,
        chain BLOB NOT NULL
    );
    CREATE INDEX execution_status ON execution (status, number);
    CREATE INDEX execution_wake ON execution (wake) WHERE wake IS NOT NULL;

    CREATE TABLE position (
        execution INTEGER NOT NULL,
        path TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (execution, path)
    ) WITHOUT ROWID;

    CREATE TABLE answer (
        execution INTEGER NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (execution, key)
    ) WITHOUT ROWID;

    CREATE TABLE request (
        id TEXT PRIMARY KEY,
        execution INTEGER NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        status TEXT NOT NULL,
        created REAL NOT NULL,
        wake REAL,
        body BLOB NOT NULL,
        received BLOB NOT NULL,
        digest TEXT NOT NULL,
        told INTEGER NOT NULL,
        answer BLOB
    ) WITHOUT ROWID;
    CREATE INDEX request_open ON request (status, created);
    CREATE INDEX request_execution ON request (execution);

    CREATE TABLE record (
        execution INTEGER NOT NULL,
        number INTEGER NOT NULL,
        path TEXT NOT NULL,
        body BLOB NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (execution, number)
    ) WITHOUT ROWID;

    CREATE TABLE blob (
        hash BLOB PRIMARY KEY,
        body BLOB NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE checkpoint (
        id TEXT PRIMARY KEY,
        execution INTEGER NOT NULL,
        name TEXT NOT NULL,
        created REAL NOT NULL,
        expires REAL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX checkpoint_name ON checkpoint (execution, name, created);
    """,
    """
    ALTER TABLE execution ADD COLUMN parent INTEGER REFERENCES execution (number);
    CREATE INDEX execution_parent ON execution (parent) WHERE parent IS NOT NULL;
    """,
    """
    ALTER TABLE execution ADD COLUMN redriven REAL;

    DROP TABLE checkpoint;
    CREATE TABLE checkpoint (
        execution INTEGER NOT NULL,
        number INTEGER NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (execution, number)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE tab (
        name TEXT PRIMARY KEY,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    """,
    _guards(
        "execution",
        "number, name, workflow, document, profile, express, requestor, status, started, ended, "
        "wake, error, cause, redrives, parent, redriven",
    )
    + _guards("request", "id, execution, key, kind, status, created, wake, digest, told"),
    regroup,
    """
    CREATE TABLE head (
        execution INTEGER PRIMARY KEY,
        step INTEGER NOT NULL
    );
    INSERT INTO head SELECT number, (
        SELECT coalesce(max(step.number), 0) FROM step WHERE execution = execution.number
    ) FROM execution;
    CREATE TRIGGER execution_begun AFTER INSERT ON execution BEGIN
        INSERT INTO head VALUES (NEW.number, 0);
    END;
    CREATE TRIGGER step_made AFTER INSERT ON step BEGIN
        UPDATE head SET step = NEW.number WHERE execution = NEW.execution;
    END;
    """,
    """
    DROP TRIGGER step_made;
    DROP TRIGGER execution_begun;
    ALTER TABLE step RENAME TO indexed;
    ALTER TABLE head RENAME TO counted;
    CREATE TABLE step (
        place INTEGER PRIMARY KEY,
        execution INTEGER NOT NULL,
        number INTEGER NOT NULL,
        before INTEGER NOT NULL,
        hash BLOB NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TABLE head (
        execution INTEGER PRIMARY KEY,
        step INTEGER NOT NULL,
        place INTEGER NOT NULL
    );
    INSERT INTO step SELECT
        rowid, execution, number,
        coalesce(lag(rowid) OVER (PARTITION BY execution ORDER BY number), 0), hash, body
        FROM indexed ORDER BY rowid;
    INSERT INTO head SELECT execution, step, coalesce((
        SELECT rowid FROM indexed WHERE execution = counted.execution AND number = step
    ), 0) FROM counted;
    DROP TABLE indexed;
    DROP TABLE counted;
    CREATE TRIGGER execution_begun AFTER INSERT ON execution BEGIN
        INSERT INTO head VALUES (NEW.number, 0, 0);
    END;
    CREATE TRIGGER step_made AFTER INSERT ON step BEGIN
        UPDATE head SET step = NEW.number, place = NEW.place WHERE execution = NEW.execution;
    END;
    """,
    "",  # from here on the record of the end of a state may stand for the beginning of the next
    "",  # and that of a child's last state for what it came to
    "ALTER TABLE execution ADD COLUMN bound BLOB;"
    + _triggers("execution", _FORMER)
    + _triggers("request", GUARDED["request"])
    + _guards("checkpoint", GUARDED["checkpoint"]),
    _triggers("execution", GUARDED["execution"], _FORMER) + _guards("tab", GUARDED["tab"]),
    WORKERS + LIVE,
)
"""The statements that lead from each version to the next, or what runs them; version 0 is an empty
file."""

VERSION = len(UPGRADES)
