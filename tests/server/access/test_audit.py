"""The audit log: what is recorded, by whom and how, and that changes of it are found."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from starlette.testclient import TestClient

import asl
from asl.server.access.control import AccessSettings
from asl.server.access.users import Users
from asl.server.application import ServerApplication, projects_of
from asl.service.http import AwsEndpoint
from asl.stores.audit import AuditEntry, AuditFilter, add_entry, list_entries
from tests.server.access.people import ANN, ASK, BOB, PEOPLE, actions, asking, bearer, served

PASS = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:") as opened:
        yield opened


def test_actions_of_the_interface(store: asl.Store) -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No"}}}
    store.run(fails, name="failed")
    store.run(ASK, name="one")
    with served(store) as client:

        def post(path: str, token: str = ANN, **body: Any) -> Any:
            answer = client.post(f"/api/v1{path}", json=body, headers=bearer(token))
            assert answer.status_code < 500, answer.text
            return answer

        post("/documents", text=PASS, name="P")
        post("/executions", document="P", name="two")
        post("/executions/one/cancel", reason="wrong order")
        post("/executions/failed/redrive")
        post("/executions/failed/fork", at="F", name="copy")
        client.delete("/api/v1/executions/failed", headers=bearer(ANN))
        client.delete("/api/v1/documents/P", headers=bearer(ANN))
    assert [action for _, _, action in actions(store)] == [
        "document.publish",
        "execution.start",
        "execution.cancel",
        "execution.redrive",
        "execution.fork",
        "document.delete",
    ]
    assert {each[:2] for each in actions(store)} == {("ann", "token")}
    (cancelled,) = list_entries(store.session, wanted=AuditFilter(action="execution.cancel"))
    assert (cancelled.target, cancelled.details) == ("one", {"reason": "wrong order"})


def test_refused_answers_are_recorded(store: asl.Store) -> None:
    store.run(asking(Policy={"Approvers": {"Users": ["ann"]}}), name="one")
    with served(store) as client:
        (request,) = client.get("/api/v1/requests", headers=bearer(ANN)).json()["requests"]
        url = f"/api/v1/requests/{request['id']}/answer"
        body = {"approval": "approve"}
        assert client.post(url, json=body, headers=bearer(BOB)).status_code == 403
        assert client.post(url, json=body, headers=bearer(ANN)).status_code == 200
        body = {"approval": "reject"}
        assert client.post(url, json=body, headers=bearer(ANN)).status_code == 409
    assert actions(store) == [
        ("bob", "token", "request.answer.refused"),
        ("ann", "token", "request.answer"),
        ("ann", "token", "request.answer.refused"),
    ]
    last = list_entries(store.session)[0]
    assert last.details == {
        "approval": "reject",
        "reason": "the request was answered already: 'approve' by 'ann'",
    }
    assert last.target == request["requestId"]


# AWS


def amazon(store: asl.Store, **settings: Any) -> TestClient:
    access = AccessSettings(users=Users(PEOPLE), local=True, **settings)
    application = ServerApplication(
        projects_of(store, {}, "111111111111", "us-east-1"),
        access,
        concurrency=0,
        aws=lambda project: AwsEndpoint(project.amazon),
    )
    return TestClient(application, base_url="http://localhost:8083", client=("127.0.0.1", 5))


def call(client: TestClient, operation: str, *, headers: Any = None, **body: Any) -> Any:
    named = {
        "X-Amz-Target": f"AWSStepFunctions.{operation}",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDX/20300101/us-east-1/states/aws4_request",
    }
    return client.post("/", content=json.dumps(body), headers={**named, **(headers or {})})


def test_operations_of_aws_are_recorded(store: asl.Store) -> None:
    client = amazon(store)
    role = "arn:aws:iam::111111111111:role/r"
    made = call(client, "CreateStateMachine", name="P", definition=PASS, roleArn=role).json()
    arn = made["stateMachineArn"]
    started = call(client, "StartExecution", stateMachineArn=arn, input='{"secret": 1}').json()
    call(client, "DescribeStateMachine", stateMachineArn=arn)
    call(client, "StartExecution", stateMachineArn=arn + "x")
    call(client, "StopExecution", executionArn=started["executionArn"])
    found = [*reversed(list_entries(store.session))]
    assert [each[1:5] for each in found] == [
        ("AKIDX", "aws", "aws.CreateStateMachine", arn),
        ("AKIDX", "aws", "aws.StartExecution", started["executionArn"]),
        ("AKIDX", "aws", "aws.StopExecution", started["executionArn"]),
    ]
    assert [*store.faults()] == []


def test_unsigned_operations_are_recorded(store: asl.Store) -> None:
    call(amazon(store), "CreateActivity", headers={"Authorization": ""}, name="A")
    ((user, method, action),) = actions(store)
    assert (user, method, action) == ("anonymous", "aws", "aws.CreateActivity")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example:8083", "Host": "evil.example:8083"},
        {"Sec-Fetch-Site": "same-origin", "Host": "evil.example:8083"},
    ],
)
def test_pages_of_other_sites_cannot_call_aws(store: asl.Store, headers: dict[str, str]) -> None:
    """Not even if their host was made to point to this machine."""
    answer = call(amazon(store), "CreateActivity", headers=headers, name="A")
    assert (answer.status_code, answer.json()["__type"]) == (403, "AccessDeniedException")
    assert actions(store) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "stepfunctions.us-east-1.amazonaws.com"},
        {"Origin": "http://localhost:8083"},
        {"Origin": "https://flow.example", "Host": "flow.example"},
    ],
)
def test_clients_and_own_pages_can_call_aws(store: asl.Store, headers: dict[str, str]) -> None:
    client = amazon(store, public_url="https://flow.example/")
    assert call(client, "CreateActivity", headers=headers, name="A").status_code == 200


# The chain


def recorded(path: Path) -> None:
    with asl.open_store(path) as store:
        for number in range(4):
            entry = AuditEntry(number, "ann", "token", "stop", f"e{number}", {"n": number})
            add_entry(store.session, entry)


def faults(path: Path) -> list[str]:
    with asl.open_store(path) as store:
        return [*store.faults()]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ("UPDATE audit SET user = 'bob' WHERE id = 2", "the entry 2 does not follow"),
        ("UPDATE audit SET time = time + 1 WHERE id = 2", "the entry 2 does not follow"),
        ("DELETE FROM audit WHERE id = 2", "the entry 3 does not follow"),
        ("DELETE FROM audit WHERE id = 1", "the entry 2 does not follow"),
        ("DELETE FROM audit WHERE id = 4", "it has 3 entries and should have 4"),
        ("DELETE FROM audit", "it has 0 entries and should have 4"),
        (
            "INSERT INTO audit (time, user, method, action, target, hash, body) "
            "SELECT time, user, method, action, target, hash, body FROM audit WHERE id = 4",
            "the entry 5 does not follow",
        ),
    ],
)
def test_changes_of_the_log_are_found(tmp_path: Path, edit: str, says: str) -> None:
    """Also those that keep the checksum of each row right."""
    path = tmp_path / "runs.db"
    recorded(path)
    assert faults(path) == []
    from asl.stores.sqlite.connection import guard

    with closing(sqlite3.connect(path)) as file, file:
        file.create_function("guard", -1, guard, deterministic=True)
        file.execute(edit)
    found = faults(path)
    assert found
    assert found[0].startswith(f"the audit log: {says}")


def test_entries_of_several_threads_are_one_chain(tmp_path: Path) -> None:
    with asl.open_store(tmp_path / "runs.db") as store:

        def record(name: str) -> None:
            for number in range(20):
                entry = AuditEntry(0.1 * number, name, "token", "stop", name, {})
                add_entry(store.session, entry)
                store.session.flush()

        threads = [Thread(target=record, args=(name,)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list_entries(store.session, limit=100)) == 60
        assert [*store.faults()] == []


def test_log_is_listed_by_page_and_filter(store: asl.Store) -> None:
    for number in range(1200):
        user = "ann" if number % 3 else "bob"
        action = "execution.stop" if number % 2 else "executions"
        add_entry(store.session, AuditEntry(number, user, "token", action, f"e{number}", {}))
    first = list_entries(store.session, limit=10)
    assert [each.time for each in first] == [1199 - each for each in range(10)]
    second = list_entries(store.session, limit=10, before=first[-1].id)
    assert second[0].time == 1189
    wanted = AuditFilter("bob", "execution", "e1", since=900)
    found = list_entries(store.session, limit=1000, wanted=wanted)
    assert found
    assert all(
        (each.user, each.action, each.time >= 900) == ("bob", "execution.stop", True)
        for each in found
    )
    assert len(list_entries(store.session, limit=2000)) == 1200


def test_log_is_filtered_by_the_interface(store: asl.Store) -> None:
    for number, user in enumerate(("ann", "bob", "ann")):
        add_entry(store.session, AuditEntry(number * 100, user, "token", "execution.stop", "e", {}))
    store.session.flush()
    with served(store) as client:

        def found(**query: Any) -> list[int]:
            answer = client.get("/api/v1/audit", params=query, headers=bearer(ANN))
            assert all(len(each["hash"]) == 64 for each in answer.json()["entries"])
            return [each["id"] for each in answer.json()["entries"]]

        assert found() == [3, 2, 1]
        assert found(user="ann") == [3, 1]
        assert found(action="execution", since="1970-01-01T00:01:00Z") == [3, 2]
        assert found(action="login") == []
        assert client.get("/api/v1/audit", headers=bearer(BOB)).status_code == 403


def test_wrong_credentials_are_recorded(store: asl.Store) -> None:
    with served(store) as client:
        for index in range(12):
            client.get("/api/v1/me", headers=bearer(f"guess-{index}"))
    found = list_entries(store.session)
    assert len(found) == 10
    assert {each.action for each in found} == {"credentials.refused"}
    assert found[0].details == {"address": "192.0.2.7", "reason": "the token is unknown"}
