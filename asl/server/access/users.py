"""Users of the service: a TOML file with the roles, projects and token hashes of each.

[users.ann]
token = "sha256:..."
roles = ["operator", "approver", "manager"]
projects = ["orders"]
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from asl.server.access.principal import Principal

__all__ = ["NO_USERS", "User", "Users", "hash_of", "new_token"]

PREFIX: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class User:
    """A user: the hash of the token, roles, and projects (None for all)."""

    token: str | None = None
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] | None = None


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
