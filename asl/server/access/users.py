"""Users of the service: a TOML file with the roles, projects and token hashes of each.

[users.ann]
token = "sha256:..."
roles = ["operator", "approver", "manager"]
projects = ["orders"]
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asl.core.errors import AslError
from asl.server.access.principal import Principal

__all__ = ["NO_USERS", "Users", "hash_of", "new_token", "read_users"]

PREFIX: Final = "sha256:"


class User(BaseModel):
    """A user of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str | None = Field(None, pattern=r"^sha256:[0-9a-f]{64}$")
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    users: dict[str, User] = {}


class Users:
    """The users of a service.

    Args:
        users: The users by name.
    """

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)

    def __bool__(self) -> bool:
        return bool(self._users)

    def by_token(self, token: str, method: str = "token") -> Principal | None:
        """Return the user of a token, None for an unknown one; the time does not depend on it."""
        hashed, found = hash_of(token), None
        for name, user in self._users.items():
            if user.token is not None and compare_digest(user.token, hashed):
                found = Principal(name, user.roles, method, user.projects)
        return found

    def named(self, name: str, method: str = "proxy") -> Principal | None:
        """Return the user of a name that was authenticated by other means; None if unknown."""
        user = self._users.get(name)
        return None if user is None else Principal(name, user.roles, method, user.projects)


NO_USERS: Final = Users({})


def hash_of(token: str) -> str:
    """Return the hash of a token as a users file holds it."""
    return PREFIX + sha256(token.encode(errors="surrogatepass")).hexdigest()


def new_token() -> str:
    """Return a new random token."""
    return f"asl_{secrets.token_urlsafe(32)}"


def read_users(path: str | os.PathLike[str]) -> Users:
    """Read a users file.

    Raises:
        AslError: It cannot be read, is no TOML, or has an unknown field.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            value = tomllib.load(file)
    except OSError as error:
        raise AslError(f"cannot read the users file {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AslError(f"{path} is not TOML: {error}") from None
    try:
        return Users(_File.model_validate(value).users)
    except ValidationError as refusal:
        first = refusal.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise AslError(f"{path}: {place}: {first['msg']}") from None
