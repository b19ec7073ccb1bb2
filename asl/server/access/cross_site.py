"""Refusal of requests that pages of other sites send with the credentials of a browser."""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from asl.server.access.principal import Forbidden, Principal

__all__ = [
    "CSRF_FIELD",
    "PUBLIC_HOST",
    "SAFE_METHODS",
    "check_csrf",
    "check_same_site",
    "host_of",
    "refuse_cross_site",
]

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
PUBLIC_HOST: Final = "asl.public-host"
"""Key of a scope with host and port of the service for its clients, which a proxy may replace."""
CSRF_FIELD: Final = "csrf"
"""Name of the field of a form with `Principal.csrf`."""


def refuse_cross_site(request: Request) -> None:
    """Check that a request that changes something was sent by a page of this server, or a program.

    Raises:
        Forbidden: A page of another site has sent it.
    """
    headers = request.headers
    check_same_site(request)
    kind = headers.get("content-type", "application/json").partition(";")[0].strip()
    is_by_browser = "sec-fetch-site" in headers or "origin" in headers
    if not is_by_browser and kind != "application/json":
        raise Forbidden("the body must have the type application/json")


def check_same_site(request: HTTPConnection) -> None:
    """Check that no page of another site has sent a request.

    Raises:
        Forbidden: One has.
    """
    sites = request.headers.getlist("sec-fetch-site")
    if any(site not in ("same-origin", "none") for site in sites):
        raise Forbidden("the request was sent by a page of another site")
    own = (request.headers.get("host", ""), request.scope.get(PUBLIC_HOST))
    if any(urlsplit(each).netloc not in own for each in request.headers.getlist("origin")):
        raise Forbidden(f"the request was sent by a page of another site than {host_of(request)}")


def check_csrf(request: Request, form: Mapping[str, object], principal: Principal) -> None:
    """Check that a form was sent by a page that this server has made for the user.

    Args:
        request: The request.
        form: The fields of the form; `csrf` repeats `principal.csrf`.
        principal: The user.

    Raises:
        Forbidden: A page of another site has sent the form, or it is of an earlier session.
    """
    check_same_site(request)
    given, expected = form.get(CSRF_FIELD), principal.csrf
    if expected is None:  # credentials that a browser does not add by itself
        return
    if not isinstance(given, str) or not compare_digest(given.encode(), expected.encode()):
        raise Forbidden("the form is of an earlier session: go back, reload the page, try again")


def host_of(request: HTTPConnection) -> str:
    """Return the host that a request names, without its port."""
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
