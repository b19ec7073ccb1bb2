"""A bucket of the user's own, whose exceptions fail the states that use it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from io import RawIOBase
from typing import Any, BinaryIO, cast

from asl.engine.exception_mapping import map_exceptions
from asl.states.map_data import Bucket, ObjectFault, StoredObject

__all__ = ["CustomBucket"]


class CustomBucket:
    """Wrapper of an object with the methods of `asl.states.map_data.Bucket`.

    Any exception becomes an ObjectFault that names the bucket, except ObjectFault, OSError and
    StateError.
    """

    def __init__(self, name: str, bucket: Bucket) -> None:
        self.name = name
        self.bucket = bucket

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        with _failing(self.name):
            file = self.bucket.open(key)
            _check_file(file, "open", "read")
        return cast(BinaryIO, _BucketFile(self.name, file))

    def create(self, key: str) -> BinaryIO:
        """Open a new object for writing; it replaces the old one."""
        with _failing(self.name):
            file = self.bucket.create(key)
            _check_file(file, "create", "write")
        return cast(BinaryIO, _BucketFile(self.name, file))

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with *prefix*, in the order of their keys.

        Raises:
            TypeError: The bucket yields an object of another class.
        """
        with _failing(self.name):
            listing = iter(self.bucket.objects(prefix))
        while True:
            with _failing(self.name):
                found: Any = next(listing, None)
                if found is None:
                    return
                if not isinstance(found, StoredObject) or type(found.key) is not str:
                    raise TypeError(f"objects() yielded {found!r:.100}, not a StoredObject")
            yield found


class _BucketFile(RawIOBase):
    """An object of a bucket while it is read or written."""

    def __init__(self, bucket: str, file: BinaryIO) -> None:
        self.bucket = bucket
        self.file = file

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return hasattr(self.file, "seek")

    def readinto(self, buffer: Any) -> int:
        with _failing(self.bucket):
            data = self.file.read(len(buffer))
            if not isinstance(data, bytes):
                raise TypeError(f"read() returned {type(data).__name__}, not bytes")
            if len(data) > len(buffer):
                raise ValueError(f"read({len(buffer)}) returned {len(data)} bytes")
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        with _failing(self.bucket):
            self.file.write(bytes(data))
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        with _failing(self.bucket):
            return self.file.seek(offset, whence)

    def tell(self) -> int:
        with _failing(self.bucket):
            return self.file.tell()

    def close(self) -> None:
        if not self.closed:
            try:
                with _failing(self.bucket):
                    self.file.close()
            finally:
                super().close()


def _check_file(file: object, made_by: str, method: str) -> None:
    """Raise TypeError for a value without the methods of a file."""
    if not (hasattr(file, method) and hasattr(file, "close")):
        raise TypeError(f"{made_by}() returned {type(file).__name__}, which is not a binary file")


def _failing(bucket: str) -> AbstractContextManager[None]:
    return map_exceptions(
        lambda text: ObjectFault(f"the bucket {bucket!r}: {text}"),
        lambda error: isinstance(error, ObjectFault | OSError),
    )
