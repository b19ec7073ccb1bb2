"""The REST interface: documents, executions, requests, events."""

import json
from typing import Any

import pytest

pytest.importorskip("fastapi")

import asl
from tests.server.service import SHIP, client, described, publish, start, until, wait_for

SHELL = {"StartAt": "Go", "States": {"Go": {"Type": "Pass", "End": True}}}
FLAKY = json.dumps({
    "StartAt": "Keep",
    "States": {
        "Keep": {"Type": "Checkpoint", "Name": "before", "Next": "Call"},
        "Call": {"Type": "Task", "Agent": "Flaky", "Next": "End"},
        "End": {"Type": "Pass", "End": True},
    },
})  # fmt: skip


def test_a_workflow_from_publication_to_result() -> None:
    """A document is published and started; a person answers; the events tell all of it."""
    with client() as api:
        version = publish(api)
        assert (version["version"], version["profile"], version["dialect"]) == (1, "default", "asl")
        key = start(api, input={"order": 7}, name="seven")
        waiting = wait_for(api, key, "PAUSED")
        assert waiting["input"] == {"order": 7}
        (request,) = waiting["pending"]
        assert request["options"] == ["ship", "hold"]
        answer = {"approval": "ship", "comment": "fine"}
        done = api.post(f"/api/v1/requests/{request['id']}/answer", json=answer).json()
        assert done["record"]["comment"] == "fine"
        ended = wait_for(api, key, "SUCCEEDED")
        assert ended["output"] == {"text": "done"}
        assert (ended["version"], ended["requestor"]) == ("1", done["record"]["approver"])
        events = api.get(f"/api/v1/executions/{key}/events").json()["events"]
        assert [events[0]["type"], events[-1]["type"]] == ["ExecutionStarted", "ExecutionSucceeded"]
        actions = [each["action"] for each in api.get("/api/v1/audit").json()["entries"]]
        assert actions == ["request.answer", "execution.start", "document.publish"]


def test_publishing_again() -> None:
    """The same content has the same version; another content the next one; both can be started."""
    with client() as api:
        assert publish(api)["version"] == publish(api)["version"] == 1
        other = publish(api, SHIP.replace("Ship it?", "Really?"))
        assert other["version"] == 2
        detail = api.get("/api/v1/documents/Ship").json()
        assert [each["version"] for each in detail["versions"]] == [2, 1]
        assert "Really?" in detail["text"]
        assert "Ship it?" in api.get("/api/v1/documents/Ship:1").json()["text"]
        by_hash = api.get(f"/api/v1/documents/{other['hash'][:12]}").json()
        assert by_hash["version"] == 2
        old = described(api, start(api, "Ship:1"))
        assert old["version"] == "1"
        assert api.delete("/api/v1/documents/Ship").status_code == 204
        assert api.get("/api/v1/documents/Ship").status_code == 404
        assert api.get("/api/v1/documents").json() == {"documents": []}


def test_documents_of_other_dialects() -> None:
    """A YAML text of another dialect is published as it is, and runs."""
    flow = (
        "assistants: [{id: Writer, system_prompt: You write.}]\n"
        "states: [{id: w, assistant_id: Writer, task: Hi, next: {state_id: end}}]\n"
    )
    with client() as api:
        summary = publish(api, flow, "Flow")
        assert summary["dialect"] == "codemie"
        assert api.get("/api/v1/documents/Flow").json()["text"] == flow
        wait_for(api, start(api, "Flow"), "SUCCEEDED")


def test_names_start_one_execution() -> None:
    """The same name, document and input give the same execution; another input is refused."""
    with client() as api:
        publish(api)
        key = start(api, name="one", input={"a": 1})
        assert start(api, name="one", input={"a": 1}) == key
        body = {"document": "Ship", "name": "one", "input": {"a": 2}}
        refused = api.post("/api/v1/executions", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "ExecutionExists")


def test_an_execution_of_a_text() -> None:
    """A text needs no publication; its name may be any printable text."""
    with client() as api:
        body = {"text": json.dumps(SHELL), "name": "a/b c", "input": [1]}
        key = api.post("/api/v1/executions", json=body).json()["id"]
        assert key.startswith("~")
        assert wait_for(api, key, "SUCCEEDED")["output"] == [1]


def test_lists_filter_and_page() -> None:
    """By status, workflow, text and time; pages follow each other."""
    with client() as api:
        publish(api)
        publish(api, json.dumps(SHELL), "Shell")
        keys = [start(api, "Shell", name=f"n{number}") for number in range(5)]
        waiting = start(api, name="asks")
        wait_for(api, waiting, "PAUSED")
        for key in keys:
            wait_for(api, key, "SUCCEEDED")

        def listed(**query: Any) -> list[str]:
            found = api.get("/api/v1/executions", params=query).json()["executions"]
            return [each["name"].rpartition(":")[2] for each in found]

        assert listed() == ["asks", "n4", "n3", "n2", "n1", "n0"]
        assert listed(status="PAUSED") == ["asks"]
        assert listed(workflow="Shell", limit=2) == ["n4", "n3"]
        assert listed(text="SHELL:N1") == ["n1"]
        assert listed(since="2999-01-01T00:00:00Z") == []
        first = api.get("/api/v1/executions", params={"limit": 4}).json()
        assert listed(before=first["next"]) == ["n1", "n0"]
        assert api.get("/api/v1/executions", params={"status": "HAPPY"}).status_code == 422


def test_a_failed_execution_goes_on() -> None:
    """Redrive, fork, resume from a checkpoint, cancel and delete."""
    fails = [True]

    def flaky(data: Any) -> Any:
        if fails[0]:
            raise RuntimeError("no luck")
        return {"ok": True}

    with client(asl.Store("memory:", agents={"Flaky": flaky})) as api:
        publish(api, FLAKY, "Flaky")
        key = start(api, "Flaky")
        failed = wait_for(api, key, "FAILED")
        assert "no luck" in failed["cause"]
        assert [each["name"] for each in failed["checkpoints"]] == ["before"]
        fails[0] = False
        assert api.post(f"/api/v1/executions/{key}/redrive", json={"reason": "retry"}).is_success
        wait_for(api, key, "SUCCEEDED")
        copy = api.post(f"/api/v1/executions/{key}/fork", json={"at": "Call", "name": "copy"})
        assert copy.status_code == 201, copy.text
        wait_for(api, copy.json()["id"], "SUCCEEDED")
        again = {"fromCheckpoint": "before"}
        assert api.post(f"/api/v1/executions/{key}/redrive").status_code == 409
        assert api.post(f"/api/v1/executions/{key}/resume", json=again).status_code in (202, 400)
        until(lambda: described(api, key)["status"] == "SUCCEEDED")
        assert api.delete(f"/api/v1/executions/{key}").status_code == 204
        assert api.get(f"/api/v1/executions/{key}").status_code == 404


def test_cancelling() -> None:
    """A waiting execution is aborted with the reason; an ended one cannot be."""
    with client() as api:
        publish(api)
        key = start(api)
        wait_for(api, key, "PAUSED")
        assert api.delete(f"/api/v1/executions/{key}").status_code == 400
        assert api.post(f"/api/v1/executions/{key}/cancel", json={"reason": "late"}).is_success
        assert wait_for(api, key, "ABORTED")["cause"] == "late"
        assert api.post(f"/api/v1/executions/{key}/cancel").status_code == 400


def test_answers_of_a_batch_of_requests() -> None:
    """Each answer is accepted or refused by itself."""
    with client() as api:
        publish(api)
        keys = [start(api) for _ in range(3)]
        for key in keys:
            wait_for(api, key, "PAUSED")
        ids = [each["id"] for each in api.get("/api/v1/requests").json()["requests"]]
        page = api.get("/api/v1/requests", params={"limit": 2}).json()
        assert [each["id"] for each in page["requests"]] == ids[:2]
        rest = api.get("/api/v1/requests", params={"after": page["next"]}).json()
        assert ([each["id"] for each in rest["requests"]], rest["next"]) == (ids[2:], None)
        body = {"ids": [*ids, "bm9uZQ"], "answer": {"approval": "ship"}}
        done = api.post("/api/v1/answers", json=body).json()
        assert [each["problem"] is None for each in done] == [True, True, True, False]
        for key in keys:
            wait_for(api, key, "SUCCEEDED")


def test_the_user_of_an_answer_is_the_authenticated_one() -> None:
    """No field names another approver, role or time."""
    with client() as api:
        publish(api)
        key = start(api)
        (request,) = wait_for(api, key, "PAUSED")["pending"]
        path = f"/api/v1/requests/{request['id']}/answer"
        for name in ("approver", "roles", "timestamp", "system_user"):
            refused = api.post(path, json={"approval": "ship", "more": {name: "eve"}})
            assert refused.status_code == 400, name
        assert api.post(path, json={"approval": "sink"}).status_code == 409
        assert api.post(path, json={"approval": "ship", "digest": "0" * 64}).status_code == 409
        assert described(api, key)["status"] == "PAUSED"


def test_task_tokens() -> None:
    """A task with a token is listed and answered."""
    task = {
        "StartAt": "Call",
        "States": {
            "Call": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                "Parameters": {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}},
                "End": True,
            }
        },
    }
    resources = {"arn:aws:states:::sqs:sendMessage": lambda message: {}}
    store = asl.Store("memory:", resources=resources)
    with client(store) as api:
        publish(api, json.dumps(task), "Token")
        key = start(api, "Token")
        (token,) = until(lambda: api.get("/api/v1/tokens").json()["tokens"])
        answer = {"token": token["taskToken"], "output": {"n": 1}}
        both = {**answer, "error": "No"}
        assert api.post("/api/v1/tokens/answer", json=both).status_code == 400
        beat = {"token": token["taskToken"], "heartbeat": True}
        assert api.post("/api/v1/tokens/answer", json=beat).status_code == 204
        assert api.post("/api/v1/tokens/answer", json=answer).status_code == 204
        assert wait_for(api, key, "SUCCEEDED")["output"] == {"n": 1}
        assert api.post("/api/v1/tokens/answer", json=answer).status_code == 409


def test_tools_for_documents() -> None:
    """Check, convert, draw and plan, of a text or of a published document."""
    with client() as api:
        publish(api)
        broken = SHIP.replace('"Next": "Write"', '"Next": "Wrote"')
        report = api.post("/api/v1/check", json={"text": broken, "file": "ship.json"}).json()
        first = report["diagnostics"][0]
        assert (report["ok"], first["code"], first["line"]) == (False, "V-ST-03", 1)
        assert "did you mean" in str(report["diagnostics"]) or first["hint"]
        given = {"document": "Ship"}
        converted = api.post("/api/v1/convert", json={**given, "to": "codemie"}).json()
        assert "assistants:" in converted["text"]
        drawing = api.post("/api/v1/graph", json=given).json()
        assert drawing["text"].startswith("<svg")
        plan = api.post("/api/v1/plan", json=given).json()["plan"]
        assert plan["people"] == ["Ask"]
        assert api.post("/api/v1/check", json={}).status_code == 400
        assert api.post("/api/v1/convert", json={**given, "to": "cobol"}).status_code == 400


def test_a_document_cannot_read_files() -> None:
    """An import of a file of the server is refused."""
    text = json.dumps({**SHELL, "Imports": {"x": "/etc/passwd"}})
    with client() as api:
        for path in ("check", "plan", "documents"):
            body = {"text": text} if path != "documents" else {"text": text, "name": "X"}
            answer = api.post(f"/api/v1/{path}", json=body)
            assert "root:" not in answer.text
            assert answer.status_code == 422 or not answer.json()["ok"]


def test_costs_by_workflow_and_model() -> None:
    """Of one execution and of all; with the shared budgets."""
    agents = {"Writer": lambda data: {"text": "x", "_cost": 0.25, "_tokens": 7}}
    task = {"Type": "Task", "Agent": "Writer", "End": True}
    text = json.dumps({"StartAt": "Write", "States": {"Write": task}})
    store = asl.Store("memory:", agents=agents, pools={"team": "$10.00"})
    with client(store, pools={"team": "$10.00"}) as api:
        publish(api, text, "Write")
        for _ in range(2):
            key = start(api, "Write")
            wait_for(api, key, "SUCCEEDED")
        report = api.get(f"/api/v1/executions/{key}/costs").json()["report"]
        assert (report["cost"], report["tokens"]) == (0.25, 7)
        overview = api.get("/api/v1/costs?days=1").json()
        assert overview["total"] == {"name": "", "executions": 2, "cost": 0.5, "tokens": 14}
        assert [each["name"] for each in overview["workflows"]] == ["Write"]
        assert overview["complete"]
        (pool,) = overview["budgets"]
        assert (pool["name"], pool["limit"]) == ("Pool team", 10.0)


REFUSED = {
    "no JSON": ("POST", "/executions", {"content": b"{"}, 422),
    "a list": ("POST", "/executions", {"json": [1]}, 422),
    "an unknown member": ("POST", "/executions", {"json": {"doc": "Ship"}}, 422),
    "neither text nor document": ("POST", "/executions", {"json": {}}, 400),
    "an unknown document": ("POST", "/executions", {"json": {"document": "No"}}, 404),
    "an invalid text": ("POST", "/executions", {"json": {"text": "{}"}}, 422),
    "deep nesting": ("POST", "/executions", {"content": b"[" * 100_000}, 422),
    "ten megabytes": ("POST", "/executions", {"content": b" " * 11_000_000}, 413),
    "an unknown execution": ("GET", "/executions/none", {}, 404),
    "a number beyond all": ("GET", "/executions/~99999999999999999999999", {}, 404),
    "a key of a path": ("GET", "/executions/..%2f..%2fetc", {}, 404),
    "a wrong request key": ("GET", "/requests/!!!", {}, 404),
    "an unknown request": ("GET", "/requests/bm9uZQ", {}, 404),
    "a wrong limit": ("GET", "/executions?limit=0", {}, 422),
    "a wrong position": ("GET", "/executions?before=x", {}, 422),
    "a wrong event id": ("GET", "/executions/none/stream?after=-1", {}, 422),
    "an unknown path": ("GET", "/coffee", {}, 404),
    "a wrong method": ("PUT", "/executions", {}, 405),
    "a wrong name": ("POST", "/documents", {"json": {"text": SHIP, "name": "a b/c"}}, 400),
    "a long name": ("POST", "/documents", {"json": {"text": SHIP, "name": "n" * 81}}, 400),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    """Each has a status, a code and a sentence."""
    method, path, options, status = REFUSED[case]
    with client() as api:
        answer = api.request(method, f"/api/v1{path}", **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        body = answer.json()
        assert body["status"] == status
        assert body["code"]
        assert body["detail"]
        assert len(answer.content) < 5000


def test_cross_site_requests() -> None:
    """Those of this machine's user count only if no page of another site has sent them."""
    with client() as api:
        publish(api)
        body = {"document": "Ship"}
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            refused = api.post("/api/v1/executions", json=body, headers=headers)
            assert refused.status_code == 403, headers
        plain = api.post(
            "/api/v1/executions",
            content=json.dumps(body),
            headers={"Content-Type": "text/plain"},
        )
        assert plain.status_code in (403, 422)
        own = {"Origin": "http://localhost:8083", "Sec-Fetch-Site": "same-origin"}
        assert api.post("/api/v1/executions", json=body, headers=own).is_success


def test_other_machines_need_credentials() -> None:
    """A name of another host, a proxy, and a service without local users."""
    with client() as api:
        for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.1"}):
            assert api.get("/api/v1/me", headers=headers).status_code == 401
    with client(local=False) as api:
        assert api.get("/api/v1/me").status_code == 401
