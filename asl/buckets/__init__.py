"""Layer 7: buckets, the storage of the files of a distributed Map, by their names in documents.

A user maps each name to a folder, to the URL of an object store, to a dictionary (for tests) or to
an object of the protocol `asl.states.map_data.Bucket`. Nothing else can be read or written.
"""

from collections.abc import Mapping, MutableMapping
from os import PathLike
from pathlib import Path
from typing import Any

from asl.buckets.custom import CustomBucket
from asl.buckets.local import FolderBucket, MemoryBucket
from asl.core.errors import AslError
from asl.states.map_data import Bucket

__all__ = ["as_bucket", "bind_buckets"]


def bind_buckets(buckets: Mapping[str, Any] | None) -> dict[str, Bucket]:
    """Return the buckets by name.

    Raises:
        AslError: A value is not a bucket.
    """
    return {name: as_bucket(name, where) for name, where in (buckets or {}).items()}


def as_bucket(name: str, where: Any) -> Bucket:
    """Return the bucket that a user has bound to a name.

    Args:
        name: Name of the bucket in documents.
        where: The bound value.

    Raises:
        AslError: The value is not a bucket.
    """
    if isinstance(where, str) and "://" in where:
        from asl.buckets.object_store import ObjectStoreBucket

        return ObjectStoreBucket(name, where)
    if isinstance(where, str | PathLike):
        return FolderBucket(name, Path(where))
    if isinstance(where, MutableMapping):
        return MemoryBucket(name, where)
    if all(hasattr(where, method) for method in ("open", "create", "objects")):
        return CustomBucket(name, where)
    raise AslError(
        f"the bucket {name!r} is mapped to {type(where).__name__}; a bucket is a folder, the URL "
        "of an object store, or a dictionary from keys to texts"
    )
