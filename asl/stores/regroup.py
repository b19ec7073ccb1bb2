"""The sixth version of the tables: what was a row for each record, answer and position is one log.

Until then records stood in a chain of their own, and answers and positions beside them were deleted
when they were past. What is left of them becomes entries of the first steps (`asl.stores.log`).
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any
from zlib import crc32

from asl.core.values import Json, encoded

__all__ = ["regroup"]

TOGETHER = 1000
"""Entries in one step."""
CHANGED = bytes(32)
"""The hash of a step whose content is not what was written: it stays found out."""
STEP = """
    CREATE TABLE step (
        execution INTEGER NOT NULL,
        number INTEGER NOT NULL,
        hash BLOB NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (execution, number)
    )
"""


def regroup(run: Callable[..., Any]) -> None:
    """Make the steps of all executions; *run* runs a statement."""
    run(STEP)
    for number, chain in run("SELECT number, chain FROM execution").fetchall():
        _regroup(run, number, chain)
    for table in ("record", "answer", "position"):
        run(f"DROP TABLE {table}")


def _regroup(run: Callable[..., Any], execution: int, chain: bytes) -> None:
    old = _Old(run, execution, chain)
    entries = list(old.entries())
    for number, begin in enumerate(range(0, len(entries), TOGETHER), start=1):
        body = b"[%s]" % b",".join(entries[begin : begin + TOGETHER])
        chain = sha256(chain + body).digest()
        hash = chain if old.whole else CHANGED
        run("INSERT INTO step VALUES (?, ?, ?, ?)", (execution, number, hash, body))


class _Old:
    """What an execution has in the old tables."""

    def __init__(self, run: Callable[..., Any], execution: int, chain: bytes) -> None:
        self.run = run
        self.execution = execution
        self.chain = chain
        self.whole = True
        """Whether all of it is what was written, as far as it was looked at."""

    def entries(self) -> Iterator[bytes]:
        """Yield all as entries of steps: what stands below a position comes behind it."""
        records = "SELECT number, path, body, hash FROM record WHERE execution = ? ORDER BY number"
        for expected, (number, path, body, hash) in enumerate(self._rows(records), start=1):
            self.chain = sha256(b"%s%s\n%s" % (self.chain, path.encode(), body)).digest()
            self.whole &= number == expected and self.chain == hash
            yield b'["record",%s,%s]' % (encoded(path), self._text(body))
        positions = "SELECT path, body FROM position WHERE execution = ? ORDER BY path"
        for path, body in self._rows(positions):
            yield b'["position",%s,%s,null]' % (encoded(path), self._text(body, path))
        for key, body in self._rows("SELECT key, body FROM answer WHERE execution = ?"):
            yield b'["answer",%s,%s]' % (encoded(key), self._text(body, key))

    def _rows(self, query: str) -> Json:
        return self.run(query, (self.execution,)).fetchall()

    def _text(self, body: bytes, of: str = "") -> bytes:
        """Return the JSON text of a value that is stored so."""
        if body[:1] == b"#":
            return encoded({"large": body[1:].hex()})
        if body[:1] not in (b"=", b"~"):
            return body
        begin = crc32(of.encode()) if body[:1] == b"~" else 0
        self.whole &= body[1:9] == b"%08x" % crc32(body[9:], begin)
        return body[9:]
