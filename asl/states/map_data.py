"""The data of Maps: items, their sources, and the buckets that hold files of them."""

from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple, Protocol

from asl.core.values import Json

__all__ = [
    "Bucket",
    "DeferredBucket",
    "ItemSource",
    "MapEntry",
    "ObjectFault",
    "StoredObject",
    "Tolerance",
]


class MapEntry(NamedTuple):
    """A member of an object, as an item of a Map."""

    key: str
    value: Json

    @property
    def input(self) -> Json:
        """The default input of its iteration (AWS)."""
        return {"Key": self.key, "Value": self.value}


class ItemSource(Protocol):
    """The items of a distributed Map, read one by one."""

    name: str
    """Where the latest item comes from, in AWS's words."""
    length: int | None
    """Number of items; None until known, at the end of the source at the latest."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None:
        """Stop reading and release the source."""
        ...


# Buckets


class ObjectFault(Exception):
    """An object cannot be read or written; the text names it and the remedy."""


class StoredObject(NamedTuple):
    """One object in a listing; `modified` in epoch seconds, `size` in bytes."""

    key: str
    size: int
    modified: int
    etag: str


class Bucket(Protocol):
    """Objects by key, as in S3: a folder, a cloud store or a dictionary.

    Every method raises ObjectFault, or OSError for a failure of the system.
    """

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        ...

    def create(self, key: str) -> BinaryIO:
        """Open a new object for writing; it replaces an existing object."""
        ...

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects with keys that begin with *prefix*, sorted by key."""
        ...


class DeferredBucket:
    """A bucket whose new objects are collected, for a service that writes them.

    Args:
        name: Name of the bucket.
        largest: Maximum bytes of an object.
    """

    def __init__(self, name: str, largest: int) -> None:
        self.name = name
        self.largest = largest
        self._objects: dict[str, BytesIO] = {}

    def open(self, key: str) -> BinaryIO:
        """Refuse: a service reads the objects.

        Raises:
            ObjectFault: Always.
        """
        raise ObjectFault(f"no bucket {self.name!r} is mapped")

    def create(self, key: str) -> BinaryIO:
        """Return a file that is collected."""
        file = self._objects[key] = _KeptFile()
        return file

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Refuse: a service lists the objects.

        Raises:
            ObjectFault: Always.
        """
        raise ObjectFault(f"no bucket {self.name!r} is mapped")

    def take_writes(self) -> list[tuple[str, str]]:
        """Return keys and texts of the collected objects, once."""
        found, self._objects = self._objects, {}
        return [(key, file.getvalue().decode()) for key, file in found.items()]


class _KeptFile(BytesIO):
    """A file whose content remains after it is closed."""

    def close(self) -> None:
        """Keep the content."""


class Tolerance:
    """The failures that a Map tolerates: as many as the smaller of two bounds allows.

    Args:
        count: Tolerated number of failed items.
        percentage: Tolerated percentage of failed items; None for no such bound.
    """

    __slots__ = ("count", "percentage")

    def __init__(self, count: float, percentage: float | None = None) -> None:
        self.count = count
        self.percentage = percentage

    def __call__(self, items: float) -> float:
        """Return the tolerated number of failures among *items*."""
        if self.percentage is None or items == float("inf"):  # infinitely many times nothing
            return self.count
        return min(self.count, items * self.percentage / 100)
