"""Settings of the identity provider."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OidcSettings"]


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
