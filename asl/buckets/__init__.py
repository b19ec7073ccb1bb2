"""Buckets: where the files of a distributed Map lie, by the names that documents use.

A user maps each name to a folder, to the URL of an object store, to a dictionary (for tests) or to
an object of the protocol `asl.states.objects.Bucket`. Nothing else can be read or written.
"""

from collections.abc import Mapping, MutableMapping
from os import PathLike
from pathlib import Path
from typing import Any

from asl.buckets.folder import Folder
from asl.buckets.given import GivenBucket
from asl.buckets.memory import Memory
from asl.core.errors import AslError
from asl.states.objects import Bucket

__all__ = ["as_bucket", "bound"]


def bound(buckets: Mapping[str, Any] | None) -> dict[str, Bucket]:
    """Return the buckets by their names; raises AslError for what cannot be one."""
    return {name: as_bucket(name, where) for name, where in (buckets or {}).items()}


def as_bucket(name: str, where: Any) -> Bucket:
    """Return the bucket *name* that a user has mapped to *where*; raises AslError."""
    if isinstance(where, str) and "://" in where:
        from asl.buckets.stores import Store

        return Store(name, where)
    if isinstance(where, str | PathLike):
        return Folder(name, Path(where))
    if isinstance(where, MutableMapping):
        return Memory(name, where)
    if all(hasattr(where, method) for method in ("open", "create", "objects")):
        return GivenBucket(name, where)
    raise AslError(
        f"the bucket {name!r} is mapped to {type(where).__name__}; a bucket is a folder, the URL "
        "of an object store, or a dictionary from keys to texts"
    )
