"""A dictionary as a bucket: keys to texts or bytes. For tests; what is written is text."""

from collections.abc import Iterator, MutableMapping
from hashlib import md5
from io import BytesIO
from typing import BinaryIO

from asl.buckets.keys import check_key, no_object
from asl.core.errors import AslError
from asl.states.objects import StoredObject

__all__ = ["Memory"]


class Memory:
    """Objects in a dictionary (protocol `asl.states.objects.Bucket`)."""

    def __init__(self, name: str, contents: MutableMapping[str, str | bytes]) -> None:
        for key, content in contents.items():
            if not (isinstance(key, str) and isinstance(content, str | bytes)):
                raise AslError(f"the bucket {name!r} maps keys to texts or bytes, not {content!r}")
        self.name = name
        self.contents = contents

    def open(self, key: str) -> BinaryIO:
        """Open the content of an object."""
        check_key(self.name, key)
        if key not in self.contents:
            raise no_object(self.name, key, self.contents)
        return BytesIO(_bytes(self.contents[key]))

    def create(self, key: str) -> BinaryIO:
        """Open an object that stands in the dictionary once it is closed."""
        check_key(self.name, key)
        return _Written(self.contents, key)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects in the order of their keys."""
        for key in sorted(self.contents):
            if key.startswith(prefix):
                content = _bytes(self.contents[key])
                tag = md5(content, usedforsecurity=False).hexdigest()
                yield StoredObject(key, len(content), 0, f'"{tag}"')


class _Written(BytesIO):
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
