"""An execution never fails for a binding that it had and that is missing when it goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import asl
from tests.deaths import lived

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:"
INVOKE = "arn:aws:states:::lambda:invoke"
GATE = {"Type": "Approval", "Prompt": "Ship?", "ResultPath": "$.gate"}
REFUND = {"Refund": {"Type": "Task", "Agent": "Bank", "End": True}}
CATCH = [{"ErrorEquals": ["States.ALL"], "Next": "Refund"}]
NEVER = [{"ErrorEquals": ["Never"], "Next": "Refund"}]


def order(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A charge, an approval, and *state*, whose every failure leads to a refund."""
    last = {"Catch": CATCH, "End": True, **state}
    states = {
        "Charge": {"Type": "Task", "Agent": "Bank", "ResultPath": "$.paid", "Next": "Gate"},
        "Gate": {**GATE, "Next": "Ship"},
        "Ship": last,
        **REFUND,
    }
    return {"StartAt": "Charge", "States": states, **more}


SHIP = order({"Type": "Task", "Agent": "Carrier"})
CHILD = {"StartAt": "Pack", "States": {"Pack": {"Type": "Task", "Agent": "Packer", "End": True}}}
BANK = {"agents": {"Bank": lambda data: "money"}}
BOTH = {"agents": {**BANK["agents"], "Carrier": lambda data: "gone"}}


def opened(path: Path, **bindings: Any) -> asl.Store:
    return asl.open_store(path, clock="virtual", synchronous="OFF", **bindings)


def paused(path: Path, document: dict[str, Any], **bindings: Any) -> None:
    """Start an execution and approve what it asks."""
    with opened(path, **bindings) as store:
        started = store.run(document, {"n": 1}, name="it")
        assert started.status == "PAUSED", started.cause
        store.answer(started.pending[0]["requestId"], "approve", by="ann")


@pytest.mark.parametrize(
    ("document", "bindings", "left", "missing"),
    [
        pytest.param(SHIP, BOTH, BANK, {"agents": ["Carrier"]}, id="agent"),
        pytest.param(SHIP, BOTH, {}, {"agents": ["Bank", "Carrier"]}, id="agents"),
        pytest.param(
            order({"Type": "Debate", "Agents": ["Bank", "Carrier"], "Topic": "?"}),
            BOTH,
            BANK,
            {"agents": ["Carrier"]},
            id="agent-of-a-debate",
        ),
        pytest.param(
            order({"Type": "Task", "Resource": ARN + "Ship"}),
            {**BANK, "resources": {ARN + "Ship": len}},
            BANK,
            {"resources": [ARN + "Ship"]},
            id="resource",
        ),
        pytest.param(
            order({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage"}),
            {**BANK, "resources": {"arn:*:sqs:*": len}},
            BANK,
            {"resources": ["arn:aws:states:::sqs:sendMessage"]},
            id="resource-by-pattern",
        ),
        pytest.param(
            order({"Type": "Task", "Resource": INVOKE, "Parameters": {"FunctionName": "Ship"}}),
            {**BANK, "resources": {ARN + "Ship": len, ARN + "Other": len}},
            {**BANK, "resources": {ARN + "Other": len}},
            {"resources": ["Ship"]},
            id="function-by-name",
        ),
        pytest.param(
            order({"Type": "Task", "Resource": INVOKE, "Parameters": {"FunctionName.$": "$.f"}}),
            {**BANK, "resources": {ARN + "Ship": len, ARN + "Other": len}},
            {**BANK, "resources": {ARN + "Other": len}},
            {"resources": [ARN + "Ship"]},
            id="function-named-by-data",
        ),
        pytest.param(
            order({"Type": "Task", "Resource": ARN + "Ship"}),
            {**BANK, "mocks": {"Ship": {"return": 1}}},
            BANK,
            {"mocks": ["Ship"]},
            id="mock",
        ),
        pytest.param(
            SHIP,
            {**BOTH, "tools": {"Search": len}},
            BOTH,
            {"tools": ["Search"]},
            id="tool",
        ),
        pytest.param(
            order({"Type": "Workflow", "WorkflowId": "packing"}),
            {"agents": {**BANK["agents"], "Packer": len}, "workflows": {"packing": CHILD}},
            BANK,
            {"agents": ["Packer"], "workflows": ["packing"]},
            id="workflow",
        ),
        pytest.param(
            order({"Type": "Workflow", "WorkflowId": "packing"}),
            {"agents": {**BANK["agents"], "Packer": len}, "workflows": {"packing": CHILD}},
            {**BANK, "workflows": {"packing": CHILD}},
            {"agents": ["Packer"]},
            id="agent-of-a-workflow",
        ),
        pytest.param(
            order({"Type": "Task", "Agent": "Carrier", "Budget": {"Pool": "p", "MaxCost": "$1"}}),
            {**BOTH, "pools": {"p": 5}},
            BOTH,
            {"pools": ["p"]},
            id="pool",
        ),
        pytest.param(
            {**SHIP, "Memory": {"Backend": "custom"}},
            {**BOTH, "memory": "MEMORY"},
            BOTH,
            {"memory": ["file", "memory"]},
            id="memory",
        ),
    ],
)
def test_resuming_without_a_binding_is_refused(
    tmp_path: Path,
    document: dict[str, Any],
    bindings: dict[str, Any],
    left: dict[str, Any],
    missing: dict[str, list[str]],
) -> None:
    """Nothing runs, the execution stays paused, and the error names what is missing."""
    if "memory" in bindings:
        bindings = {**bindings, "memory": str(tmp_path / "memory.db")}
    path = tmp_path / "runs.db"
    paused(path, document, **bindings)
    with opened(path, **left) as store:
        before = [event.to_json() for event in store.events("it")]
        with pytest.raises(asl.BindingsMissing) as refused:
            store.resume("it")
        assert refused.value.missing == missing
        assert all(repr(name) in str(refused.value) for each in missing.values() for name in each)
        assert store.get("it").status == "PAUSED"
        assert store.due() == ["it"]
        assert [event.to_json() for event in store.events("it")] == before


def test_resuming_with_all_bindings_goes_on(tmp_path: Path) -> None:
    """Other bindings of the same names, and more of them, are none of the store's business."""
    paused(tmp_path / "runs.db", SHIP, **BOTH)
    agents = {"Bank": len, "Carrier": lambda data: "sent", "More": len}
    with opened(tmp_path / "runs.db", agents=agents) as store:
        result = store.resume("it")
        assert (result.output, result.visited) == ("sent", ["Charge", "Gate", "Ship"])


def test_a_binding_that_no_document_uses_may_go(tmp_path: Path) -> None:
    paused(tmp_path / "runs.db", SHIP, agents={**BOTH["agents"], "Unused": len})
    with opened(tmp_path / "runs.db", **BOTH) as store:
        assert store.resume("it").ok


def test_a_name_that_was_never_bound_is_a_failure_of_the_workflow(tmp_path: Path) -> None:
    """Catch sees it, as it did at the start."""
    paused(tmp_path / "runs.db", SHIP, **BANK)
    with opened(tmp_path / "runs.db", **BANK) as store:
        assert store.resume("it").visited == ["Charge", "Gate", "Ship", "Refund"]


def test_a_name_that_was_bound_later_is_required_from_then_on(tmp_path: Path) -> None:
    document = order({"Type": "Task", "Agent": "Carrier"})
    document["States"]["Gate"]["Next"] = "Second"
    document["States"]["Second"] = {**GATE, "Next": "Ship"}
    paused(tmp_path / "runs.db", document, **BANK)
    with opened(tmp_path / "runs.db", **BOTH) as store:
        (request,) = store.resume("it").pending
        store.answer(request["requestId"], "approve", by="ann")
    with (
        opened(tmp_path / "runs.db", **BANK) as store,
        pytest.raises(asl.BindingsMissing, match="agents 'Carrier'"),
    ):
        store.resume("it")


def test_starting_again_under_the_same_name_is_refused_too(tmp_path: Path) -> None:
    paused(tmp_path / "runs.db", SHIP, **BOTH)
    with opened(tmp_path / "runs.db", **BANK) as store:
        with pytest.raises(asl.BindingsMissing, match="Carrier"):
            store.run(SHIP, {"n": 1}, name="it")
        with pytest.raises(asl.BindingsMissing, match="Carrier"):
            asyncio.run(store.aresume("it"))
        assert store.get("it").status == "PAUSED"


def test_recovery_without_a_binding_is_refused(tmp_path: Path) -> None:
    """Of an execution whose process has died."""
    path = tmp_path / "runs.db"
    store = opened(path, **BOTH)
    lived(store, lambda: store.run(SHIP, {"n": 1}, name="it"), 1, "effect.done")
    with opened(path, **BANK) as store:
        assert store.interrupted() == ["it"]
        with pytest.raises(asl.BindingsMissing, match="Carrier"):
            store.resume("it")
        assert store.interrupted() == ["it"]


def test_redriving_without_a_binding_is_refused(tmp_path: Path) -> None:
    """It has not begun anew; with a document that does not name it, it goes on."""

    def fail(data: Any) -> Any:
        raise RuntimeError("no truck")

    document = order({"Type": "Task", "Agent": "Carrier", "Catch": NEVER})
    path = tmp_path / "runs.db"
    paused(path, document, agents={**BANK["agents"], "Carrier": fail})
    with opened(path, agents={**BANK["agents"], "Carrier": fail}) as store:
        assert store.resume("it").status == "FAILED"
    with opened(path, **BANK) as store:
        with pytest.raises(asl.BindingsMissing, match="Carrier"):
            store.redrive("it")
        assert (store.get("it").status, store.get("it").redrives) == ("FAILED", 0)
        corrected = order({"Type": "Task", "Agent": "Bank"})
        assert store.redrive("it", document=corrected).output == "money"


def test_redriving_needs_no_binding_of_states_that_are_behind_it(tmp_path: Path) -> None:
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "Bank", "Next": "B"},
            "B": {"Type": "Task", "Agent": "Carrier", "End": True},
        },
    }

    def fail(data: Any) -> Any:
        raise RuntimeError("no truck")

    with opened(tmp_path / "runs.db", agents={"Bank": len, "Carrier": fail}) as store:
        assert store.run(document, {}, name="it").error == "States.TaskFailed"
    with opened(tmp_path / "runs.db", agents={"Carrier": lambda data: "gone"}) as store:
        assert store.redrive("it").output == "gone"


def test_going_back_to_a_checkpoint_without_a_binding_is_refused(tmp_path: Path) -> None:
    document = order({"Type": "Task", "Agent": "Carrier", "Catch": NEVER})
    document["States"]["Gate"] = {"Type": "Checkpoint", "Name": "charged", "Next": "Ship"}

    def fail(data: Any) -> Any:
        raise RuntimeError("no truck")

    path = tmp_path / "runs.db"
    with opened(path, agents={**BANK["agents"], "Carrier": fail}) as store:
        assert store.run(document, {}, name="it").status == "FAILED"
    with opened(path, **BANK) as store:
        with pytest.raises(asl.BindingsMissing, match="Carrier"):
            store.resume("it", from_checkpoint="charged")
        assert store.get("it").status == "FAILED"


def test_an_execution_that_has_ended_needs_no_bindings(tmp_path: Path) -> None:
    paused(tmp_path / "runs.db", SHIP, **BOTH)
    with opened(tmp_path / "runs.db", **BOTH) as store:
        assert store.resume("it").ok
    with opened(tmp_path / "runs.db") as store:
        assert store.resume("it").output == "gone"
