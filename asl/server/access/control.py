"""Access control of a service: who sends a request, for all of its faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from starlette.requests import HTTPConnection

from asl.executions import Store
from asl.server.access.attempts import AttemptLimiter
from asl.server.access.authentication import (
    Authenticator,
    BearerTokens,
    LocalUser,
    NoAccess,
    ProxyHeader,
    WrongCredentials,
    authenticate,
)
from asl.server.access.links import LinkSigner
from asl.server.access.oidc_settings import OidcSettings
from asl.server.access.principal import Principal
from asl.server.access.proxies import TrustedProxies
from asl.server.access.secret import SigningSecret, StoreSecret, serializer_of
from asl.server.access.sessions import ROOT, Sessions
from asl.server.access.users import NO_USERS, Users
from asl.stores.audit import AuditEntry, add_entry
from asl.telemetry.log_lines import add_log_fields

__all__ = ["AccessControl", "AccessSettings"]

_FORM: Final = "form"


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Whom a service serves, and how users are authenticated.

    Attributes:
        users: Users with tokens, roles and projects.
        authenticators: Further ways in which requests are authenticated.
        local: Whether requests of this machine need no credentials.
        proxy: Header in which a trusted proxy names the user; None for none.
        proxies: Trusted proxies.
        oidc: Identity provider; None for none.
        secret: Signs sessions and links; None for one in the store.
        public_url: URL of the service in links and for the identity provider; None if unknown.
    """

    users: Users = NO_USERS
    authenticators: Sequence[Authenticator] = field(default_factory=tuple)
    local: bool = False
    proxy: ProxyHeader | None = None
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    oidc: OidcSettings | None = None
    secret: SigningSecret | None = None
    public_url: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether some user can get in."""
        return bool(
            self.local or self.users or self.authenticators or self.proxy or self.oidc
        )  # fmt: skip


class AccessControl:
    """Authenticates the requests of a service.

    Args:
        settings: Whom it serves.
        store: Store of the sessions and of the secret.
    """

    def __init__(self, settings: AccessSettings, store: Store) -> None:
        self.settings = settings
        self._store = store
        self.users = settings.users
        self.secret = settings.secret or StoreSecret(store)
        self.sessions = Sessions(store, self.secret, self.users, self.is_secure)
        self.attempts = AttemptLimiter(store.clock.now)
        self._ways = self._ordered()

    def _ordered(self) -> list[Authenticator]:
        """Return the ways of authentication in their order."""
        settings = self.settings
        if not settings.is_open:
            return [NoAccess()]
        ways: list[Authenticator] = [BearerTokens(self.users), self.sessions]
        if settings.proxy is not None:
            ways.insert(0, settings.proxy)
        ways += settings.authenticators
        return [*ways, LocalUser()] if settings.local else ways

    def identify(self, request: HTTPConnection) -> Principal:
        """Return the user of a request.

        Raises:
            Unauthorized: The request has no valid credentials.
            TooManyAttempts: Its address has sent too many wrong ones.
        """
        address = self.address_of(request)
        if "authorization" in request.headers:
            self.attempts.check(address)
        try:
            found = authenticate(self._ways, request)
        except WrongCredentials as refusal:
            self.attempts.add(address)
            self._record_refusal(address, str(refusal))
            raise
        add_log_fields(user=found.user)
        if found.ambient and found.csrf is None:
            return replace(found, csrf=self._form_token(found))
        return found

    def _record_refusal(self, address: str, reason: str) -> None:
        """Record wrong credentials in the audit log of the first project."""
        now, details = self._store.clock.now(), {"address": address, "reason": reason}
        entry = AuditEntry(now, "", "none", "credentials.refused", "service", {**details})
        add_entry(self._store.session, entry)
        self._store.session.flush()

    def _form_token(self, principal: Principal) -> str:
        """Return the token of forms of a user without a session."""
        signed = serializer_of(self.secret, _FORM).dumps([principal.user, principal.method])
        return str(signed)

    def address_of(self, request: HTTPConnection) -> str:
        """Return the address of the client of a request."""
        return self.settings.proxies.address_of(request)

    def is_secure(self, request: HTTPConnection) -> bool:
        """Return whether the client of a request uses HTTPS."""
        public = self.settings.public_url or ""
        return public.startswith("https://") or self.settings.proxies.is_secure(request)

    def url_of(self, request: HTTPConnection) -> str:
        """Return the URL of the service, without a slash at its end."""
        root = str(request.scope.get(ROOT, ""))
        own = f"{request.url.scheme}://{request.headers.get('host', '')}{root}"
        return (self.settings.public_url or own).rstrip("/")

    def links(self, request: HTTPConnection) -> LinkSigner:
        """Return what makes and checks links."""
        return LinkSigner(self.secret, self.url_of(request))
