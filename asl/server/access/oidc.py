"""Logins through an identity provider: OpenID Connect, authorization code with PKCE."""

from __future__ import annotations

import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from itsdangerous import BadData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from asl.core.errors import AslError
from asl.core.values import Json
from asl.server.access.oidc_settings import OidcSettings, check_provider, check_url
from asl.server.access.principal import Unauthorized
from asl.server.access.secret import SigningSecret, serializer_of
from asl.server.access.sessions import cookies_of, set_cookie
from asl.server.access.users import is_user_name

if TYPE_CHECKING:
    import httpx2

__all__ = ["OidcClient", "OidcLogin"]

COOKIE: Final = "asl_login"
PATIENCE: Final = 600
"""Seconds that a user has for the login at the provider."""
TIMEOUT: Final = 10.0
"""Seconds that an answer of the provider may take."""
LARGEST: Final = 1024 * 1024
"""Bytes of the largest answer of the provider."""
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
                     "ES256", "ES384", "ES512", "EdDSA")  # fmt: skip
"""Signatures that are accepted: those with a public key."""
LEEWAY: Final = 60
"""Seconds by which the clocks of the provider and of this machine may differ."""
FRESH: Final = 3600
"""Seconds after which the configuration of the provider is read again."""
_PURPOSE: Final = "oidc"


class OidcLogin(NamedTuple):
    """An authenticated user, and where the login began."""

    user: str
    roles: frozenset[str]
    following: str


class _Attempt(NamedTuple):
    """A login that has begun, as the cookie holds it."""

    state: str
    nonce: str
    verifier: str
    following: str
    until: float


class OidcClient:
    """A client of an identity provider.

    Args:
        settings: The provider.
        secret: Signs the cookie of a login that has begun.

    Raises:
        AslError: The packages of the extra `oidc` are missing, or the issuer is no URL.
    """

    def __init__(self, settings: OidcSettings, secret: SigningSecret) -> None:
        check_provider(settings)
        self._settings = settings
        self._secret = secret
        self._configuration: tuple[float, dict[str, Any]] | None = None

    async def begin(self, callback: str, following: str, *, is_secure: bool) -> Response:
        """Return the redirection to the provider.

        Args:
            callback: URL of this service to which the provider returns.
            following: Path after the login.
            is_secure: Whether the client uses HTTPS.

        Raises:
            AslError: The provider cannot be reached.
        """
        found = await self._discovered()
        attempt = _Attempt(
            secrets.token_urlsafe(24),
            secrets.token_urlsafe(24),
            secrets.token_urlsafe(48),
            following,
            time.time() + PATIENCE,
        )
        digest = sha256(attempt.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": callback,
            "scope": self._settings.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = str(found["authorization_endpoint"])
        response = RedirectResponse(
            f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
        )
        value = str(serializer_of(self._secret, _PURPOSE).dumps([*attempt]))
        # The provider sends the browser back by a link of another site: not `Strict`.
        cookie = set_cookie(COOKIE, value, PATIENCE, secure=is_secure, same_site="Lax")
        response.headers.append("set-cookie", cookie)
        response.headers["Cache-Control"] = "no-store"
        return response

    def clear(self, response: Response) -> None:
        """Remove the cookie of a login that has begun."""
        response.headers.append("set-cookie", set_cookie(COOKIE, "", 0, secure=False))

    async def finish(self, request: Request, callback: str) -> OidcLogin:
        """Return the user whom the provider has authenticated.

        Args:
            request: The request with which the provider returns.
            callback: The URL that was given to the provider.

        Raises:
            Unauthorized: The login failed, or was not begun by this browser.
            AslError: The provider cannot be reached.
        """
        attempt, query = self._attempt(request), request.query_params
        if not compare_digest(query.get("state", "").encode(), attempt.state.encode()):
            raise Unauthorized("this login was begun elsewhere: log in again")
        if "error" in query:
            reason = query.get("error_description") or query["error"]
            raise Unauthorized(f"the identity provider has refused the login: {reason[:300]}")
        found = await self._discovered()
        if query.get("iss", self._settings.issuer) != self._settings.issuer:
            raise Unauthorized("another identity provider has answered")
        token = await self._exchanged(found, query.get("code", ""), attempt, callback)
        claims = self._verified(token, await self._keys(found), attempt.nonce)
        return OidcLogin(self._user(claims), self._roles(claims), attempt.following)

    def _attempt(self, request: Request) -> _Attempt:
        given = cookies_of(request, COOKIE)
        try:
            attempt = _Attempt(*serializer_of(self._secret, _PURPOSE).loads((given or [""])[0]))
        except (BadData, TypeError):  # TypeError: a cookie of another version
            raise Unauthorized("this login was not begun by this browser: log in again") from None
        if attempt.until < time.time():
            raise Unauthorized("the login took too long: log in again")
        return attempt

    # The provider

    async def _discovered(self) -> dict[str, Any]:
        """Return the configuration of the provider."""
        now = time.monotonic()
        if self._configuration is None or self._configuration[0] + FRESH < now:
            issuer = self._settings.issuer
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            found = await self._fetched(url)
            if found.get("issuer") != issuer:
                raise AslError(f"the identity provider calls itself {found.get('issuer')!r}")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                check_url(found.get(name))
            self._configuration = now, found
        return self._configuration[1]

    async def _keys(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return await self._fetched(str(found["jwks_uri"]))

    async def _exchanged(
        self, found: Mapping[str, Any], code: str, attempt: _Attempt, callback: str
    ) -> str:
        """Return the ID token for a code."""
        settings, form = self._settings, {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "client_id": self._settings.client_id,
            "code_verifier": attempt.verifier,
        }  # fmt: skip
        headers: dict[str, str] = {}
        secret = settings.client_secret
        methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret is not None and "client_secret_basic" in methods:
            pair = f"{quote(settings.client_id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {_encoded(pair)}"
        elif secret is not None:
            form["client_secret"] = secret
        answer = await self._fetched(str(found["token_endpoint"]), form, headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise Unauthorized("the identity provider has sent no ID token")
        return token

    async def _fetched(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return a JSON object of the provider.

        Raises:
            Unauthorized: The provider refuses the code.
            AslError: It cannot be reached, or sends no JSON object.
        """
        import httpx2

        method = "GET" if form is None else "POST"
        try:
            async with (
                httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client,
                client.stream(method, url, data=form, headers=headers) as response,
            ):
                body, status = await _bounded(response), response.status_code
        except httpx2.HTTPError as error:
            raise AslError(f"the identity provider does not answer: {error}") from None
        value = _object(body)
        if status != 200 or value is None:
            if form is not None and value is not None:
                reason = value.get("error_description") or value.get("error")
                raise Unauthorized(f"the identity provider has refused the code: {reason}")
            raise AslError(f"the identity provider has answered {url} with status {status}")
        return value

    # The ID token

    def _verified(self, token: str, keys: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token.

        Raises:
            Unauthorized: It is not of the provider, not for this service, or has ended.
        """
        import jwt

        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError("the algorithm is not accepted")
            claims: dict[str, Any] = jwt.decode(
                token,
                _key(jwt.PyJWKSet.from_dict(dict(keys)).keys, header),
                algorithms=[header["alg"]],
                audience=settings.client_id,
                issuer=settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise Unauthorized(f"the ID token is not valid: {error}") from None
        if not compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise Unauthorized("the ID token is of another login")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else settings.client_id) != settings.client_id:
            raise Unauthorized("the ID token is for another client")
        return claims

    def _user(self, claims: Mapping[str, Json]) -> str:
        name = self._settings.user_claim
        user = claims.get(name)
        if not isinstance(user, str) or not is_user_name(user):
            raise Unauthorized(f"the ID token has no usable name in the claim {name!r}")
        if name == "email" and claims.get("email_verified") is not True:
            raise Unauthorized("the e-mail address is not verified by the identity provider")
        return user

    def _roles(self, claims: Mapping[str, Json]) -> frozenset[str]:
        found: Json = dict(claims)
        for part in self._settings.roles_claim.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str):
            found = found.split()
        if not isinstance(found, list):
            return frozenset()
        return frozenset(each for each in found if isinstance(each, str) and each)


def _key(keys: list[Any], header: Mapping[str, Any]) -> Any:
    """Return the key that a token names.

    Raises:
        ValueError: There is none.
    """
    wanted = header.get("kid")
    fitting = [key for key in keys if wanted is None or key.key_id == wanted]
    if len(fitting) != 1:
        raise ValueError("the identity provider does not have its key")
    return fitting[0].key


async def _bounded(response: httpx2.Response) -> bytes:
    body = b""
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LARGEST:
            raise AslError(f"the identity provider has sent more than {LARGEST} bytes")
    return body


def _object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a body, None for anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
