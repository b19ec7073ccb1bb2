"""The registry of a queue: sizes, conflicts, and runs of its workflow."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

import asl
from asl.service.service import StatesService
from asl.stores.audit import START, AuditEntry, AuditFilter, add_entry, list_entries
from asl.stores.resources import Resource, find_resource, put_resource
from asl.temporal.payloads import pack, unpack
from asl.temporal.registry import audit_workflow
from asl.temporal.registry import workflow as registry_workflow
from asl.temporal.registry.audit_workflow import AuditStart
from asl.temporal.registry.workflow import CommitMessage, RegistryWorkflow, ResourceRow
from tests.temporal.test_serve import ROLE, WAIT, request, until

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An eviction of a workflow drops its coroutines."""


def row(arn: str, text: str | None = "{}") -> ResourceRow:
    return (arn, "kind", "owner", 1, text)


def message(base: int, *rows: ResourceRow, **documents: str) -> CommitMessage:
    return CommitMessage(base=base, resources=pack([*rows]), documents=pack(documents))


def test_a_change_of_what_others_have_changed_is_refused() -> None:
    registry = RegistryWorkflow({})
    assert registry.commit(message(0, row("a"))) == 1
    registry.check(message(1, row("a")))
    registry.check(message(0, row("b")))
    with pytest.raises(ApplicationError, match="a"):
        registry.check(message(0, row("a")))


def test_changes_since_a_version() -> None:
    registry = RegistryWorkflow({})
    registry.commit(message(0, row("a", '{"document": "x"}'), row("b"), x="{}"))
    registry.commit(message(1, row("b", None)))
    found = unpack(registry.changes(1))
    assert (found["version"], found["whole"], found["documents"]) == (2, False, {})
    assert found["resources"] == [[*row("b", None)]]
    assert unpack(registry.changes(-1))["whole"]


def test_a_full_registry_refuses_all_but_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = RegistryWorkflow({})
    registry.commit(message(0, row("a", json.dumps({"text": "b" * 200})), row("b")))
    monkeypatch.setattr(registry_workflow, "MAX_SIZE", 100)
    with pytest.raises(ApplicationError, match="2 resources"):
        registry.check(message(1, row("c")))
    registry.check(message(1, row("a", None)))


def entry(number: int) -> AuditEntry:
    return AuditEntry(float(number), "ann", "token", "execution.start", "it", {"n": number})


def test_entries_that_come_while_the_log_works_are_read(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server adds them to the history only after the work."""
    begun, ends, read = Event(), Event(), audit_workflow.read_entry

    def slow(text: str, start: AuditStart) -> AuditEntry:
        begun.set()
        ends.wait(5)
        return read(text, start)

    monkeypatch.setattr(audit_workflow, "read_entry", slow)
    with asl.open_store(address) as store:
        find_resource(store.session, "none")  # this process runs the workflow
        for number in range(2):
            add_entry(store.session, entry(number))
            store.session.flush()
            assert begun.wait(5)
        with ThreadPoolExecutor() as pool:
            found = pool.submit(lambda: list_entries(store.session))
            wait([found], timeout=0.2)
            ends.set()
            assert [each.id for each in found.result()] == [2, 1]


def test_servers_share_the_audit_log(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries keep numbers and hashes in further runs of its workflow."""
    monkeypatch.setattr(audit_workflow, "MAX_EVENTS", 12)
    with asl.open_store(address) as one, asl.open_store(address) as two:
        assert list_entries(one.session) == []
        find_resource(two.session, "none")  # this process runs the workflow
        for number in range(8):
            store = (one, two)[number % 2]
            add_entry(store.session, entry(number))
            store.session.flush()
        found = list_entries(two.session)
        assert [(each.id, each.details["n"]) for each in found] == [
            *zip(range(8, 0, -1), range(7, -1, -1), strict=True)
        ]
        last = START
        for each in found[::-1]:
            assert each.hash == each.hash_after(last)
            last = each.hash
        assert len(list_entries(one.session, limit=2, before=3, wanted=AuditFilter("ann"))) == 2
        name = f"{two.address.queue}-audit"  # type: ignore[attr-defined]
        until(lambda: len(two.client.list_runs(name)) > 1)  # type: ignore[attr-defined]


def test_it_continues_in_new_runs(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """State machines, tags and large values outlast them; what was deleted stays deleted."""
    monkeypatch.setattr(registry_workflow, "MAX_EVENTS", 20)
    large: dict[str, Any] = {"text": "x" * 100_000}
    with asl.open_store(address) as one, asl.open_store(address) as two:
        first, second = StatesService(one, "aws"), StatesService(two, "aws")
        definition = json.dumps(WAIT)
        made = request(first, "CreateStateMachine", name="M", definition=definition, roleArn=ROLE)
        gone = request(first, "CreateStateMachine", name="G", definition=definition, roleArn=ROLE)
        put_resource(one.session, Resource("large", "kind", "owner", 1, large))
        one.session.flush()
        request(second, "DeleteStateMachine", stateMachineArn=gone["stateMachineArn"])
        for number in range(8):
            service = (first, second)[number % 2]
            tags = [{"key": f"k{number}", "value": "v"}]
            request(service, "TagResource", resourceArn=made["stateMachineArn"], tags=tags)
        listed = request(first, "ListTagsForResource", resourceArn=made["stateMachineArn"])
        assert len(listed["tags"]) == 8
        found = find_resource(two.session, "large")
        assert found is not None
        assert found.body == large
        (left,) = request(second, "ListStateMachines")["stateMachines"]
        assert left["name"] == "M"
        runs = one.client.list_runs(one.client.address.queue + "-registry")  # type: ignore[attr-defined]
        assert len(runs) > 1
