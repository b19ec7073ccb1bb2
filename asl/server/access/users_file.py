"""The users file: TOML with the roles, projects and token hashes of each user.

[users.ann]
token = "sha256:..."
roles = ["operator", "approver", "manager"]
projects = ["orders"]
"""

from __future__ import annotations

import os
import tomllib

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asl.core.errors import AslError
from asl.server.access.users import User, Users

__all__ = ["read_users"]


class UserEntry(BaseModel):
    """A user of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    users: dict[str, UserEntry] = {}


def read_users(path: str | os.PathLike[str]) -> Users:
    """Read a users file.

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
    return Users(
        {name: User(each.token, each.roles, each.projects) for name, each in found.items()}
    )
