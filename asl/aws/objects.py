"""Buckets of S3 for distributed Maps, for names without a binding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, RawIOBase
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, cast

from asl.aws.clients import Clients
from asl.states.map_data import Bucket, ObjectFault, StoredObject

__all__ = ["S3Bucket", "S3Buckets"]

BLOCK: Final = 1024 * 1024
"""Bytes that are read in one request."""
IN_MEMORY: Final = 8 * 1024 * 1024
"""Bytes of a new object that are held in memory; more are held in a temporary file."""


class S3Buckets(dict[str, Bucket]):
    """Bound buckets by name; any other name is a bucket of S3.

    Args:
        bound: The bound buckets.
        clients: The clients of the run.
    """

    def __init__(self, bound: Mapping[str, Bucket], clients: Clients) -> None:
        super().__init__(bound)
        self.clients = clients

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Bucket:
        return S3Bucket(name, self.clients)


class S3Bucket:
    """A bucket of S3 (protocol `asl.states.map_data.Bucket`)."""

    def __init__(self, name: str, clients: Clients) -> None:
        self.name = name
        self.clients = clients

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading; it is fetched in blocks.

        Raises:
            ObjectFault: There is no such object, or it cannot be read.
        """
        with _faults(self.name, key):
            client = self.clients.client("s3")
            size = client.head_object(Bucket=self.name, Key=key)["ContentLength"]
        return cast(BinaryIO, BufferedReader(_Object(client, self.name, key, size), BLOCK))

    def create(self, key: str) -> BinaryIO:
        """Open an object for writing; it is there, complete, when it is closed."""
        with _faults(self.name, key):
            return cast(BinaryIO, _NewObject(self.clients.client("s3"), self.name, key))

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with *prefix*, in the order of their keys.

        Raises:
            ObjectFault: They cannot be listed.
        """
        with _faults(self.name, prefix):
            pages = self.clients.client("s3").get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.name, Prefix=prefix):
                for each in page.get("Contents", ()):
                    modified = int(each["LastModified"].timestamp())
                    yield StoredObject(each["Key"], each["Size"], modified, each["ETag"])


@contextmanager
def _faults(bucket: str, key: str) -> Iterator[None]:
    """Convert the errors of the service."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code")
        missing = code in ("404", "NoSuchKey")
        reason = "does not exist" if missing else f"cannot be used: {error}"
        raise ObjectFault(f"S3://{bucket}/{key} {reason}") from None
    except BotoCoreError as error:
        raise ObjectFault(f"S3://{bucket}/{key} cannot be used: {error}") from None


class _Object(RawIOBase):
    """An object that is read in ranges of bytes."""

    def __init__(self, client: Any, bucket: str, key: str, size: int) -> None:
        self.client = client
        self.bucket = bucket
        self.key = key
        self.size = size
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        start = {SEEK_SET: 0, SEEK_CUR: self.position, SEEK_END: self.size}[whence]
        self.position = max(0, start + offset)
        return self.position

    def readinto(self, buffer: Any) -> int:
        end = min(self.position + len(buffer), self.size)
        if end <= self.position:
            return 0
        with _faults(self.bucket, self.key):
            found = self.client.get_object(
                Bucket=self.bucket, Key=self.key, Range=f"bytes={self.position}-{end - 1}"
            )
            data = found["Body"].read(end - self.position)
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


class _NewObject(RawIOBase):
    """An object that is sent when it is closed."""

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self.client = client
        self.bucket = bucket
        self.key = key
        self.file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.file.write(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.file.seek(0)
            with _faults(self.bucket, self.key):
                self.client.put_object(Bucket=self.bucket, Key=self.key, Body=self.file)
        finally:
            self.file.close()
            super().close()
