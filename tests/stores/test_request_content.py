"""An answer decides what was shown and nothing else."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import asl
from asl.stores.sqlite.connection import guard

Sum = dict[str, Any]


def paying(prompt: str, **fields: Any) -> Sum:
    """A workflow that asks before it pays."""
    ask = {"Type": "Approval", "Prompt": prompt, "ResultPath": "$.by", "Next": "Pay", **fields}
    pay = {"Type": "Task", "Agent": "Bank", "End": True}
    return {"StartAt": "Ask", "States": {"Ask": ask, "Pay": pay}}


def opened(path: Path) -> asl.Store:
    return asl.open_store(path, clock="virtual", agents={"Bank": lambda data: "paid"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def stopped(path: Path) -> str:
    """Return the id of a request of an execution that is stopped then."""
    with opened(path) as store:
        (request,) = store.run(paying("Pay 5?"), {}, name="it").pending
        store.cancel("it")
        id: str = request["requestId"]
        return id


def test_an_answer_to_the_old_prompt_is_refused_after_a_redrive(path: Path) -> None:
    """The request that asks something else has another id."""
    old = stopped(path)
    with opened(path) as store:
        (request,) = store.redrive("it", document=paying("Pay 5,000,000?")).pending
        assert request["requestId"] != old
        with pytest.raises(asl.RequestNotFound):
            store.answer(old, "approve", by="ann")
        assert store.pending() == [request]
        store.answer(request["requestId"], "approve", by="ann")
        assert store.resume("it").ok


def test_a_prompt_keeps_its_id_from_redrive_to_redrive(path: Path) -> None:
    stopped(path)
    with opened(path) as store:
        (request,) = store.redrive("it").pending
        store.cancel("it")
        (again,) = store.redrive("it").pending
        assert again["requestId"] == request["requestId"]
        store.answer(request["requestId"], "approve", by="ann")
        assert store.resume("it").ok


@pytest.mark.parametrize("gone_on", [False, True])
def test_a_decision_on_the_old_prompt_does_not_count_after_a_redrive(
    path: Path, gone_on: bool
) -> None:
    """Neither one that waits to be taken up nor one with which the state has failed."""
    with opened(path) as store:
        first = paying("Pay 5?", ResultPath="$.by" if not gone_on else "$.n.by")
        (request,) = store.run(first, {"n": 1}, name="it").pending
        store.answer(request["requestId"], "approve", by="ann")
        if gone_on:
            assert store.resume("it").error == "States.ResultPathMatchFailure"
        else:
            store.cancel("it")
        again = store.redrive("it", document=paying("Pay 5,000,000?"))
        assert again.status == "PAUSED"
        assert again.pending[0]["prompt"] == "Pay 5,000,000?"
        assert list(store.faults()) == []


def test_a_decision_on_the_same_prompt_counts_after_a_redrive(path: Path) -> None:
    with opened(path) as store:
        (request,) = store.run(paying("Pay 5?"), {"n": 1}, name="it").pending
        store.answer(request["requestId"], "approve", by="ann")
        store.cancel("it")
        assert store.redrive("it").ok


def test_an_answer_with_the_digest_of_another_prompt_is_refused(path: Path) -> None:
    """The request stays open."""
    with opened(path) as store:
        (one,) = store.run(paying("Pay 5?"), {}, name="one").pending
        (two,) = store.run(paying("Pay 6?"), {}, name="two").pending
        with pytest.raises(asl.AnswerRefused, match="has changed since it was shown"):
            store.answer(two["requestId"], "approve", by="ann", digest=asl.request_digest(one))
        record = store.answer(two["requestId"], "approve", by="ann", digest=asl.request_digest(two))
        assert "digest" not in record


def test_a_digest_holds_while_others_approve(path: Path) -> None:
    """Who has approved meanwhile is no part of what is asked."""
    with opened(path) as store:
        document = paying("Pay 5?", Policy={"RequiredApprovals": 2})
        (request,) = store.run(document, {}, name="one").pending
        digest = asl.request_digest(request)
        for who in ("ann", "bob"):
            assert asl.request_digest(store.pending()[0]) == digest
            store.answer(request["requestId"], "approve", by=who, digest=digest)
        assert store.resume("one").ok


def test_a_handler_may_give_the_digest_back() -> None:
    seen: list[Sum] = []

    def handler(request: Sum) -> Sum:
        seen.append(request)
        return {"approval": "approve", "approver": "ann", "digest": asl.request_digest(request)}

    document = paying("Pay 5?")
    result = asl.run(document, {}, agents={"Bank": len}, approvals=handler)
    assert result.ok


Edit = Callable[[Any, Any], None]


def edited(path: Path, edit: Edit) -> None:
    """Edit the stored body of all requests, and make every checksum anew."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.create_function("guard", -1, guard, deterministic=True)
        for id, body in file.execute("SELECT id, body FROM request").fetchall():
            asked, plan = json.loads(body[9:])
            edit(asked, plan)
            text = json.dumps([asked, plan]).encode()
            file.execute(
                "UPDATE request SET body = ? WHERE id = ?", (b"=%08x%s" % (crc32(text), text), id)
            )


def show_less(asked: Any, plan: Any) -> None:
    asked["prompt"] = asked["promptText"] = "Pay 5?"


def widen(asked: Any, plan: Any) -> None:
    asked["policy"] = {"requiredApprovals": 1, "received": []}


def swap_options(asked: Any, plan: Any) -> None:
    asked["options"].reverse()


def approve_at_timeout(asked: Any, plan: Any) -> None:
    plan |= {"timeout": 1.0, "onTimeout": "AutoApprove"}


@pytest.mark.parametrize("edit", [show_less, widen, swap_options, approve_at_timeout])
def test_an_edited_request_is_known_by_the_history(path: Path, edit: Edit) -> None:
    """When it is answered, when its execution goes on, and by doctor."""
    document = paying("Pay 5,000,000?", Policy={"RequiredApprovals": 2})
    with opened(path) as store:
        (request,) = store.run(document, {}, name="it").pending
    edited(path, edit)
    with opened(path) as store:
        with pytest.raises(asl.StoreDamaged, match=r"what the request .* asks was changed"):
            store.answer(request["requestId"], "approve", by="ann")
        with pytest.raises(asl.StoreDamaged, match="asks was changed"):
            store.resume("it")
        assert any("asks was changed" in fault for fault in store.faults())
        assert store.get("it").status == "PAUSED"
