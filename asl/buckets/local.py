"""Buckets in local folders and in dictionaries, and the keys that they accept."""

import os
from collections.abc import Iterable, Iterator, MutableMapping
from hashlib import md5, sha256
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.private_files import make_private_folder, open_replacement
from asl.states.map_data import ObjectFault, StoredObject

__all__ = ["FolderBucket", "MemoryBucket", "check_key", "no_object"]


def check_key(bucket: str, key: str) -> None:
    """Check that a key does not lead out of its bucket.

    Raises:
        ObjectFault: The key is not a relative path below the bucket.
    """
    *folders, name = key.split("/")
    if not key or {"", ".", ".."} & {*folders} or name in {".", ".."}:
        raise ObjectFault(
            f"the key {key!r} cannot be used in the bucket {bucket!r}: a key leads down from the "
            "bucket, like 'data/rows.csv', without '..' and without a '/' in front"
        )
    if "\0" in key or "\\" in key:
        raise ObjectFault(f"the key {key!r} contains a character that file names cannot have")


def no_object(bucket: str, key: str, others: Iterable[str]) -> ObjectFault:
    """Return the error for a missing object; *others* are existing keys, for a hint."""
    hint = did_you_mean(key, list(others))
    return ObjectFault(f"S3://{bucket}/{key} does not exist" + (f" ({hint})" if hint else ""))


class MemoryBucket:
    """A bucket in a dictionary from keys to texts or bytes, for tests. New objects are stored as
    text. Implements `asl.states.map_data.Bucket`.
    """

    def __init__(self, name: str, contents: MutableMapping[str, str | bytes]) -> None:
        for key, content in contents.items():
            if not (isinstance(key, str) and isinstance(content, str | bytes)):
                raise AslError(
                    f"the bucket {name!r} must map keys to texts or bytes, got {content!r}"
                )
        self.name = name
        self.contents = contents

    def open(self, key: str) -> BinaryIO:
        """Open the content of an object.

        Raises:
            ObjectFault: There is no such object.
        """
        check_key(self.name, key)
        if key not in self.contents:
            raise no_object(self.name, key, self.contents)
        return BytesIO(_bytes(self.contents[key]))

    def create(self, key: str) -> BinaryIO:
        """Open a new object, which is stored in the dictionary when it is closed."""
        check_key(self.name, key)
        return _NewObject(self.contents, key)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with *prefix*, in the order of their keys."""
        for key in sorted(self.contents):
            if key.startswith(prefix):
                content = _bytes(self.contents[key])
                tag = md5(content, usedforsecurity=False).hexdigest()
                yield StoredObject(key, len(content), 0, f'"{tag}"')


class _NewObject(BytesIO):
    def __init__(self, contents: MutableMapping[str, str | bytes], key: str) -> None:
        super().__init__()
        self.contents = contents
        self.key = key

    def close(self) -> None:
        if not self.closed:
            self.contents[self.key] = self.getvalue().decode()
        super().close()


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


class FolderBucket:
    """A bucket in a folder: each file below it is an object, its relative path the key. Implements
    `asl.states.map_data.Bucket`. Links that lead out of the folder are refused.
    """

    def __init__(self, name: str, root: Path) -> None:
        if not root.is_dir():
            raise AslError(f"the bucket {name!r} is mapped to {str(root)!r}, which is not a folder")
        self.name = name
        self.root = root.resolve()

    def open(self, key: str) -> BinaryIO:
        """Open a file for reading.

        Raises:
            ObjectFault: There is no such file.
        """
        path = self._path(key)
        if not path.is_file():
            others = path.parent.iterdir() if path.parent.is_dir() else ()
            near = (other.relative_to(self.root).as_posix() for other in others)
            raise no_object(self.name, key, near)
        return path.open("rb")

    def create(self, key: str) -> BinaryIO:
        """Open a file that is there, complete, when it is closed; missing folders are created."""
        path = self._path(key)
        make_private_folder(path.parent)
        return open_replacement(path, private=True)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the files whose keys begin with *prefix*, in the order of their keys."""
        if prefix:
            check_key(self.name, prefix)
        above = prefix.rpartition("/")[0]
        start = self.root / above
        if start.is_dir() and self._is_inside(start):
            yield from self._below(start, f"{above}/" if above else "", prefix)

    def _below(self, folder: Path, above: str, prefix: str) -> Iterator[StoredObject]:
        levels = [self._listed(folder, above, prefix)]
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
                continue
            key, entry = found
            if key.endswith("/"):
                levels.append(self._listed(Path(entry.path), key, prefix))
            elif entry.is_file() and self._is_inside(Path(entry.path)):
                file = entry.stat()
                text = f"{file.st_mtime_ns} {file.st_size}"
                tag = sha256(text.encode()).hexdigest()[:32]
                yield StoredObject(key, file.st_size, int(file.st_mtime), f'"{tag}"')

    def _listed(
        self, folder: Path, above: str, prefix: str
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield the entries of a folder in the order of their keys."""
        with os.scandir(folder) as entries:
            # A folder sorts by its name with "/", as its keys do among the others.
            named = {e.name + "/" * e.is_dir(follow_symlinks=False): e for e in entries}
        for name in sorted(named):
            key = above + name
            if key.startswith(prefix) or prefix.startswith(key):
                yield key, named[name]

    def _path(self, key: str) -> Path:
        check_key(self.name, key)
        path = self.root / key
        if not self._is_inside(path):
            raise ObjectFault(f"S3://{self.name}/{key} is a link that leads out of the bucket")
        return path

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)
