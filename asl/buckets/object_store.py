"""An object store as a bucket, through fsspec: `s3://real-name/prefix`, `gs://...`,
`memory://...`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from asl.buckets.local import check_key, no_object
from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.states.map_data import StoredObject

__all__ = ["ObjectStoreBucket"]


class ObjectStoreBucket:
    """Objects in a store supported by fsspec (protocol `asl.states.map_data.Bucket`)."""

    def __init__(self, name: str, url: str) -> None:
        require_extra("fsspec", "fsspec", f"the bucket {name!r}, which is mapped to {url!r},")
        from fsspec.core import url_to_fs

        try:
            self.store, self.root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise AslError(f"the bucket {name!r} is mapped to {url!r}: {error}") from None
        self.name = name

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading; it is fetched in blocks.

        Raises:
            ObjectFault: There is no such object.
        """
        check_key(self.name, key)
        try:
            file: BinaryIO = self.store.open(f"{self.root}/{key}", "rb")
        except FileNotFoundError:
            raise no_object(self.name, key, ()) from None
        return file

    def create(self, key: str) -> BinaryIO:
        """Open an object for writing."""
        check_key(self.name, key)
        path = f"{self.root}/{key}"
        self.store.makedirs(path.rpartition("/")[0], exist_ok=True)
        file: BinaryIO = self.store.open(path, "wb")
        return file

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with *prefix*, in the order of their keys; listed in
        one request.
        """
        if prefix:
            check_key(self.name, prefix)
        above = f"{self.root}/{prefix}".rpartition("/")[0]
        found = self.store.find(above, detail=True) if self.store.isdir(above) else {}
        for path in sorted(found):
            key = path.removeprefix(self.root).removeprefix("/")
            if key.startswith(prefix):
                yield StoredObject(key, found[path]["size"], *_facts(found[path]))


def _facts(info: dict[str, Any]) -> tuple[int, str]:
    """Return the time of the last change and the tag of an object, as far as the store has them."""
    when = info.get("LastModified") or info.get("mtime") or info.get("created") or 0
    seconds = int(when.timestamp() if isinstance(when, datetime) else when)
    return seconds, str(info.get("ETag") or f'"{seconds:x}-{info["size"]:x}"')
