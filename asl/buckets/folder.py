"""A folder as a bucket: the files below it are the objects, their ways are the keys."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from asl.buckets.keys import check_key, no_object
from asl.core.errors import AslError
from asl.core.private_files import make_private_folder, private_opener
from asl.states.objects import ObjectFault, StoredObject

__all__ = ["Folder"]


class Folder:
    """Objects in files (protocol `asl.states.objects.Bucket`). No link leads out of the folder."""

    def __init__(self, name: str, root: Path) -> None:
        if not root.is_dir():
            raise AslError(f"the bucket {name!r} is mapped to {str(root)!r}, which is no folder")
        self.name = name
        self.root = root.resolve()

    def open(self, key: str) -> BinaryIO:
        """Open a file for reading."""
        path = self._path(key)
        if not path.is_file():
            others = path.parent.iterdir() if path.parent.is_dir() else ()
            near = (other.relative_to(self.root).as_posix() for other in others)
            raise no_object(self.name, key, near)
        return path.open("rb")

    def create(self, key: str) -> BinaryIO:
        """Open a file for writing; missing folders are made."""
        path = self._path(key)
        make_private_folder(path.parent)
        return open(path, "wb", opener=private_opener)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the files below the folder in the order of their keys."""
        if prefix:
            check_key(self.name, prefix)
        above = prefix.rpartition("/")[0]
        start = self.root / above
        if start.is_dir() and self._is_inside(start):
            yield from self._below(start, f"{above}/" if above else "", prefix)

    def _below(self, folder: Path, above: str, prefix: str) -> Iterator[StoredObject]:
        with os.scandir(folder) as entries:
            # With its "/" a folder stands where its keys stand among the others.
            named = {e.name + "/" * e.is_dir(follow_symlinks=False): e for e in entries}
        for name in sorted(named):
            key, entry = above + name, named[name]
            if not (key.startswith(prefix) or prefix.startswith(key)):
                continue
            if name.endswith("/"):
                yield from self._below(Path(entry.path), key, prefix)
            elif entry.is_file() and self._is_inside(Path(entry.path)):
                found = entry.stat()
                tag = sha256(f"{found.st_mtime_ns} {found.st_size}".encode()).hexdigest()[:32]
                yield StoredObject(key, found.st_size, int(found.st_mtime), f'"{tag}"')

    def _path(self, key: str) -> Path:
        check_key(self.name, key)
        path = self.root / key
        if not self._is_inside(path):
            raise ObjectFault(f"S3://{self.name}/{key} is a link that leads out of the bucket")
        return path

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)
