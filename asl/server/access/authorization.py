"""The check of every request: who sends it, in which project, with which role, from which site."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from asl.server.access.authentication import host_of
from asl.server.access.principal import Forbidden, Principal
from asl.server.projects import Access, ServerProject

__all__ = ["access_of", "refuse_cross_site"]

_SAFE: Final = ("GET", "HEAD", "OPTIONS")


def access_of(request: Request, role: str) -> Access:
    """Return the project and the user of a request.

    Raises:
        Unauthorized: The request has no valid credentials.
        Forbidden: The user lacks the role or the project, or the request comes from another site.
    """
    project: ServerProject = request.scope["asl.project"]
    principal: Principal = request.app.state.authenticate(request)
    principal.require_project(project.name)
    principal.require(role)
    if principal.ambient and request.method not in _SAFE:
        refuse_cross_site(request)
    return Access(project, principal)


def refuse_cross_site(request: Request) -> None:
    """Check that a request that changes something was sent by a page of this server, or a program.

    Raises:
        Forbidden: A page of another site has sent it.
    """
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        raise Forbidden("the request was sent by a page of another site")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise Forbidden(f"the request was sent by a page of another site than {host_of(request)}")
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if site is None and origin is None and kind != "application/json":
        raise Forbidden("the body must have the type application/json")
