"""Keys of objects: which are allowed, and what is said about one that is not there."""

from collections.abc import Iterable

from asl.core.diagnostics import did_you_mean
from asl.states.objects import ObjectFault

__all__ = ["check_key", "no_object"]


def check_key(bucket: str, key: str) -> None:
    """Refuse a key that would lead out of its bucket; raises ObjectFault."""
    *folders, name = key.split("/")
    if not key or {"", ".", ".."} & {*folders} or name in {".", ".."}:
        raise ObjectFault(
            f"the key {key!r} cannot be used in the bucket {bucket!r}: a key leads down from the "
            "bucket, like 'data/rows.csv', without '..' and without a '/' in front"
        )
    if "\0" in key or "\\" in key:
        raise ObjectFault(f"the key {key!r} holds a character that no file's name may have")


def no_object(bucket: str, key: str, others: Iterable[str]) -> ObjectFault:
    """Return the fault for a missing object; *others* are keys that may have been meant."""
    hint = did_you_mean(key, list(others))
    return ObjectFault(f"S3://{bucket}/{key} does not exist" + (f" ({hint})" if hint else ""))
