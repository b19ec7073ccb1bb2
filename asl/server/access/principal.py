"""The principal of who sends a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from asl.core.errors import AslError

__all__ = [
    "APPROVER",
    "OPERATOR",
    "PERMISSIONS",
    "VIEWER",
    "Forbidden",
    "Principal",
    "Unauthorized",
]

VIEWER: Final = "viewer"
"""Sees everything of a project."""
OPERATOR: Final = "operator"
"""Also publishes documents, and starts, stops, repeats and deletes executions."""
APPROVER: Final = "approver"
"""Also answers requests."""
PERMISSIONS: Final = (VIEWER, OPERATOR, APPROVER)
"""The roles of the service; other roles count for the policies of approvals only."""


class Unauthorized(AslError):
    """The request has no credentials, or its credentials are wrong."""


class Forbidden(AslError):
    """The user lacks the role or the project."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated user.

    Attributes:
        user: Name of the user.
        roles: Roles of the service (`PERMISSIONS`) and those that policies of approvals name.
        method: How the user was authenticated: `local`, `token`, `session`, `proxy`,
            `oidc`, `link` or `aws`.
        projects: Names of the projects that the user may see; None for all.
        csrf: Token that forms must repeat; None if a browser does not add the credentials.
        ambient: Whether a browser adds the credentials to requests of other pages by itself.
    """

    user: str
    roles: frozenset[str]
    method: str
    projects: frozenset[str] | None = None
    csrf: str | None = None
    ambient: bool = False

    def require(self, role: str) -> None:
        """Check a permission; each of them includes that of a viewer.

        Args:
            role: One of `PERMISSIONS`.

        Raises:
            Forbidden: The user does not have it.
        """
        held = self.roles.intersection(PERMISSIONS)
        if role not in held and not (role == VIEWER and held):
            raise Forbidden(f"{self.user!r} does not have the role {role!r}")

    def may(self, role: str) -> bool:
        """Return whether the user has a permission (`require`)."""
        held = self.roles.intersection(PERMISSIONS)
        return role in held or (role == VIEWER and bool(held))

    def require_project(self, name: str) -> None:
        """Check that the user may see a project.

        Raises:
            Forbidden: The user may not.
        """
        if self.projects is not None and name not in self.projects:
            raise Forbidden(f"{self.user!r} has no access to the project {name!r}")

    @property
    def has_session(self) -> bool:
        """Whether the user has logged in, and can log out."""
        return self.method in ("session", "oidc")

    @property
    def approval_roles(self) -> list[str]:
        """The roles that policies of approvals name, sorted."""
        return sorted(self.roles)
