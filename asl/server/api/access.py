"""What every route of the REST interface depends on: the project, the user, the permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from asl.server.access.authorization import access_of
from asl.server.access.principal import APPROVER, OPERATOR, VIEWER
from asl.server.projects import Access

__all__ = ["Approver", "Operator", "Viewer"]


def _needs(role: str) -> Callable[[Request], Access]:
    def depend(request: Request) -> Access:
        return access_of(request, role)

    return depend


Viewer = Annotated[Access, Depends(_needs(VIEWER))]
"""A user who may see the project."""
Operator = Annotated[Access, Depends(_needs(OPERATOR))]
"""A user who may change executions and documents."""
Approver = Annotated[Access, Depends(_needs(APPROVER))]
"""A user who may answer requests."""
