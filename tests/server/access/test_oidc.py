"""Logins through an identity provider: a small one on this machine, honest and dishonest."""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from time import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

import asl
from asl.server.access.oidc_settings import OidcSettings
from asl.server.access.users import User, Users
from asl.service.server import serving
from tests.server.access.people import PEOPLE, actions, csrf_of, served

jwt = pytest.importorskip("jwt")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
CLIENT, CLIENT_SECRET = "asl", "s:e/c ret"


def private_key() -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Issuer:
    """An identity provider whose next token a test may spoil."""

    def __init__(self) -> None:
        self.url = ""
        self.key = private_key()
        self.asked: dict[str, str] = {}
        """Parameters of the login that the browser was sent with."""
        self.claims: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.methods = ["client_secret_basic"]
        self.issuer = ""

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.configuration),
                Route("/jwks", self.keys),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def configuration(self, request: Request) -> Response:
        return JSONResponse({
            "issuer": self.issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize?x=1",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "token_endpoint_auth_methods_supported": self.methods,
        })  # fmt: skip

    def keys(self, request: Request) -> Response:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]})

    async def token(self, request: Request) -> Response:
        form = await request.form()
        digest = sha256(str(form["code_verifier"]).encode()).digest()
        if "client_secret_basic" in self.methods:
            basic = request.headers["authorization"].removeprefix("Basic ")
            authenticated = b64decode(basic).decode() == "asl:s%3Ae%2Fc%20ret"
        else:
            authenticated = form.get("client_secret") == CLIENT_SECRET
        good = (
            authenticated
            and form["code"] == "the-code"
            and form["client_id"] == CLIENT
            and form["redirect_uri"] == self.asked["redirect_uri"]
            and urlsafe_b64encode(digest).decode().rstrip("=") == self.asked["code_challenge"]
        )
        if not good:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"id_token": self.sign(self.payload()), "token_type": "Bearer"})

    def payload(self) -> dict[str, Any]:
        now = int(time())
        standard = {
            "iss": self.url, "sub": "s1", "aud": CLIENT, "iat": now, "exp": now + 60,
            "nonce": self.asked["nonce"], "preferred_username": "zoe",
            "roles": ["approver", "manager"],
        }  # fmt: skip
        found = {**standard, **self.claims}
        return {name: value for name, value in found.items() if value is not None}

    def signed(self, payload: dict[str, Any]) -> str:
        return str(jwt.encode(payload, self.key, "RS256", headers={"kid": "one"}))


@pytest.fixture(scope="module")
def keys() -> list[Any]:
    """Two private keys, which take a moment to make."""
    return [private_key(), private_key()]


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch, keys: list[Any]) -> Iterator[Issuer]:
    monkeypatch.setattr(f"{__name__}.private_key", lambda: keys[0])
    found = Issuer()
    with serving(found.application()) as url:
        found.url = url
        yield found


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:") as opened:
        yield opened


def settings(issuer: Issuer, **more: Any) -> OidcSettings:
    return OidcSettings(issuer.url, CLIENT, CLIENT_SECRET, **more)


@pytest.fixture
def client(store: asl.Store, issuer: Issuer) -> Iterator[TestClient]:
    with served(store, oidc=settings(issuer), public_url="https://flow.example/") as found:
        yield found


def begin(client: TestClient, issuer: Issuer, following: str = "/ui/inbox") -> dict[str, str]:
    """Begin a login; return the parameters with which the browser reaches the provider."""
    answer = client.get("/login/oidc", params={"next": following})
    assert answer.status_code == 307, answer.text
    assert answer.headers["location"].startswith(f"{issuer.url}/authorize?x=1&response_type=code")
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    issuer.asked = {name: value[0] for name, value in query.items()}
    return issuer.asked


def finish(client: TestClient, state: str, **query: str) -> Any:
    values = {"code": "the-code", "state": state, **query}
    return client.get("/login/oidc/callback", params=values)


def me(client: TestClient) -> Any:
    return client.get("/api/v1/me")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_login(client: TestClient, issuer: Issuer, store: asl.Store, method: str) -> None:
    issuer.methods = [method]
    assert f"Log in with {issuer.url}" in client.get("/login").text
    asked = begin(client, issuer)
    assert asked["redirect_uri"] == "https://flow.example/login/oidc/callback"
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid profile email"
    answer = finish(client, asked["state"])
    assert answer.status_code == 200, answer.text
    assert 'content="0; url=/ui/inbox"' in answer.text
    found = me(client).json()
    assert (found["user"], found["method"]) == ("zoe", "oidc")
    assert found["roles"] == ["approver", "manager"]
    assert actions(store) == [("zoe", "oidc", "login")]
    assert client.post("/logout", data={"csrf": csrf_of(client)}).status_code == 200
    assert me(client).status_code == 401


def test_cookie_of_a_login_that_has_begun(client: TestClient, issuer: Issuer) -> None:
    """The provider's redirection must bring it, which is a link of another site."""
    cookie = client.get("/login/oidc").headers["set-cookie"]
    assert cookie.startswith("asl_login=")
    assert cookie.endswith("; Max-Age=600; HttpOnly; SameSite=Lax; Secure")


def test_callback_of_a_login_begun_elsewhere(client: TestClient, issuer: Issuer) -> None:
    asked = begin(client, issuer)
    assert finish(client, "other").status_code == 401
    client.cookies.clear()
    answer = finish(client, asked["state"])
    assert (answer.status_code, "not begun by this browser" in answer.text) == (401, True)


def test_refusal_of_the_provider(client: TestClient, issuer: Issuer, store: asl.Store) -> None:
    asked = begin(client, issuer)
    answer = finish(client, asked["state"], error="access_denied", error_description="<b>no")
    assert (answer.status_code, "&lt;b&gt;no" in answer.text) == (401, True)
    assert actions(store) == [("", "oidc", "login.refused")]


@pytest.mark.parametrize(
    "query", [{"code": "other"}, {"iss": "https://evil.example"}, {"code": ""}]
)
def test_wrong_answer(client: TestClient, issuer: Issuer, query: dict[str, str]) -> None:
    asked = begin(client, issuer)
    assert finish(client, asked["state"], **query).status_code == 401
    assert me(client).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "other"},
        {"aud": ["asl", "other"]},
        {"aud": ["asl", "other"], "azp": "other"},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"iat": None},
        {"nonce": "other"},
        {"nonce": None},
        {"preferred_username": None},
        {"preferred_username": ""},
        {"preferred_username": "a\u200bnn"},
        {"preferred_username": ["ann"]},
    ],
)
def test_wrong_claims(client: TestClient, issuer: Issuer, claims: dict[str, Any]) -> None:
    issuer.claims = claims
    answer = finish(client, begin(client, issuer)["state"])
    assert answer.status_code == 401, answer.text
    assert me(client).status_code == 401


def test_wrong_signatures(client: TestClient, issuer: Issuer, keys: list[Any]) -> None:
    public = issuer.key.public_key()
    pem = public.public_bytes(*_pem())
    spoiled: list[Callable[[dict[str, Any]], str]] = [
        lambda payload: str(jwt.encode(payload, None, "none", headers={"kid": "one"})),
        lambda payload: str(jwt.encode(payload, keys[1], "RS256", headers={"kid": "one"})),
        lambda payload: str(jwt.encode(payload, issuer.key, "RS256", headers={"kid": "two"})),
        lambda payload: _hmac(payload, pem),
        lambda payload: "no.token",
    ]
    for sign in spoiled:
        issuer.sign = sign
        answer = finish(client, begin(client, issuer)["state"])
        assert answer.status_code == 401, answer.text
    assert me(client).status_code == 401


def _pem() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return Encoding.PEM, PublicFormat.SubjectPublicKeyInfo


def _hmac(payload: dict[str, Any], key: bytes) -> str:
    """Sign with the public key as if it were a secret."""
    import hmac

    def part(value: bytes) -> str:
        return urlsafe_b64encode(value).decode().rstrip("=")

    head = part(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    text = f"{head}.{part(json.dumps(payload).encode())}"
    return f"{text}.{part(hmac.new(key, text.encode(), 'sha256').digest())}"


def test_roles_of_the_users_file_are_added(store: asl.Store, issuer: Issuer) -> None:
    users = Users({**PEOPLE, "zoe": User(roles=frozenset({"operator"}), projects=frozenset())})
    with served(store, oidc=settings(issuer), users=users, public_url="https://flow.example") as c:
        finish(c, begin(c, issuer)["state"])
        answer = me(c)
        assert (answer.status_code, "no access to the project" in answer.text) == (403, True)


def test_user_without_roles_is_refused(client: TestClient, issuer: Issuer) -> None:
    issuer.claims = {"roles": []}
    answer = finish(client, begin(client, issuer)["state"])
    assert (answer.status_code, "has no role" in answer.text) == (403, True)


def test_claims_are_configurable(store: asl.Store, issuer: Issuer) -> None:
    chosen = settings(issuer, user_claim="email", roles_claim="realm.roles")
    with served(store, oidc=chosen, public_url="https://flow.example") as client:
        issuer.claims = {"email": "zoe@x", "realm": {"roles": "viewer boss"}}
        assert finish(client, begin(client, issuer)["state"]).status_code == 401
        issuer.claims |= {"email_verified": True}
        finish(client, begin(client, issuer)["state"])
        found = me(client).json()
        assert (found["user"], found["roles"]) == ("zoe@x", ["boss", "viewer"])


def test_provider_that_does_not_answer(store: asl.Store) -> None:
    chosen = OidcSettings("http://127.0.0.1:9", CLIENT)
    with served(store, oidc=chosen) as client:
        answer = client.get("/login/oidc")
        assert (answer.status_code, "does not answer" in answer.text) == (400, True)


def test_provider_of_another_name(client: TestClient, issuer: Issuer) -> None:
    issuer.issuer = "https://other.example"
    answer = client.get("/login/oidc")
    assert (answer.status_code, "calls itself" in answer.text) == (400, True)


def test_service_without_provider(store: asl.Store) -> None:
    with served(store) as client:
        assert client.get("/login/oidc").status_code == 404
