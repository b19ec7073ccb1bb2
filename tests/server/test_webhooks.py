"""Webhooks: signed requests that start executions, each delivery once."""

import hmac
import json
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

import asl
from asl.server.access.principal import Unauthorized
from asl.server.webhooks.signatures import check_webhook_signature
from tests.server.service import client, described, publish, wait_for

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
SECRET = "It's a Secret to Everybody"
STANDARD = "whsec_plJ3nmyCDGBKInavdOK15jsl"
GITHUB = {"document": "Push", "scheme": "github", "secrets": ["${env:HOOK_SECRET}"]}
JSON_TYPE = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("STANDARD_SECRET", STANDARD)


def register(api: TestClient, **change: Any) -> None:
    publish(api, PASS, "Push")
    answer = api.put("/api/v1/webhooks/push", json={**GITHUB, **change})
    assert answer.status_code == 200, answer.text


def github(body: bytes, delivery: str = "d1", key: str = SECRET) -> dict[str, str]:
    digest = hmac.digest(key.encode(), body, "sha256").hex()
    return {**JSON_TYPE, "x-hub-signature-256": f"sha256={digest}", "x-github-delivery": delivery}


def standard(body: bytes, at: float, delivery: str = "msg_1") -> dict[str, str]:
    signed = f"{delivery}.{int(at)}.".encode() + body
    digest = hmac.digest(b64decode(STANDARD[6:]), signed, "sha256")
    signature = f"v1a,other v1,{b64encode(digest).decode()}"
    return {
        **JSON_TYPE,
        "webhook-id": delivery,
        "webhook-timestamp": str(int(at)),
        "webhook-signature": signature,
    }


def test_published_examples_of_signatures() -> None:
    """Those of GitHub's documentation and of Standard Webhooks."""
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-hub-signature-256": f"sha256={digest}"}
    check_webhook_signature("github", ["old", SECRET], "", headers, b"Hello, World!", 0)
    with pytest.raises(Unauthorized):
        check_webhook_signature("github", ["old"], "", headers, b"Hello, World!", 0)
    body = b'{"event_type":"ping","data":{"success":true}}'
    message = {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    }
    check_webhook_signature("standard", [STANDARD], "", message, body, 1731705121 + 299)
    for late in (1731705121 + 301, 1731705121 - 301):
        with pytest.raises(Unauthorized, match="300 seconds"):
            check_webhook_signature("standard", [STANDARD], "", message, body, late)


def test_a_delivery_starts_an_execution_once() -> None:
    """Without credentials; the body is the input, and the log names the webhook."""
    with client(local=False, authenticators=[_Everyone()]) as api:
        register(api)
        body = b'{"ref": "main"}'
        first = api.post("/hooks/push", content=body, headers=github(body))
        assert first.status_code == 202, first.text
        again = api.post("/hooks/push", content=body, headers=github(body))
        assert (again.status_code, again.json()) == (200, first.json())
        found = described(api, first.json()["execution"])
        assert (found["input"], found["requestor"]) == ({"ref": "main"}, "webhook:push")
        other = api.post("/hooks/push", content=b"[]", headers=github(b"[]"))
        assert other.status_code == 409
        assert api.post("/hooks/push", content=b"[]", headers=github(b"[]", "d2")).is_success
        assert len(api.get("/api/v1/executions").json()["executions"]) == 2
        entry = api.get("/api/v1/audit").json()["entries"][-3]
        assert (entry["user"], entry["method"], entry["action"]) == (
            "webhook:push",
            "webhook",
            "execution.start",
        )


class _Everyone:
    """Lets everybody do everything, so that a test sees what needs no credentials."""

    def identify(self, request: Any) -> Any:
        from asl.server.access.principal import PERMISSIONS, Principal

        assert not request.url.path.startswith("/hooks")
        return Principal("ann", frozenset(PERMISSIONS), "test")


def test_standard_webhooks_and_a_plain_secret() -> None:
    """Each with the id of its deliveries."""
    with client() as api:
        register(api, scheme="standard", secrets=["${env:NONE}", "${env:STANDARD_SECRET}"])
        now = time.time()
        assert api.post("/hooks/push", content=b"1", headers=standard(b"1", now)).is_success
        late = api.post("/hooks/push", content=b"1", headers=standard(b"1", now - 400))
        assert late.status_code == 401
        register(api, scheme="header", header="X-Token")
        headers = {**JSON_TYPE, "X-Token": SECRET, "Idempotency-Key": "k"}
        one = api.post("/hooks/push", content=b"1", headers=headers)
        assert one.json() == api.post("/hooks/push", content=b"1", headers=headers).json()
        wrong = api.post("/hooks/push", content=b"1", headers={**headers, "X-Token": "x"})
        assert wrong.status_code == 401


def test_other_bodies_and_headers(tmp_path: Path) -> None:
    """Forms, texts and chosen headers become the input."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    with client() as api:
        register(
            api,
            secrets=[f"${{file:{tmp_path / 'secret'}}}"],
            headers=["X-GitHub-Event"],
            contentTypes=["application/x-www-form-urlencoded", "text/plain", "application/json"],
        )
        for number, (kind, body, data) in enumerate(
            [
                ("application/x-www-form-urlencoded", b"a=1&b=", {"a": "1", "b": ""}),
                ("text/plain; charset=utf-8", "ü".encode(), "ü"),
                ("application/vnd.x+json", b"{}", {}),
            ]
        ):
            headers = {**github(body, str(number)), "content-type": kind, "x-github-event": "push"}
            done = api.post("/hooks/push", content=body, headers=headers)
            found = described(api, done.json()["execution"])["input"]
            assert found == {"body": data, "headers": {"X-GitHub-Event": "push"}}


@pytest.mark.parametrize(
    ("body", "change", "status"),
    [
        (b"{}", {"x-hub-signature-256": ""}, 401),
        (b"{}", {"x-hub-signature-256": "sha256=" + "0" * 64}, 401),
        (b"{}", {"x-hub-signature-256": b"sha256=\xff"}, 401),
        (b"{}", {"content-type": "text/html"}, 415),
        (b"{}", {"x-github-delivery": "x" * 300}, 400),
        (b"{", {}, 400),
        (b"", {}, 400),
        (b"\xff", {}, 400),
        (b"1" * 300_000, {}, 413),
    ],
    ids=range(9),
)
def test_refused_requests(body: bytes, change: dict[str, Any], status: int) -> None:
    """They start nothing."""
    with client() as api:
        register(api)
        answer = api.post("/hooks/push", content=body, headers={**github(body), **change})
        assert answer.status_code == status, answer.text
        assert SECRET not in answer.text
        assert api.get("/api/v1/executions").json()["executions"] == []


def test_missing_webhooks_secrets_and_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused; nobody learns more than that."""
    with client() as api:
        assert api.post("/hooks/none", content=b"{}", headers=github(b"{}")).status_code == 404
        register(api)
        monkeypatch.delenv("HOOK_SECRET")
        lacking = api.post("/hooks/push", content=b"{}", headers=github(b"{}"))
        assert (lacking.status_code, "HOOK_SECRET" in lacking.text) == (503, False)
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        assert api.get("/hooks/push").status_code == 405
        api.delete("/api/v1/documents/Push")
        assert api.post("/hooks/push", content=b"{}", headers=github(b"{}")).status_code == 404
        assert api.delete("/api/v1/webhooks/push").status_code == 204
        assert api.get("/api/v1/webhooks").json() == {"webhooks": []}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"document": "None"}, "no document"),
        ({"scheme": "none"}, "scheme"),
        ({"secrets": []}, "secrets"),
        ({"secrets": ["plain"]}, "is a reference"),
        ({"secrets": ["${env:}"]}, "is a reference"),
        ({"secrets": ["x${env:A}"]}, "is a reference"),
        ({"secrets": ["${file:relative}"]}, "is a reference"),
        ({"header": "a b"}, "headers"),
        ({"scheme": "header", "header": "X-A", "headers": ["x-a"]}, "holds the secret"),
        ({"contentTypes": ["text/html"]}, "types of bodies"),
        ({"maxBytes": 2**30}, "maxBytes"),
    ],
)
def test_wrong_webhooks(change: dict[str, Any], part: str) -> None:
    """Each is refused, and nothing is stored."""
    with client() as api:
        publish(api, PASS, "Push")
        refused = api.put("/api/v1/webhooks/push", json={**GITHUB, **change})
        assert refused.status_code in (400, 404, 422)
        assert part in refused.text
        assert api.put("/api/v1/webhooks/..%2Fx", json=GITHUB).status_code in (400, 404)
        assert api.get("/api/v1/webhooks").json() == {"webhooks": []}


def test_the_execution_runs_with_the_bindings_of_the_service() -> None:
    """As every other one."""
    text = json.dumps(
        {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Writer", "End": True}}}
    )
    with client(asl.Store("memory:", agents={"Writer": lambda data: data["n"] + 1})) as api:
        publish(api, text, "Push")
        api.put("/api/v1/webhooks/push", json=GITHUB)
        body = b'{"n": 1}'
        key = api.post("/hooks/push", content=body, headers=github(body)).json()["execution"]
        assert wait_for(api, key, "SUCCEEDED")["output"] == 2
