"""The secret that signs sessions and links: a row of the store, or a file."""

from __future__ import annotations

import os
import secrets
from hashlib import sha256
from typing import Final, Protocol

from itsdangerous import URLSafeSerializer

from asl.core.errors import AslError
from asl.core.private_files import open_replacement
from asl.executions import Store
from asl.stores.resources import Resource, committed_resource, find_resource, put_resource

__all__ = ["FileSecret", "SigningSecret", "StoreSecret", "serializer_of"]

NAME: Final = "service-secret"
"""Name and kind of the resource of a store."""
SHORTEST: Final = 32
"""Characters of the shortest secret."""


class SigningSecret(Protocol):
    """Where the secret is."""

    def current(self) -> str:
        """Return the secret; a new one at the first use.

        Raises:
            AslError: It cannot be read.
        """
        ...

    def rotate(self) -> None:
        """Replace the secret: sessions and links that were signed with it end.

        Raises:
            AslError: It cannot be written.
        """
        ...


class StoreSecret:
    """The secret in a store, whose file only its owner can read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self) -> str:
        """Return the secret; a new one at the first use."""
        found = committed_resource(self._store.session, NAME)
        if found is None:
            found = self._created()
        return str(found.body["secret"])

    def _created(self) -> Resource:
        session = self._store.session
        with session.transaction():
            found = find_resource(session, NAME)  # another process may have been faster
            if found is None:
                found = _made()
                put_resource(session, found)
        return found

    def rotate(self) -> None:
        """Replace the secret."""
        put_resource(self._store.session, _made())
        self._store.session.flush()


def _made() -> Resource:
    return Resource(NAME, NAME, "", 0, {"secret": secrets.token_urlsafe(48)})


class FileSecret:
    """The secret in a file, which is read again when it changes.

    Args:
        path: The file; it is created at the first use, for its owner only.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._read: tuple[tuple[int, int], str] | None = None

    def current(self) -> str:
        """Return the secret; a new one at the first use.

        Raises:
            AslError: The file cannot be read or written, or is too short.
        """
        if not os.path.exists(self.path):
            self.rotate()
        found = self.read()
        if len(found) < SHORTEST:
            raise AslError(f"the secret in {self.path} must have at least {SHORTEST} characters")
        return found

    def read(self) -> str:
        """Return the content of the file.

        Raises:
            AslError: It cannot be read.
        """
        try:
            state = os.stat(self.path)
            seen = (state.st_mtime_ns, state.st_ino)
            if self._read is None or self._read[0] != seen:
                with open(self.path, encoding="utf-8") as file:
                    self._read = seen, file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AslError(f"cannot read the secret file {self.path}: {error}") from None
        return self._read[1]

    def rotate(self) -> None:
        """Replace the content of the file.

        Raises:
            AslError: It cannot be written.
        """
        try:
            with open_replacement(self.path, private=True) as file:
                file.write(f"{secrets.token_urlsafe(48)}\n".encode())
        except OSError as error:
            raise AslError(f"cannot write the secret file {self.path}: {error.strerror}") from None


def serializer_of(secret: SigningSecret, purpose: str) -> URLSafeSerializer:
    """Return what signs and checks values of one purpose, such as `session`.

    Raises:
        AslError: The secret cannot be read.
    """
    settings = {"key_derivation": "hmac", "digest_method": sha256}
    return URLSafeSerializer(secret.current(), f"asl.{purpose}", signer_kwargs=settings)
