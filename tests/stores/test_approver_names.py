"""Spellings of an approver's name, and the fields that an approver may edit."""

from typing import Any

import pytest

import asl
from asl.states.approval_answers import normalize_name

pytestmark = pytest.mark.quick

PEOPLE = [
    "ann", "ann ", " ann", "\tann", "an\u200bn", "ann\u200d", "\ufeffann", "a\u00adnn", "Ann",
    "ＡＮＮ", "ann\ufe0f", "a\u2060nn", "ann\u202e", "ann\u3164", "ann\u00a0", "ann\x00",
]  # fmt: skip


def asking(**fields: Any) -> dict[str, Any]:
    ask = {"Type": "Approval", "Prompt": "?", "End": True, **fields}
    return {"StartAt": "Ask", "States": {"Ask": ask}}


def answered(document: dict[str, Any], *answers: Any, **more: Any) -> asl.Result:
    given = iter(answers)
    data = {"amount": 5, "title": "t"}
    return asl.run(document, data, approvals=lambda request: next(given, None), **more)


@pytest.mark.parametrize("other", PEOPLE)
def test_a_quorum_counts_people(other: str) -> None:
    document = asking(Policy={"RequiredApprovals": 2})
    twice = [{"approval": "approve", "approver": name} for name in ("ann", other)]
    assert answered(document, *twice).status == "PAUSED"
    assert answered(document, twice[1], {"approval": "approve", "approver": "bob"}).ok


@pytest.mark.parametrize("other", PEOPLE)
def test_the_requestor_is_excluded_however_written(other: str) -> None:
    document = asking(Policy={"ExcludeRequestor": True})
    answer = {"approval": "approve", "approver": other}
    assert answered(document, answer, requestor="ann").error == "States.Permissions"


def test_a_listed_approver_may_write_the_name_otherwise() -> None:
    document = asking(Policy={"Approvers": {"Users": ["Ann B"]}}, ResultPath="$.by")
    result = answered(document, {"approval": "approve", "approver": " ann\u200b  b"})
    assert result.output["by"]["approver"] == "ann b"


def test_listed_twice_is_one_approver() -> None:
    policy = {"RequiredApprovals": 2, "Approvers": {"Users": ["ann", "Ann\u200b"]}}
    assert answered(asking(Policy=policy)).status == "FAILED"


def test_a_name_of_nothing_visible_is_refused() -> None:
    result = answered(asking(), {"approval": "approve", "approver": "\u200b \u3164"})
    assert result.error == "States.InvalidApproval"
    assert normalize_name("\u200b ") == ""


def test_an_answer_replaces_no_value_of_the_data() -> None:
    """Without a ResultPath the record is merged into the data; new keys may come with it."""
    assert answered(asking(), {"approval": "approve", "note": "n"}).output["note"] == "n"
    result = answered(asking(), {"approval": "approve", "amount": 5_000_000})
    assert (result.status, result.error) == ("FAILED", "States.InvalidApproval")
    assert "'amount' would replace a value of the data" in (result.cause or "")


def test_an_answer_replaces_no_value_behind_the_effective_input() -> None:
    document = asking(InputPath="$.title")
    result = answered(document, {"approval": "approve", "amount": 5_000_000})
    assert result.error == "States.InvalidApproval"


def test_with_a_result_path_any_key_is_of_the_record() -> None:
    document = asking(ResultPath="$.by")
    result = answered(document, {"approval": "approve", "amount": 6})
    assert (result.output["amount"], result.output["by"]["amount"]) == (5, 6)
