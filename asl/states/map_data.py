"""Data in buckets: what a distributed Map asks of the place where its files lie.

The names are those of S3: a bucket holds objects by their keys. What a bucket really is (a folder,
a store in the cloud, a dictionary) is an adapter's business; the runtime gives it by its name.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

__all__ = ["Bucket", "ObjectFault", "StoredObject"]


class ObjectFault(Exception):
    """An object cannot be read or written; the text names it, and says what to do."""


class StoredObject(NamedTuple):
    """One object in a listing; `modified` in epoch seconds, `size` in bytes."""

    key: str
    size: int
    modified: int
    etag: str


class Bucket(Protocol):
    """Objects by their keys. Every method raises ObjectFault, and OSError where the world fails."""

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        ...

    def create(self, key: str) -> BinaryIO:
        """Open a new object for writing; it replaces the old one."""
        ...

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with *prefix*, in the order of the keys."""
        ...
