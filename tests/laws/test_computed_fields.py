"""What the data puts into a field is either right or a named error, never a crash."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

import asl
from asl.core.values import Json

ASKING: dict[str, Json] = {
    "Type": "Approval",
    "Prompt": "?",
    "Timeout": "1h",
    "OnTimeout": "Escalate",
    "Escalation": {
        "After": "10m",
        "EscalateTo": "b",
        "Notify": "n",
        "Message": "m",
        "Repeat": {"Every": "10m", "MaxTimes": 2},
    },
    "ItemsPath": "$.items",
    "BatchMode": {"AllowPartial": True, "MinApproved": 0.5},
    "Notifications": {"Channels": [{"Type": "x", "OnlyAfter": "30m"}]},
    "Policy": {
        "Approvers": {"Roles": ["r"], "Users": ["ann"]},
        "RequiredApprovals": 1,
        "ExcludeRequestor": True,
        "RequireReason": True,
    },
    "RequiredApprovers": 1,
    "Default": "Z",
}
LEVELS: dict[str, Json] = {
    "Type": "Approval",
    "Prompt": "?",
    "Escalation": {"Levels": [{"After": "1m", "Notify": "n", "AutoApprove": True}]},
    "Next": "Z",
}
DEBATE: dict[str, Json] = {
    "Type": "Debate",
    "Agents": ["A", "B"],
    "Topic": "t",
    "Rounds": 1,
    "Parameters": {"k": 1},
    "Communication": {"Style": "free_form", "Order": ["A", "B"], "VisibleHistory": "all"},
    "Consensus": {
        "Required": True,
        "Arbiter": "A",
        "Threshold": 0.5,
        "Method": "voting",
        "RequiredMajority": 0.5,
        "VotingAgents": ["A"],
        "TieBreaker": "A",
        "MaxRoundsForConsensus": 2,
    },
    "Next": "Z",
}
SAVING: dict[str, Json] = {
    "Type": "Checkpoint", "Name": "n", "Storage": "file", "TTL": "1h", "Next": "Z",
}  # fmt: skip
STARTING: dict[str, Json] = {
    "Type": "Workflow", "WorkflowId": "kid", "Input": {"a": 1}, "Timeout": "1h", "Next": "Z",
}  # fmt: skip
VALUES: list[Json] = [
    *(None, True, 0, -1, 1.5, 10**30, "", "a", "1h", "{{ $.q }}", "never", "A"),
    *([], ["A"], [None], [{}], {}, {"a.$": "$.q"}),
]
ANSWERS: list[Json] = [None, {"approval": "approve", "approver": "ann", "comment": "c"}]


def fields(value: Json, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the ways to all members of objects, at any depth."""
    parts = value.items() if type(value) is dict else enumerate(value)
    for key, part in parts:
        if type(value) is dict:
            yield (*way, key)
        if type(part) in (dict, list):
            yield from fields(part, (*way, key))


def computed(state: dict[str, Json], way: tuple[Any, ...]) -> dict[str, Json]:
    """Return a state in which the data says what a field is."""
    holder = changed = copy.deepcopy(state)
    for step in way[:-1]:
        holder = holder[step]
    del holder[way[-1]]
    holder[f"{way[-1]}.$"] = "$.q"
    return changed


@pytest.mark.parametrize("state", [ASKING, LEVELS, DEBATE, SAVING, STARTING])
def test_values_of_computed_fields_never_crash(state: dict[str, Json]) -> None:
    """Each field in turn, with each value; a document that is refused is none of this law."""
    runs = 0
    for way in fields(state):
        states = {"S": computed(state, way), "Z": {"Type": "Succeed"}}
        document = {"StartAt": "S", "States": states}
        if not asl.check(document).ok:
            continue
        program = asl.compile(document)
        for value in VALUES:
            for answer in ANSWERS:
                result = asl.run(
                    program,
                    {"q": value, "items": [1, 2]},
                    agents={name: {"return": {"vote": "x"}} for name in "AB"},
                    workflows={"kid": {"StartAt": "K", "States": {"K": {"Type": "Succeed"}}}},
                    approvals=lambda asked, answer=answer: answer,
                    checkpoints={"file": {}},
                    requestor="bo",
                    clock=asl.VirtualClock(),
                )
                assert result.status in ("SUCCEEDED", "FAILED", "PAUSED"), (way, value)
                assert result.status != "FAILED" or result.error, (way, value)
                runs += 1
    assert runs >= 2 * len(VALUES)
