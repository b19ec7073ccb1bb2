"""Settings of the identity provider."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.server.access.authentication import is_local_name

__all__ = ["OidcSettings", "check_provider", "check_url"]


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider (OpenID Connect), and how its claims are read.

    Attributes:
        issuer: URL of the provider; its configuration is below `/.well-known`.
        client_id: Id of this service at the provider.
        client_secret: Secret of this service; None for a public client.
        user_claim: Claim with the name of the user.
        roles_claim: Claim with the roles, as a list or separated by blanks; dots lead into objects.
        scopes: Scopes that are requested.
    """

    issuer: str
    client_id: str
    client_secret: str | None = None
    user_claim: str = "preferred_username"
    roles_claim: str = "roles"
    scopes: str = "openid profile email"


def check_provider(settings: OidcSettings) -> None:
    """Check that logins through an identity provider are possible.

    Raises:
        AslError: The packages of the extra `oidc` are missing, or the issuer is no HTTPS URL.
    """
    require_extra("jwt", "oidc", "a login through an identity provider")
    require_extra("httpx2", "oidc", "a login through an identity provider")
    check_url(settings.issuer)


def check_url(url: object) -> None:
    """Check that what is sent to an address of the provider cannot be read on the way.

    Raises:
        AslError: It is no HTTPS URL, and not of this machine.
    """
    parts = urlsplit(str(url))
    is_local = parts.scheme == "http" and is_local_name(parts.hostname or "")
    if parts.scheme != "https" and not is_local:
        raise AslError(f"an address of the identity provider must begin with https://, not {url!r}")
