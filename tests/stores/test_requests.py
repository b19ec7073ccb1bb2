"""People decide on executions in a store: singly, in any order, from any process."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.executions import Store

ASK = {"Type": "Approval", "Prompt": "{{ $ }}?", "ResultPath": "$", "OutputPath": "$.approval"}
ONE = {"StartAt": "Ask", "States": {"Ask": {**ASK, "End": True}}}
EACH = {
    "StartAt": "Each",
    "States": {"Each": {"Type": "Map", "ItemsPath": "$", "ItemProcessor": ONE, "End": True}},
}


def opened(path: Path, **bindings: Any) -> Store:
    return Store(path, synchronous="OFF", clock=asl.VirtualClock(), **bindings)


def asking(**fields: Any) -> dict[str, Any]:
    """A workflow of one Approval, which goes to `Other` at a timeout."""
    ask = {"Type": "Approval", "Prompt": "?", "Default": "Other", **fields}
    return {"StartAt": "Ask", "States": {"Ask": ask, "Other": {"Type": "Succeed"}}}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with opened(tmp_path / "runs.db") as store:
        yield store


def test_a_request_is_there_before_anybody_is_told(tmp_path: Path) -> None:
    """Who is told can answer at once, from another process."""

    def notify(kind: str, request: dict[str, Any], details: Any) -> None:
        with opened(tmp_path / "runs.db") as other:
            told.append((kind, other.pending() == [request]))

    told: list[Any] = []
    with opened(tmp_path / "runs.db", notify=notify) as store:
        assert store.start(ONE, "it", name="a").status == "PAUSED"
        store.resume("a")
    assert told == [("request", True)]


def test_an_answer_lets_it_go_on(store: Store) -> None:
    """The decision is kept without running anything; resuming uses it."""
    (request,) = store.start(ONE, "it", name="a").pending
    assert store.due() == []
    record = store.answer(request["requestId"], "reject", by="ann", comment="no")
    assert record["approver"] == "ann"
    assert store.pending() == []
    assert store.due() == ["a"]
    assert store.get("a").status == "PAUSED"
    result = store.resume("a")
    assert (result.status, result.output) == ("SUCCEEDED", "reject")
    kept = store.result("a")
    assert [event.type for event in kept.events] == [
        "ExecutionStarted", "ApprovalStateEntered", "ApprovalRequested", "ApprovalDecided",
        "ApprovalStateExited", "ExecutionSucceeded",
    ]  # fmt: skip


def test_a_bad_answer_changes_nothing(store: Store) -> None:
    """It is refused with the reason, and the execution stays paused."""
    (request,) = store.start(ONE, "it", name="a").pending
    with pytest.raises(asl.AnswerRefused, match="'approve', 'reject'"):
        store.answer(request["requestId"], "maybe")
    assert store.pending() == [request]
    assert store.resume("a").pending == [request]
    with pytest.raises(asl.RequestNotFound):
        store.answer("other", "approve")


def test_the_same_answer_twice_is_one(store: Store) -> None:
    """Another answer to an answered request is refused, also after the execution went on."""
    (request,) = store.start(ONE, "it", name="a").pending
    first = store.answer(request["requestId"], "approve", by="ann")
    assert store.answer(request["requestId"], "approve", by="ann") == first
    with pytest.raises(asl.AnswerRefused, match="answered already"):
        store.answer(request["requestId"], "reject", by="ann")
    assert store.resume("a").output == "approve"
    with pytest.raises(asl.AnswerRefused, match="answered already"):
        store.answer(request["requestId"], "approve", by="bo")


def test_approvals_are_collected(store: Store) -> None:
    """Until there are enough of them the request stays open and shows them."""
    document = asking(Policy={"RequiredApprovals": 2}, ResultPath="$")
    (request,) = store.start(document, {}, name="a").pending
    assert store.answer(request["requestId"], "approve", by="ann") is None
    assert store.answer(request["requestId"], "approve", by="ann") is None
    (shown,) = store.resume("a").pending
    assert [each["approver"] for each in shown["policy"]["received"]] == ["ann"]
    assert store.answer(request["requestId"], "approve", by="bo") is not None
    output = store.resume("a").output
    assert [each["approver"] for each in output["approvals"]] == ["ann", "bo"]


def test_the_requestor_may_be_excluded(store: Store) -> None:
    """Who started the execution is known to every later process."""
    document = asking(Policy={"ExcludeRequestor": True})
    (request,) = store.start(document, {}, name="a", requestor="ann").pending
    with pytest.raises(asl.AnswerRefused, match="'ann'") as refusal:
        store.answer(request["requestId"], "approve", by="ann")
    assert refusal.value.forbidden


def test_what_is_due_happens_on_resuming(tmp_path: Path) -> None:
    """Escalations and the timeout count from the request, whoever resumes whenever."""
    told: list[str] = []
    document = asking(Timeout="48h", Escalation={"After": "4h"})
    clock = asl.VirtualClock()

    def notify(kind: str, request: Any, details: Any) -> None:
        told.append(kind)

    with Store(tmp_path / "runs.db", clock=clock, notify=notify) as store:
        store.start(document, {}, name="a")
        assert store.get("a").wake == clock.now() + 4 * 3600
        clock.elapsed += 5 * 3600
        assert store.due() == ["a"]
        assert store.resume("a").status == "PAUSED"
        assert store.due() == []
        clock.elapsed += 100 * 3600
        with pytest.raises(asl.AnswerRefused, match="too late"):
            store.answer(store.pending()[0]["requestId"], "approve")
        result = store.resume("a")
        assert result.output["timestamp"] == "2024-01-03T00:00:00.000Z"
        assert result.visited == ["Ask", "Other"]
        assert told == ["request", "escalation"]
        types = [event.type for event in store.result("a").events]
        assert types.count("ApprovalEscalated") == types.count("ApprovalTimedOut") == 1


def test_the_end_of_an_execution_closes_its_requests(store: Store) -> None:
    """Nobody decides on what has ended."""
    (request,) = store.start(ONE, "it", name="a").pending
    store.stop("a")
    assert store.pending() == []
    with pytest.raises(asl.AnswerRefused, match="closed"):
        store.answer(request["requestId"], "approve")


def test_a_handler_answers_for_executions_of_a_store(tmp_path: Path) -> None:
    """What it decides is kept like any other answer."""
    with opened(tmp_path / "runs.db", approvals=lambda request: "approve") as store:
        assert store.start(ONE, "it", name="a").output == "approve"
        assert store.pending() == []


def test_a_thousand_wait_and_are_resumed_singly_in_any_order(tmp_path: Path) -> None:
    """Alone or inside Maps, each by a store that was opened for it."""
    path, order = tmp_path / "runs.db", random.Random(7)
    with opened(path) as store:
        for number in range(940):
            store.start(ONE, number, name=f"one-{number}")
        for number in range(3):
            store.start(EACH, list(range(20)), name=f"map-{number}")
        requests = store.pending()
    assert len(requests) == 1000
    order.shuffle(requests)
    for chunk in range(0, 1000, 50):
        with opened(path) as store:
            for request in requests[chunk : chunk + 50]:
                option = order.choice(["approve", "reject"])
                store.answer(request["requestId"], option)
                name = request["requestId"].split(":/")[0].rpartition(":")[2]
                result = store.resume(name)
                assert result.status == ("PAUSED" if result.pending else "SUCCEEDED")
    with opened(path) as store:
        assert store.pending() == []
        assert {each.status for each in store.executions(limit=2000)} == {"SUCCEEDED"}


def test_another_process_goes_on(tmp_path: Path) -> None:
    """Nothing of a paused execution is in memory."""
    with opened(tmp_path / "runs.db") as store:
        (request,) = store.start(ONE, "it", name="a").pending
    program = (
        "import sys, asl\n"
        "with asl.open_store(sys.argv[1]) as store:\n"
        "    store.answer(sys.argv[2], 'approve')\n"
        "    print(store.resume('a').output)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "runs.db"), request["requestId"]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "approve\n"
