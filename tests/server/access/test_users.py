"""Users: the file and its changes, tokens, bounds on guesses, proxies, a service without users."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import asl
import asl.server
from asl.server.access.attempts import AttemptLimiter, TooManyAttempts
from asl.server.access.authentication import LocalUser, ProxyHeader
from asl.server.access.proxies import TrustedProxies
from asl.server.access.users import Users, hash_of
from asl.server.access.users_file import UsersFile
from asl.server.serving import access_settings
from tests.server.access.people import ANN, BOB, PEOPLE, VIC, bearer, log_in, served


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:") as opened:
        yield opened


def me(client: TestClient, **headers: str) -> Any:
    return client.get("/api/v1/me", headers=headers)


def row(name: str, token: str, role: str = "viewer") -> str:
    return f'[users.{name}]\ntoken = "{hash_of(token)}"\nroles = ["{role}"]\n'


def test_users_file_is_read_again_when_it_changes(store: asl.Store, tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text(row("ann", ANN))
    with served(store, users=file) as client:
        assert me(client, **bearer(ANN)).json()["roles"] == ["viewer"]
        file.write_text(row("ann", ANN, "operator") + row("bob", BOB))
        assert me(client, **bearer(ANN)).json()["roles"] == ["operator"]
        assert me(client, **bearer(BOB)).status_code == 200
        log_in(client, BOB)
        file.write_text(row("ann", ANN))
        assert me(client, **bearer(BOB)).status_code == 401
        assert me(client).status_code == 401


def test_users_remain_if_the_file_becomes_invalid(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text(row("ann", ANN))
    users = UsersFile(file)
    file.write_text("[users.ann\n")
    assert users.by_token(ANN) is not None
    os.remove(file)
    assert users.by_token(ANN) is not None
    file.write_text("")
    assert users.by_token(ANN) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[users.ann]\ntoken = 'plain'\n", "users.ann.token"),
        ("[users.ann]\nrole = ['x']\n", "users.ann.role"),
        ("users = 3\n", "users"),
        ("[users.'a\u200bb']\n", "is no name"),
        ("[users.'']\n", "is no name"),
        ("x = [\n", "is not TOML"),
    ],
)
def test_users_file_that_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text(text)
    with pytest.raises(asl.AslError, match=says):
        UsersFile(file)


def test_a_missing_users_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(asl.AslError, match="cannot read the users file"):
        UsersFile(tmp_path / "none")


# Guesses


def test_guessed_tokens_are_throttled_by_address(store: asl.Store) -> None:
    with served(store) as client:
        found = [me(client, **bearer(f"guess-{index}")).status_code for index in range(12)]
        assert found == [401] * 10 + [429] * 2
        answer = me(client, **bearer(ANN))
        assert (answer.status_code, int(answer.headers["retry-after"]) <= 60) == (429, True)
        assert log_in(client, "guess").status_code == 429
        assert me(client).status_code == 401
        other = TestClient(client.app, client=("192.0.2.8", 1), base_url="https://flow.example")
        assert me(other, **bearer(ANN)).status_code == 200


def test_limit_of_guesses_ends_and_forgets() -> None:
    now = [0.0]
    limiter = AttemptLimiter(lambda: now[0])
    for _ in range(10):
        limiter.check("a")
        limiter.add("a")
    with pytest.raises(TooManyAttempts, match="try again in 60 s"):
        limiter.check("a")
    limiter.check("b")
    now[0] = 61
    limiter.check("a")
    for index in range(20_000):
        limiter.add(str(index))
    assert len(limiter._windows) == 10_000


def test_tokens_are_compared_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user is compared, in a time that does not depend on the place of a difference."""
    compared: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "asl.server.access.users.compare_digest",
        lambda one, two: compared.append((one, two)) or one == two,
    )
    found = Users(PEOPLE).by_token(ANN)
    assert found is not None
    assert found.user == "ann"
    assert len(compared) == len(PEOPLE)
    assert all(len(one) == len(two) for one, two in compared)


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ", "bearer\t", "Basic YTpi", "Bearer \u00ff", "Token x", ""]
)
def test_other_credentials(store: asl.Store, value: str) -> None:
    with served(store) as client:
        answer = client.get("/api/v1/me", headers={"Authorization": value.encode("latin-1")})
        assert answer.status_code == 401


def test_two_authorization_headers_are_refused(store: asl.Store) -> None:
    with served(store) as client:
        headers = [("Authorization", f"Bearer {each}") for each in (VIC, ANN)]
        answer = client.get("/api/v1/me", headers=headers)
        assert (answer.status_code, "must be there once" in answer.text) == (401, True)


# Roles


def test_roles_cannot_be_given_by_a_request(store: asl.Store) -> None:
    store.run(
        {
            "StartAt": "Ask",
            "States": {
                "Ask": {
                    "Type": "Approval",
                    "Prompt": "?",
                    "Policy": {"Approvers": {"Roles": ["manager"]}},
                    "End": True,
                }
            },
        },
        name="one",
    )
    with served(store) as client:
        (request,) = client.get("/api/v1/requests", headers=bearer(BOB)).json()["requests"]
        url = f"/api/v1/requests/{request['id']}/answer"
        headers = {**bearer(BOB), "X-Roles": "manager", "X-Forwarded-User": "ann"}
        for body in (
            {"approval": "approve"},
            {"approval": "approve", "more": {"roles": ["manager"]}},
            {"approval": "approve", "more": {"approver": "ann"}},
            {"approval": "approve", "more": {"authentication": "token"}},
        ):
            assert client.post(url, json=body, headers=headers).status_code in (400, 403)
        body = {"approval": "approve", "roles": ["manager"]}
        assert client.post(url, json=body, headers=headers).status_code == 422
        answer = client.post(url, json={"approval": "approve"}, headers=bearer(ANN))
        assert answer.json()["record"]["approver"] == "ann"
    (decided,) = [
        each.details for each in store.resume("one").events if each.type == "ApprovalDecided"
    ]
    assert decided["authentication"] == "token"


# Proxies


def proxied(store: asl.Store, **settings: Any) -> Any:
    header = ProxyHeader("X-User", ["192.0.2.0/28"], Users(PEOPLE), "X-Roles")
    return served(store, authenticators=[header], **settings)


def test_proxy_names_the_user(store: asl.Store) -> None:
    with proxied(store) as client:
        found = me(client, **{"X-User": "vic", "X-Roles": "approver, manager"}).json()
        assert (found["user"], found["method"]) == ("vic", "proxy")
        assert found["roles"] == ["approver", "manager", "viewer"]
        assert me(client, **{"X-User": "zoe"}).status_code == 401
        assert me(client, **{"X-User": " "}).status_code == 401
        for name in ("ann\u00ad", "ann\u00a0", "a  b"):  # records would have another name
            header = {"X-User": name.encode("latin-1"), "X-Roles": b"approver"}
            assert client.get("/api/v1/me", headers=header).status_code == 401
        twice = [("X-User", "vic"), ("X-User", "ann")]
        assert client.get("/api/v1/me", headers=twice).status_code == 401
        forms = client.get("/ui/executions", headers={"X-User": "vic"})
        assert "Log out" not in forms.text


def test_header_of_others_than_the_proxy_is_refused(store: asl.Store) -> None:
    with proxied(store) as client:
        other = TestClient(client.app, client=("192.0.2.99", 1), base_url="https://flow.example")
        answer = me(other, **{"X-User": "ann"})
        assert (answer.status_code, "from the proxy only" in answer.text) == (401, True)
        odd = TestClient(client.app, client=("unix", 1), base_url="https://flow.example")
        assert me(odd, **{"X-User": "ann"}).status_code == 401


def test_address_behind_proxies() -> None:
    proxies = TrustedProxies(["10.0.0.0/8", "::1"])

    def address(client: str, *forwarded: str) -> str:
        headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
        scope = {"type": "http", "client": (client, 1), "headers": headers, "path": "/"}
        from starlette.requests import HTTPConnection

        return proxies.address_of(HTTPConnection(scope))

    assert address("192.0.2.1", "1.1.1.1") == "192.0.2.1"
    assert address("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2") == "1.1.1.1"
    assert address("10.0.0.1", "6.6.6.6", "1.1.1.1") == "1.1.1.1"
    assert address("10.0.0.1") == "10.0.0.1"
    assert address("::1", "x" * 500) == "x" * 100
    with pytest.raises(asl.AslError, match="address or a network"):
        TrustedProxies(["proxy.example"])


# Services


OPTIONS: dict[str, Any] = {
    "users_file": None,
    "public_url": None,
    "secret_file": None,
    "issuer": None,
    "client_id": None,
    "client_secret_file": None,
    "user_claim": "sub",
    "roles_claim": "roles",
    "proxies": (),
    "proxy_header": None,
    "proxy_roles_header": None,
}


def test_service_for_this_machine_needs_no_users(tmp_path: Path) -> None:
    """With users, a proxy or a provider there may be a proxy here that sends no headers."""
    (tmp_path / "users.toml").write_text(row("ann", ANN))
    assert access_settings("127.0.0.1", **OPTIONS).local
    assert access_settings("::1", **{**OPTIONS, "public_url": "http://localhost:8083"}).local
    assert not access_settings("0.0.0.0", **OPTIONS).local
    for more in (
        {"users_file": str(tmp_path / "users.toml")},
        {"proxy_header": "X-User", "proxies": ["127.0.0.1"]},
        {"issuer": "https://id.example", "client_id": "x"},
        {"public_url": "https://flow.example"},
    ):
        assert not access_settings("127.0.0.1", **{**OPTIONS, **more}).local
    with pytest.raises(asl.AslError, match="must begin with https://"):
        access_settings("0.0.0.0", **{**OPTIONS, "issuer": "http://id.example", "client_id": "x"})


def test_service_for_others_without_users_refuses_all(store: asl.Store) -> None:
    with served(store, users=None) as client:
        for path in ("/api/v1/me", "/api/v1/executions", "/ui/executions"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert "this service has no users: start it with --users FILE" in answer.text.replace(
                "&#39;", "'"
            )
        assert "--users FILE" in client.get("/login").text


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("192.0.2.1", {}),
        ("127.0.0.1", {"Host": "evil.example:8083"}),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}),
        ("127.0.0.1", {"Via": "1.1 p"}),
    ],
)
def test_local_user_is_of_this_machine_only(
    store: asl.Store, client: str, headers: dict[str, str]
) -> None:
    application = asl.server.app(store, authenticators=[LocalUser()], concurrency=0)
    with TestClient(application, base_url="http://localhost:8083", client=(client, 1)) as found:
        assert found.get("/api/v1/me", headers=headers).status_code == 401
