"""The users file: TOML with the roles, projects and token hashes of each user.

[users.ann]
token = "sha256:..."
roles = ["operator", "approver", "manager"]
projects = ["orders"]
notify = ["apprise:mailto://..."]
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asl.core.errors import AslError
from asl.server.access.users import User, Users, is_user_name

__all__ = ["UsersFile"]


class UserEntry(BaseModel):
    """A user of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] | None = None
    notify: tuple[str, ...] = ()


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    users: dict[str, UserEntry] = {}


class UsersFile(Users):
    """The users of a file, which is read again when it changes.

    A file that cannot be read any more leaves the users that it had.

    Args:
        path: The file.

    Raises:
        AslError: It cannot be read, is no TOML, or has an unknown field.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._seen = self._state()
        super().__init__(_read_entries(self.path))

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def entries(self) -> Mapping[str, User]:
        """Return the current users by name."""
        state = self._state()
        if state != self._seen:
            self._seen = state
            try:
                self._users = dict(_read_entries(self.path))
            except AslError as error:
                logging.getLogger("asl").error("%s; the users stay as they were", error)
        return self._users


def _read_entries(path: str) -> Mapping[str, User]:
    """Return the users of a file.

    Raises:
        AslError: It cannot be read, is no TOML, or has an unknown field.
    """
    try:
        with open(path, "rb") as file:
            value = tomllib.load(file)
    except OSError as error:
        raise AslError(f"cannot read the users file {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AslError(f"{path} is not TOML: {error}") from None
    try:
        found = _File.model_validate(value).users
    except ValidationError as refusal:
        first = refusal.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise AslError(f"{path}: {place}: {first['msg']}") from None
    for name in found:
        if not is_user_name(name):
            raise AslError(f"{path}: {name!r} is no name: it is empty or has invisible characters")
    return {
        name: User(each.token, each.roles, each.projects, each.notify)
        for name, each in found.items()
    }
