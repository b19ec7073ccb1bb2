"""Users of the service: roles, projects and token hashes by name."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from asl.server.access.principal import Principal
from asl.states.approval_answers import normalize_name

__all__ = ["NO_USERS", "User", "Users", "hash_of", "is_user_name", "new_token"]

PREFIX: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        token: Hash of the token; None without one.
        roles: Roles of the service and those that policies of approvals name.
        projects: Names of the projects; None for all.
        notify: Channels that only this user receives, such as `apprise:mailto://...`.
    """

    token: str | None = None
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] | None = None
    notify: tuple[str, ...] = ()


class Users:
    """The users of a service.

    Args:
        users: The users by name.
    """

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)

    def entries(self) -> Mapping[str, User]:
        """Return the current users by name."""
        return self._users

    def __bool__(self) -> bool:
        return bool(self.entries())

    def by_token(self, token: str, method: str = "token") -> Principal | None:
        """Return the user of a token, None for an unknown one; the time does not depend on it."""
        hashed, found = hash_of(token), None
        for name, user in self.entries().items():
            if user.token is not None and compare_digest(user.token, hashed):
                found = Principal(name, user.roles, method, user.projects)
        return found

    def named(self, name: str, method: str = "proxy") -> Principal | None:
        """Return the user of a name that was authenticated by other means; None if unknown."""
        user = self.entries().get(name)
        return None if user is None else Principal(name, user.roles, method, user.projects)

    def mark_of(self, name: str) -> str:
        """Return a text that changes with the token of a user; empty without one."""
        user = self.entries().get(name)
        if user is None or user.token is None:
            return ""
        return sha256(f"mark {user.token}".encode()).hexdigest()[:16]


NO_USERS: Final = Users({})


def is_user_name(name: str) -> bool:
    """Return whether a text is a name in its normal form, without invisible characters."""
    return bool(name) and normalize_name(name) == name


def hash_of(token: str) -> str:
    """Return the hash of a token as a users file holds it."""
    return PREFIX + sha256(token.encode(errors="surrogatepass")).hexdigest()


def new_token() -> str:
    """Return a new random token."""
    return f"asl_{secrets.token_urlsafe(32)}"
