"""Sessions: login, expiry, what ends them, and forms of other sites."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import asl
import asl.server
from asl.server.access.secret import FileSecret, StoreSecret
from asl.server.access.sessions import Sessions
from asl.server.access.users import User, Users, hash_of
from tests.server.access.people import (
    ANN,
    PEOPLE,
    VIC,
    Clock,
    actions,
    bearer,
    csrf_of,
    log_in,
    served,
)

HOUR = 3600


def me(client: TestClient, **headers: str) -> Any:
    return client.get("/api/v1/me", headers=headers)


def test_login_begins_a_session(client: TestClient, store: asl.Store) -> None:
    answer = log_in(client, next="/ui/inbox?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/inbox?x=1")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("asl_session=")
    assert cookie.endswith("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure")
    assert ANN not in cookie
    found = me(client).json()
    assert (found["user"], found["method"], "manager" in found["roles"]) == ("ann", "session", True)
    assert actions(store) == [("ann", "token", "login")]


def test_cookie_is_not_secure_without_https(store: asl.Store) -> None:
    with served(store) as client:
        answer = client.post("http://flow.example/login", data={"token": ANN})
        assert "Secure" not in answer.headers["set-cookie"]


def test_unknown_token_begins_no_session(client: TestClient, store: asl.Store) -> None:
    answer = log_in(client, "wrong")
    assert answer.status_code == 401
    assert "The token is unknown." in answer.text
    assert "set-cookie" not in answer.headers
    assert actions(store) == [("", "none", "login.refused")]


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example", "//evil.example", "/\\evil.example", "/a\nb", "javascript:1", "x" * 9],
)
def test_login_leads_to_this_server_only(client: TestClient, elsewhere: str) -> None:
    assert log_in(client, next=elsewhere).headers["location"] == "/"


def test_session_slides_and_expires(client: TestClient, clock: Clock) -> None:
    log_in(client)
    first = client.cookies["asl_session"]
    clock.passed = 60
    assert "set-cookie" not in me(client).headers
    clock.passed = 11 * HOUR
    assert me(client).status_code == 200
    assert client.cookies["asl_session"] != first
    clock.passed = 22 * HOUR
    assert me(client).status_code == 200
    old = {"Cookie": f"asl_session={first}"}
    client.cookies.clear()
    assert me(client, **old).status_code == 401


def test_session_expires_without_requests(client: TestClient, clock: Clock) -> None:
    log_in(client)
    clock.passed = 12 * HOUR + 1
    assert me(client).status_code == 401


def test_logout_ends_the_session_everywhere(client: TestClient, store: asl.Store) -> None:
    log_in(client)
    cookie = client.cookies["asl_session"]
    answer = client.post("/logout", data={"csrf": csrf_of(client)})
    assert answer.status_code == 200
    assert "asl_session=; Path=/; Max-Age=0" in answer.headers["set-cookie"]
    assert me(client, Cookie=f"asl_session={cookie}").status_code == 401
    assert actions(store)[-1] == ("ann", "session", "logout")


def test_logout_needs_the_token_of_the_form(client: TestClient) -> None:
    log_in(client)
    assert client.post("/logout", data={"csrf": ""}).status_code == 403
    assert client.post("/logout", data={"csrf": "x" * 24}).status_code == 403
    assert me(client).status_code == 200


def test_login_gives_the_session_a_new_name(client: TestClient) -> None:
    """An attacker who has set a cookie beforehand does not share the session."""
    log_in(client, VIC)
    planted = client.cookies["asl_session"]
    log_in(client, ANN)
    assert client.cookies["asl_session"] != planted
    client.cookies.clear()
    assert me(client, Cookie=f"asl_session={planted}").status_code == 401


def test_two_cookies_of_the_name_are_no_session(client: TestClient) -> None:
    log_in(client)
    one = client.cookies["asl_session"]
    client.cookies.clear()
    assert me(client, Cookie=f"asl_session={one}; asl_session={one}").status_code == 401


def test_changed_cookie_is_no_session(client: TestClient) -> None:
    log_in(client)
    one = client.cookies["asl_session"]
    client.cookies.clear()
    body, _, signature = one.rpartition(".")
    changed = f"{body}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    for value in (changed, "", "a.b", body):
        assert me(client, Cookie=f"asl_session={value}").status_code == 401


class Changing(Users):
    """Users whom a test changes."""

    def change(self, name: str, user: User | None) -> None:
        self._users = {key: each for key, each in self._users.items() if key != name}
        if user is not None:
            self._users[name] = user


@pytest.mark.parametrize("user", [None, User(hash_of("new"), frozenset({"operator"}))])
def test_session_ends_with_the_user_and_with_the_token(store: asl.Store, user: User | None) -> None:
    users = Changing(PEOPLE)
    with served(store, users=users) as client:
        log_in(client)
        assert me(client).status_code == 200
        users.change("ann", user)
        assert me(client).status_code == 401


def test_session_has_the_present_roles(store: asl.Store) -> None:
    users = Changing(PEOPLE)
    with served(store, users=users) as client:
        log_in(client)
        users.change("ann", User(hash_of(ANN), frozenset({"viewer"})))
        assert me(client).json()["roles"] == ["viewer"]


def test_sessions_end_with_the_secret(client: TestClient, store: asl.Store) -> None:
    log_in(client)
    StoreSecret(store).rotate()
    assert me(client).status_code == 401


def test_secret_in_a_file(store: asl.Store, tmp_path: Any) -> None:
    file = tmp_path / "secret"
    with served(store, secret_file=file) as client:
        log_in(client)
        assert file.stat().st_mode & 0o777 == 0o600
        assert me(client).status_code == 200
        FileSecret(file).rotate()
        assert me(client).status_code == 401


def test_short_secret_is_refused(store: asl.Store, tmp_path: Any) -> None:
    (tmp_path / "secret").write_text("short\n")
    with served(store, secret_file=tmp_path / "secret") as client:
        answer = log_in(client)
        assert answer.status_code == 400
        assert "at least 32 characters" in answer.text


def test_page_without_session_leads_to_the_login_and_back(client: TestClient) -> None:
    answer = client.get("/ui/executions")
    assert answer.status_code == 401
    assert 'href="/ui/login?next=/ui/executions"' in answer.text
    there = client.get("/ui/login?next=/ui/executions").headers["location"]
    assert there == "/login?next=%2Fui%2Fexecutions"
    assert 'name="next" value="/ui/executions"' in client.get(there).text


def test_link_of_another_site_finds_the_session(client: TestClient) -> None:
    """A strict cookie is only sent with a request that starts at this site."""
    answer = client.get("/login?next=/ui/", headers={"Sec-Fetch-Site": "cross-site"})
    assert 'content="0; url=/login?next=/ui/"' in answer.text
    log_in(client)
    assert client.get("/login?next=/ui/").headers["location"] == "/ui/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_forms_and_requests_of_other_sites(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/login", data={"token": ANN}, headers=headers).status_code == 403
    log_in(client)
    body = {"text": "{}", "name": "X"}
    assert client.post("/api/v1/documents", json=body, headers=headers).status_code == 403
    csrf = {"csrf": csrf_of(client)}
    assert client.post("/logout", data=csrf, headers=headers).status_code == 403


def test_own_forms_are_accepted(client: TestClient) -> None:
    own = {"Origin": "https://flow.example", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/login", data={"token": ANN}, headers=own).status_code == 303


def test_forms_through_a_proxy_that_replaces_the_host(store: asl.Store) -> None:
    with served(store, public_url="https://flow.example:8443/") as client:
        headers = {"Host": "10.0.0.7:8083", "Origin": "https://flow.example:8443"}
        answer = client.post("http://x/login", data={"token": ANN}, headers=headers)
        assert answer.status_code == 303
        assert "; Secure" in answer.headers["set-cookie"]
        headers["Origin"] = "https://flow.example"
        assert client.post("/login", data={"token": ANN}, headers=headers).status_code == 403


def test_bearer_token_needs_no_form_token(client: TestClient) -> None:
    headers = {**bearer(ANN), "Origin": "https://tool.example"}
    body = {"text": '{"StartAt": "P", "States": {"P": {"Type": "Succeed"}}}', "name": "X"}
    assert client.post("/api/v1/documents", json=body, headers=headers).status_code == 201


def test_service_below_a_path_of_another_application(store: asl.Store) -> None:
    """Its logins, links and cookies work there as well."""
    inner = asl.server.app(store, users=Users(PEOPLE), concurrency=0)
    outer = Starlette(routes=[Mount("/flows", app=inner)], lifespan=inner.lifespan)
    with TestClient(outer, base_url="https://x.example", follow_redirects=False) as client:
        assert client.get("/flows/ui/login").headers["location"] == (
            "/flows/login?next=%2Fflows%2Fui%2F"
        )
        page = client.get("/flows/login").text
        assert 'action="/flows/login"' in page
        assert 'name="next" value="/flows/"' in page
        answer = client.post("/flows/login", data={"token": ANN})
        assert answer.headers["location"] == "/flows/"
        assert client.get("/flows/").headers["location"] == "/flows/ui/"
        assert client.get("/flows/api/v1/me").json()["user"] == "ann"
        form = client.get("/flows/ui/executions").text
        assert 'action="/flows/ui/logout"' in form
        csrf = csrf_of_page(form)
        assert client.post("/flows/ui/logout", data={"csrf": csrf}).status_code == 200
        assert client.get("/flows/api/v1/me").status_code == 401


def test_forms_of_users_without_a_session_have_a_token(store: asl.Store) -> None:
    """A browser adds what a proxy knows, or that it runs on this machine, to every request."""
    application = asl.server.app(store, local=True, concurrency=0)
    store.run({"StartAt": "P", "States": {"P": {"Type": "Fail"}}}, name="one")
    with TestClient(
        application,
        base_url="http://localhost:8083",
        client=("127.0.0.1", 5),
        follow_redirects=False,
    ) as client:
        csrf = csrf_of_page(client.get("/ui/executions/one").text)
        own = {"Origin": "http://localhost:8083"}
        url = "/ui/executions/one/delete"
        assert client.post(url, data={"csrf": "x"}, headers=own).status_code == 403
        evil = {"Origin": "http://evil.example"}
        assert client.post(url, data={"csrf": csrf}, headers=evil).status_code == 403
        assert client.post(url, data={"csrf": csrf}, headers=own).status_code == 303


def csrf_of_page(text: str) -> str:
    return re.findall(r'name="csrf" value="([^"]+)"', text)[0]


def test_stream_ends_with_the_session(store: asl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is removed sees no further events of a stream that was opened before."""
    monkeypatch.setattr("asl.server.access.authorization.RECHECK", 0.0)
    store.run({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}, name="one")
    users = Changing(PEOPLE)
    with served(store, users=users) as client:
        log_in(client)
        for path in ("/api/v1/executions/one/stream", "/ui/executions/one/stream"):
            assert "event: end" in client.get(path).text
        identify = Sessions.identify

        def removed(self: Sessions, request: Any) -> Any:
            found = identify(self, request)
            users.change("ann", None)
            return found

        monkeypatch.setattr(Sessions, "identify", removed)
        answer = client.get("/api/v1/executions/one/stream")
        assert answer.status_code == 200
        assert "event: " not in answer.text
