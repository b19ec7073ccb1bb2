"""The ways in which a request is authenticated, tried in order."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final, Protocol

from starlette.requests import HTTPConnection

from asl.core.environment import user_name
from asl.server.access.cross_site import host_of
from asl.server.access.principal import PERMISSIONS, Principal, Unauthorized
from asl.server.access.proxies import TrustedProxies
from asl.server.access.users import Users, is_user_name
from asl.states.approval_answers import normalize_name

__all__ = [
    "NO_ACCESS",
    "Authenticator",
    "BearerTokens",
    "LocalUser",
    "NoAccess",
    "ProxyHeader",
    "WrongCredentials",
    "authenticate",
    "is_local_name",
]


class Authenticator(Protocol):
    """A method of authentication."""

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Return the user of a request; None if it has no credentials of this kind.

        Raises:
            Unauthorized: The credentials are wrong.
        """
        ...


def authenticate(authenticators: Sequence[Authenticator], request: HTTPConnection) -> Principal:
    """Return the user of a request.

    Raises:
        Unauthorized: It has no credentials, or wrong ones.
    """
    for each in authenticators:
        found = each.identify(request)
        if found is not None:
            return _named(found)
    raise Unauthorized(
        "this request needs credentials: log in, or send the header 'Authorization: Bearer TOKEN'"
    )


def _named(principal: Principal) -> Principal:
    """Return a user whose name cannot be taken for that of another one.

    Raises:
        Unauthorized: The name is empty or has invisible characters, which records do not keep.
    """
    if not is_user_name(principal.user):
        raise Unauthorized(
            f"{principal.user!r} is no name: it is empty or has invisible characters"
        )
    return principal


class WrongCredentials(Unauthorized):
    """The request has credentials that are wrong, such as an unknown token."""


class BearerTokens:
    """Accepts the tokens of a users file in the header Authorization."""

    def __init__(self, users: Users) -> None:
        self._users = users

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Return the user of a bearer token.

        Raises:
            WrongCredentials: The token is unknown, or there are several.
        """
        given = request.headers.getlist("authorization")
        if len(given) > 1:
            raise WrongCredentials("the header Authorization must be there once")
        scheme, _, token = (given or [""])[0].partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = self._users.by_token(token.strip())
        if found is None:
            raise WrongCredentials("the token is unknown")
        return found


class ProxyHeader:
    """Accepts the user that a proxy names in a header.

    Args:
        header: Name of the header with the user.
        proxies: Addresses or networks of the proxies; requests of others do not count.
        users: Roles and projects of the users.
        roles: Name of a header with roles, separated by commas; None for those of the users file.
    """

    def __init__(
        self,
        header: str,
        proxies: TrustedProxies | Sequence[str],
        users: Users,
        roles: str | None = None,
    ) -> None:
        self.header = header
        self.proxies = proxies if isinstance(proxies, TrustedProxies) else TrustedProxies(proxies)
        self._users = users
        self._roles = roles

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Return the user that a trusted proxy names.

        Raises:
            WrongCredentials: The sender is no trusted proxy, or the user is unknown.
        """
        names = request.headers.getlist(self.header)
        if not names:
            return None
        if not self.proxies.sends(request):
            raise WrongCredentials(f"the header {self.header} is accepted from the proxy only")
        user = names[0].strip(" \t")
        if len(names) > 1 or not user:
            raise WrongCredentials(f"the header {self.header} must name one user")
        known = self._users.named(user)
        roles = known.roles if known is not None else frozenset[str]()
        if self._roles is not None:
            given = ",".join(request.headers.getlist(self._roles)).split(",")
            roles = roles | {each.strip() for each in given if each.strip()}
        projects = None if known is None else known.projects
        if not roles:
            raise WrongCredentials(f"the user {user!r} is unknown")
        return Principal(user, roles, "proxy", projects, ambient=True)


class NoAccess:
    """Refuses all requests of a service that other machines reach and that has no users."""

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Refuse the request.

        Raises:
            Unauthorized: Always.
        """
        raise Unauthorized(NO_ACCESS)


NO_ACCESS: Final = (
    "this service has no users: start it with --users FILE, with --oidc URL, or with "
    "--proxy-user-header NAME and --proxy ADDRESS"
)
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class LocalUser:
    """Accepts every request of this machine as its user, with all permissions.

    A request through a proxy is none of this machine, and neither is one that names another host:
    its page comes from elsewhere.
    """

    def __init__(self) -> None:
        user = normalize_name(user_name())
        self._identity = Principal(user, frozenset(PERMISSIONS), "local", ambient=True)

    def identify(self, request: HTTPConnection) -> Principal | None:
        """Return the user of this machine."""
        headers = request.headers
        if any(name in headers for name in _FORWARDED) or request.client is None:
            return None
        if not is_local_name(request.client.host) or not is_local_name(host_of(request)):
            return None
        return self._identity


def is_local_name(host: str) -> bool:
    """Return whether a host is this machine's loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
