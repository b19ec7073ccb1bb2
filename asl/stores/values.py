"""Values and documents of a store: small ones within the rows, large ones once, by their
content.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Any, Protocol
from zlib import crc32

from asl.core.values import Json
from asl.stores.backend import Computed
from asl.stores.errors import StoreDamaged
from asl.stores.statements import PARAMETER, Change, Insert, Row, Select
from asl.stores.tables import BLOB, DOCUMENT, LARGE

__all__ = ["StoredValues", "is_hashed", "pack_small"]

MISSING = "a large value is missing or was changed"
PUT_DOCUMENT = Insert(DOCUMENT, ("hash", "body"), otherwise="keep")
PUT_LARGE = Insert(BLOB, ("hash", "body"), otherwise="keep")
FIND_DOCUMENT = Select(DOCUMENT, ("body",), {"hash": PARAMETER})
FIND_LARGE = Select(BLOB, ("body",), {"hash": PARAMETER})
HAS_LARGE = Select(BLOB, ("hash",), {"hash": PARAMETER})


class Rows(Protocol):
    """The rows of a store, as a session reads and writes them."""

    place: str | os.PathLike[str]
    """Path of the file, or the name of the store in messages."""

    def check(self, whole: bool, what: str) -> None:
        """Check stored content.

        Raises:
            StoreDamaged: It is not intact.
        """
        ...

    def write(self, change: Change | Computed, *values: Any) -> None:
        """Gather a change for the next transaction."""
        ...

    def select(self, statement: Select, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...


class StoredValues:
    """Packs and unpacks the JSON texts of one session.

    A small text is preceded by its checksum, `=` and eight hexadecimal digits; a large one is `#`
    and its hash.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._documents: set[str] = set()
        """Hashes of documents in the store, which are never deleted."""
        self._large: set[bytes] = set()
        """Hashes of large values in the next transaction: without a reference in the same
        transaction another process could delete them."""

    def start_transaction(self) -> None:
        """Start the next transaction."""
        self._large.clear()

    def rolled_back(self) -> None:
        """Forget the values of a transaction that was rolled back."""
        self._documents.clear()

    def pack(self, body: bytes) -> bytes:
        """Return JSON text in its stored form: with a checksum, or the hash of a large one."""
        if len(body) < LARGE:
            return pack_small(body)
        return b"#" + self.put_large(body)

    def put_large(self, body: bytes) -> bytes:
        """Store a large text once and return its hash."""
        key = sha256(body).digest()
        if key not in self._large:
            self._large.add(key)
            self._rows.write(PUT_LARGE, key, body)
        return key

    def has_large(self, key: bytes) -> bool:
        """Return whether the large text of this hash is in the next transaction."""
        return key in self._large

    def large(self, key: bytes) -> Json:
        """Return the large value of this hash.

        Raises:
            StoreDamaged: It is missing or damaged.
        """
        found = self._rows.select(FIND_LARGE, key)
        if not found or not is_hashed(found[0][0], key):
            raise StoreDamaged(self._rows.place, MISSING)
        return self.read(found[0][0])

    def unpack(self, body: Any) -> Json:
        """Return the value of a stored text.

        Raises:
            StoreDamaged: It is damaged.
        """
        self._rows.check(type(body) is bytes, "a stored value")
        if body[:1] == b"#":
            return self.large(body[1:])
        return self.read(self._small(body))

    def _small(self, body: bytes) -> bytes:
        """Return the text of a small value.

        Raises:
            StoreDamaged: It is damaged.
        """
        text = body[9:]
        if body[:9] != b"=%08x" % crc32(text):
            raise StoreDamaged(self._rows.place, "a stored value was changed")
        return text

    def check(self, body: Any) -> None:
        """Check a stored value, which is cheaper than reading it.

        The content of a large value is not checked.

        Raises:
            StoreDamaged: It is damaged or missing.
        """
        self._rows.check(type(body) is bytes, "a stored value")
        if body[:1] != b"#":
            self._small(body)
        elif not self._rows.select(HAS_LARGE, body[1:]):
            raise StoreDamaged(self._rows.place, MISSING)

    def read(self, body: bytes) -> Json:
        """Return the value of a JSON text.

        Raises:
            StoreDamaged: The text is not JSON.
        """
        try:
            return json.loads(body)
        except ValueError as error:
            place = self._rows.place
            raise StoreDamaged(place, f"a stored value is not JSON ({error})") from error

    # Documents

    def has_document(self, key: str) -> bool:
        """Return whether the document of this hash is known to be in the store."""
        return key in self._documents

    def put_document(self, key: str, body: bytes) -> None:
        """Store the text of a document under its hash, once."""
        if key not in self._documents:
            self._documents.add(key)
            self._rows.write(PUT_DOCUMENT, key, body)

    def document(self, key: str) -> Json:
        """Return the document of a hash.

        Raises:
            StoreDamaged: It is missing or damaged.
        """
        self._rows.check(type(key) is str, "the document of an execution")
        found = self._rows.select(FIND_DOCUMENT, key)
        body = found[0][0] if found else None
        if type(body) is not bytes or sha256(body).hexdigest() != key:
            what = f"the document {key[:12]} is missing or was changed"
            raise StoreDamaged(self._rows.place, what)
        return self.read(body)


def pack_small(body: bytes) -> bytes:
    """Return the stored form of a small JSON text, with its checksum."""
    return b"=%08x%s" % (crc32(body), body)


def is_hashed(body: Any, key: bytes) -> bool:
    """Return whether a column contains the text of this hash."""
    return type(body) is bytes and sha256(body).digest() == key
