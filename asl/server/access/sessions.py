"""Sessions of browsers: a signed cookie that names the user, and what ends it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from itsdangerous import BadData
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asl.executions import Store
from asl.server.access.cross_site import PUBLIC_HOST
from asl.server.access.principal import Principal
from asl.server.access.secret import SigningSecret, serializer_of
from asl.server.access.users import Users
from asl.stores.resources import (
    Resource,
    committed_resource,
    delete_resource,
    list_resources,
    put_resource,
)

__all__ = ["COOKIE", "LIFE", "ROOT", "SessionRenewal", "Sessions", "cookies_of", "set_cookie"]

COOKIE: Final = "asl_session"
LIFE: Final = 12 * 3600
"""Seconds that a session lasts without a request."""
RENEWAL: Final = 300
"""Age in seconds from which on a request renews the cookie."""
ENDED: Final = "ended-session"
"""Kind of the resources that name the sessions which were ended by their users."""
ROOT: Final = "asl.root"
"""Key of a scope with the path below which the service is mounted."""
_RENEWED: Final = "asl.cookies"
_PURPOSE: Final = "session"


class _Content(NamedTuple):
    """The content of the cookie.

    Attributes:
        id: Random name of the session.
        csrf: Token that the forms of the session repeat.
        user: Name of the user.
        method: How the user was authenticated.
        mark: Changes with the user's token (`Users.mark_of`).
        roles: Roles that an identity provider has given.
        until: Epoch seconds of the end.
    """

    id: str
    csrf: str
    user: str
    method: str
    mark: str
    roles: list[str]
    until: float


class Sessions:
    """The sessions of a service.

    A session ends 12 hours after its last request, when its user logs out, is removed or gets a new
    token, and when the secret changes.

    Args:
        store: Store of the sessions that were ended.
        secret: Signs the cookies.
        users: The users.
        is_secure: Returns whether the client of a request uses HTTPS.
    """

    def __init__(
        self,
        store: Store,
        secret: SigningSecret,
        users: Users,
        is_secure: Callable[[HTTPConnection], bool],
    ) -> None:
        self._store = store
        self._secret = secret
        self._users = users
        self._is_secure = is_secure

    def begin(self, request: HTTPConnection, response: Response, principal: Principal) -> Principal:
        """Begin a session, with a new name whatever the request has.

        Args:
            request: The request of the login.
            response: Receives the cookie.
            principal: The authenticated user.

        Returns:
            The user of the session.
        """
        self.end(request)
        by_provider = principal.method == "oidc"
        content = _Content(
            secrets.token_urlsafe(18),
            secrets.token_urlsafe(18),
            principal.user,
            principal.method if by_provider else "session",
            self._users.mark_of(principal.user),
            sorted(principal.roles) if by_provider else [],
            self._store.clock.now() + LIFE,
        )
        response.headers.append("set-cookie", self._cookie(request, content))
        found = self._principal(content)
        assert found is not None
        return found

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Return the user of a session; None without one, and for one that has ended."""
        content = self._content(request)
        found = None if content is None else self._principal(content)
        if content is not None and found is not None:
            now = self._store.clock.now()
            if content.until - now < LIFE - RENEWAL:
                renewed = content._replace(until=now + LIFE)
                cookies: list[str] = request.scope.get(_RENEWED, [])
                cookies[:] = [self._cookie(request, renewed)]
        return found

    def end(self, request: HTTPConnection) -> str | None:
        """End the session of a request; return its user, None without a session."""
        content = self._content(request)
        if content is None:
            return None
        session, now = self._store.session, self._store.clock.now()
        for each in list_resources(session, ENDED, ""):
            if each.number > now:
                break
            delete_resource(session, each.arn)
        name = f"{ENDED}:{content.id}"
        put_resource(session, Resource(name, ENDED, "", int(now + LIFE) + 1, {}))
        session.flush()
        return content.user

    def clear(self, request: HTTPConnection, response: Response) -> None:
        """Remove the cookie from the browser."""
        secure = self._is_secure(request)
        response.headers.append("set-cookie", set_cookie(COOKIE, "", 0, secure=secure))

    def _content(self, request: HTTPConnection) -> _Content | None:
        """Return the content of a valid cookie."""
        given = cookies_of(request, COOKIE)
        if len(given) != 1:  # none, or one of another site that shares the domain
            return None
        try:
            content = _Content(*serializer_of(self._secret, _PURPOSE).loads(given[0]))
        except (BadData, TypeError):  # TypeError: a cookie of another version
            return None
        if content.until <= self._store.clock.now():
            return None
        ended = committed_resource(self._store.session, f"{ENDED}:{content.id}")
        return content if ended is None else None

    def _principal(self, content: _Content) -> Principal | None:
        """Return the user of a session; None if it has no rights any more."""
        known = self._users.named(content.user, content.method)
        if self._users.mark_of(content.user) != content.mark:
            return None
        roles = frozenset(content.roles) | (frozenset() if known is None else known.roles)
        if not roles:
            return None
        projects = None if known is None else known.projects
        return Principal(
            content.user, roles, content.method, projects, csrf=content.csrf, ambient=True
        )

    def _cookie(self, request: HTTPConnection, content: _Content) -> str:
        value = serializer_of(self._secret, _PURPOSE).dumps([*content])
        assert isinstance(value, str)
        return set_cookie(COOKIE, value, LIFE, secure=self._is_secure(request))


def set_cookie(
    name: str, value: str, seconds: int, *, secure: bool, same_site: str = "Strict"
) -> str:
    """Return a header Set-Cookie; scripts cannot read the cookie.

    Args:
        name: Name of the cookie.
        value: Its value; letters, digits, `-`, `_`, `.`.
        seconds: How long the browser stores it; 0 to remove it.
        secure: Whether it is sent by HTTPS only.
        same_site: Whether links of other sites send it: `Strict` or `Lax`.
    """
    text = f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}"
    return f"{text}; Secure" if secure else text


def cookies_of(request: HTTPConnection, name: str) -> list[str]:
    """Return all values of a cookie; a browser may send several of one name."""
    pairs = (part for each in request.headers.getlist("cookie") for part in each.split(";"))
    found = (pair.strip().partition("=") for pair in pairs)
    return [value for key, _, value in found if key == name]


class SessionRenewal:
    """Middleware that sends the cookies which `Sessions.identify` has renewed.

    It also notes the path below which the service is mounted, and its host for clients.
    """

    def __init__(self, application: ASGIApp, public_url: str | None = None) -> None:
        self._application = application
        self._host = None if public_url is None else urlsplit(public_url).netloc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        cookies: list[str] = []

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start" and cookies:
                sent = {value for name, value in message["headers"] if name == b"set-cookie"}
                if not any(value.startswith(f"{COOKIE}=".encode()) for value in sent):
                    added = [(b"set-cookie", each.encode()) for each in cookies]
                    message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        noted = {
            **scope,
            _RENEWED: cookies,
            ROOT: scope.get("root_path", ""),
            PUBLIC_HOST: self._host,
        }
        await self._application(noted, receive, renewing)
