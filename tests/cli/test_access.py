"""Commands about the users of a service: token, rotate-secret, audit, and the options of serve."""

from __future__ import annotations

import json
import tomllib
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import asl
from asl.cli.main import cli
from asl.cli.serve import _warnings
from asl.server.access.secret import StoreSecret
from asl.server.access.users import hash_of
from asl.stores.audit import AuditEntry, add_entry
from tests.cli.test_serve import server
from tests.server.service import until

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})


def command(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def test_token_is_shown_once_and_its_hash_is_stored() -> None:
    done = command("token", 'ann "x"', "--role", "approver", "--role", "boss", "--project", "p")
    assert done.exit_code == 0
    token = done.stderr.splitlines()[-1]
    assert token.startswith("asl_")
    assert token not in done.stdout
    assert tomllib.loads(done.stdout) == {
        "users": {
            "ann \"x\"": {
                "token": hash_of(token), "roles": ["approver", "boss"], "projects": ["p"]
            }
        }
    }  # fmt: skip
    assert command("token", "ann").stderr.splitlines()[-1] != token


@pytest.mark.parametrize("name", ["", "a\u200bb", " ann"])
def test_name_of_a_user_that_is_refused(name: str) -> None:
    done = command("token", name)
    assert (done.exit_code, "is no name" in done.stderr) == (2, True)


def test_secret_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with asl.open_store(path) as store:
        first = StoreSecret(store).current()
    assert command("rotate-secret", "--store", str(path)).exit_code == 0
    with asl.open_store(path) as store:
        assert StoreSecret(store).current() != first
    file = tmp_path / "secret"
    assert command("rotate-secret", "--secret-file", str(file)).exit_code == 0
    assert len(file.read_text()) > 32
    assert file.stat().st_mode & 0o777 == 0o600
    there = tmp_path / "none" / "secret"
    assert command("rotate-secret", "--secret-file", str(there)).exit_code == 2


@pytest.fixture
def logged(tmp_path: Path) -> str:
    path = tmp_path / "runs.db"
    with asl.open_store(path, clock=asl.VirtualClock()) as store:
        for number, (user, action) in enumerate(
            [("ann", "execution.start"), ("bob", "execution.cancel"), ("", "login.refused")]
        ):
            entry = AuditEntry(
                1704067200 + number * 86400, user, "token", action, f"e{number}\x1b[0m", {"n": 1}
            )
            add_entry(store.session, entry)
    return str(path)


def test_audit_log_is_listed(logged: str) -> None:
    lines = command("audit", "--store", logged).stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "2024-01-03T00:00:00.000Z",
        "2024-01-02T00:00:00.000Z",
        "2024-01-01T00:00:00.000Z",
    ]
    assert lines[0].split("  ", 1)[1].split() == [
        "-", "(token)", "login.refused", "e2\u241b[0m", '{"n":1}'
    ]  # fmt: skip
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("words", "actions"),
    [
        (["--user", "ann"], ["execution.start"]),
        (["--action", "execution"], ["execution.cancel", "execution.start"]),
        (["--action", "login.refused"], ["login.refused"]),
        (["--target", "e1"], ["execution.cancel"]),
        (["--since", "2024-01-02T00:00:00Z"], ["login.refused", "execution.cancel"]),
        (["-n", "1"], ["login.refused"]),
        (["--since", "1h"], []),
    ],
)
def test_audit_log_is_filtered(logged: str, words: list[str], actions: list[str]) -> None:
    done = command("audit", "--store", logged, "--json", *words)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["action"] for each in found] == actions
    assert all(len(each["hash"]) == 64 for each in found)


def test_wrong_time_is_refused(logged: str) -> None:
    done = command("audit", "--store", logged, "--since", "soon")
    assert (done.exit_code, "is no time" in done.stderr) == (2, True)


# asl serve


def get(url: str, path: str, token: str | None = None) -> tuple[int, Any]:
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_serve_with_users_and_projects(tmp_path: Path) -> None:
    made = command("token", "ann", "--role", "operator", "--project", "one")
    (tmp_path / "users.toml").write_text(made.stdout)
    token = made.stderr.splitlines()[-1]
    words = ["--project", "one=one.db", "--project", "two=two.db", "--users", "users.toml"]
    with server(tmp_path, *words) as (url, lines):
        assert any("the projects one, two" in line for line in lines)
        assert get(url, "/projects/one/api/v1/me")[0] == 401
        status, text = get(url, "/projects/one/api/v1/me", token)
        assert (status, json.loads(text)["project"]) == (200, "one")
        assert get(url, "/projects/two/api/v1/me", token)[0] == 403
    assert sorted(each.name for each in tmp_path.glob("*.db")) == ["one.db", "two.db"]


def test_what_is_open_or_closed_to_other_machines_is_printed() -> None:
    assert [*_warnings("127.0.0.1", None, is_open=True)] == []
    closed, anyone = _warnings("0.0.0.0", None, is_open=False)
    assert "refuse all requests: add --users FILE" in closed
    assert "accepts any credentials: add --require-auth" in anyone
    assert [*_warnings("0.0.0.0", {"ID": "secret"}, is_open=True)] == []


def test_serve_for_others_without_users_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.asl.json").write_text(PASS)
    with server(tmp_path, "p.asl.json", "--host", "0.0.0.0") as (url, _):
        local = url.replace("0.0.0.0", "127.0.0.1")
        status, text = get(local, "/api/v1/executions")
        assert (status, "this service has no users" in text) == (401, True)


ASKING = """
StartAt: Ask
States:
  Ask:
    {Type: Approval, Prompt: Ship it?, Policy: {Approvers: {Users: [ann]}}, End: true}
"""


def test_serve_sends_links_that_decide(tmp_path: Path) -> None:
    made = command("token", "ann", "--role", "operator", "--role", "approver")
    (tmp_path / "users.toml").write_text(made.stdout + 'notify = ["jsonl:ann.jsonl"]\n')
    token = made.stderr.splitlines()[-1]
    words = ["--users", "users.toml", "--public-url", "https://flow.example"]
    with server(tmp_path, *words, "--notify", "jsonl:all.jsonl", "--store", "r.db") as (url, _):
        post(url, "/api/v1/executions", json.dumps({"text": ASKING, "name": "one"}), token)
        mine = waited(tmp_path / "ann.jsonl")["details"]
        general = waited(tmp_path / "all.jsonl")["details"]
        assert [each["option"] for each in mine["actions"]] == ["approve", "reject"]
        link = mine["actions"][1]["link"].removeprefix("https://flow.example")
        status, text = get(url, link)
        assert (status, "Ship it?" in text) == (200, True)
        assert get(url, general["link"].removeprefix("https://flow.example"))[0] == 303
        assert post(url, link, "option=reject")[0] == 200
        assert post(url, link, "option=approve")[0] == 410
    done = command("show", "one", "--store", str(tmp_path / "r.db"))
    assert '"approver": "ann"' in done.stdout or '"approver":"ann"' in done.stdout
    audit = command("audit", "--store", str(tmp_path / "r.db"), "--action", "request")
    assert "ann (link)" in audit.stdout


def post(url: str, path: str, body: str, token: str | None = None) -> tuple[int, str]:
    kind = "application/x-www-form-urlencoded" if token is None else "application/json"
    headers = {"Content-Type": kind}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    with closing(HTTPConnection(url.removeprefix("http://"))) as connection:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def waited(file: Path) -> Any:
    """Return the first line of a file, when it is there."""
    return json.loads(until(lambda: file.exists() and file.read_text()).splitlines()[0])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--oidc", "https://id.example"], "given together"),
        (["--proxy-user-header", "X-User"], "needs --proxy"),
        (["--proxy-roles-header", "X-Roles", "--proxy", "1.2.3.4"], "needs --proxy-user-header"),
        (["--public-url", "flow.example"], "begins with https://"),
        (["--project", "a=a.db", "doc.yaml"], "omit --store and DOC"),
        (["--project", "a=a.db", "--store", "b.db"], "omit --store and DOC"),
        (["--users", "none.toml", "--port", "0"], "cannot read the users file"),
        (["--proxy", "here", "--port", "0"], "a proxy is an address or a network"),
        (
            ["--oidc", "http://id.example", "--oidc-client-id", "x", "--port", "0"],
            "must begin with https://",
        ),
    ],
)
def test_options_that_do_not_fit(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("serve", *words)
    assert done.exit_code == 2
    assert says in done.stderr
