"""The interpreter runs on effects that it does not know: another event loop, clock and agents."""

import ast
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.errors import StateError
from asl.engine.interpreter import begin, interpret
from tests.engine import foreign_effects
from tests.engine.foreign_effects import ForeignEffects, drive

pytestmark = pytest.mark.quick

CALL = {"Type": "Task", "Agent": "Echo"}


def one(name: str, **state: Any) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


DOCUMENT = {
    "StartAt": "First",
    "States": {
        "First": {**CALL, "ResultPath": "$.first", "Assign": {"seen.$": "$.n"}, "Next": "Again"},
        "Again": {
            "Type": "Task",
            "Agent": "Flaky",
            "Retry": [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 10, "MaxAttempts": 3}],
            "ResultPath": "$.again",
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                one("Pause", Type="Wait", Seconds=5, OutputPath="$.n"),
                one("Say", **CALL, Parameters={"seen.$": "$seen"}),
            ],
            "ResultPath": "$.both",
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": one("Item", **CALL),
            "ResultPath": "$.each",
            "Next": "Saved",
        },
        "Saved": {"Type": "Checkpoint", "Name": "half", "Next": "Ask"},
        "Ask": {"Type": "Approval", "Prompt": "Go?", "ResultPath": "$.ask", "Next": "Other"},
        "Other": {"Type": "Workflow", "WorkflowId": "w", "ResultPath": "$.other", "Next": "Bad"},
        "Bad": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:::function:bad",
            "Catch": [{"ErrorEquals": ["Bad"], "ResultPath": "$.bad", "Next": "Talk"}],
            "End": True,
        },
        "Talk": {"Type": "Debate", "Agents": ["Echo", "Echo2"], "Rounds": 1, "End": True},
    },
}


def agents() -> dict[str, Any]:
    attempts = iter(range(10))

    def flaky(payload: Any) -> Any:
        if next(attempts) < 2:
            raise StateError("Flaky", "again")
        return "at last"

    def bad(payload: Any) -> Any:
        raise StateError("Bad", "as said")

    return {
        "Echo": lambda payload: payload,
        "Echo2": lambda payload: "I agree",
        "Flaky": flaky,
        "arn:aws:lambda:::function:bad": bad,
    }


def test_a_document_runs_on_foreign_effects() -> None:
    effects = ForeignEffects(interpret, agents())
    frame = begin(asl.compile(DOCUMENT), {"n": 1, "items": [7, 8]}, effects)
    output, error = drive(effects, interpret(frame))
    assert error is None
    assert output["participants"] == ["Echo", "Echo2"]
    assert frame.variables == {"seen": 1}
    assert effects.saved == ["half"]
    # calls: 1; retries: 3 calls and 10 + 20 s; both: 5; each: 1; bad: 1; the debate: 1 + 2
    assert 1 + 33 + 5 + 1 + 1 + 3 <= effects.runtime.time < 46
    assert frame.visit == 9
    assert effects.history


def test_a_failure_is_that_of_the_workflow() -> None:
    effects = ForeignEffects(interpret, agents())
    document = one("Only", Type="Task", Resource="arn:aws:lambda:::function:bad")
    _, error = drive(effects, interpret(begin(asl.compile(document), {}, effects)))
    assert error is not None
    assert (error.name, error.cause) == ("Bad", "as said")


@pytest.mark.parametrize("name", ["wait", "map"])
def test_foreign_and_local_effects_give_equal_results(name: str) -> None:
    """What a document comes to does not depend on who performs its effects."""
    document = {
        "wait": one("Only", Type="Wait", SecondsPath="$.n"),
        "map": one("Only", Type="Map", ItemsPath="$.items", ItemProcessor=one("Item", **CALL)),
    }[name]
    data, effects = {"n": 3, "items": [1, [2], {"3": 4}]}, ForeignEffects(interpret, agents())
    output, error = drive(effects, interpret(begin(asl.compile(document), data, effects)))
    assert error is None
    assert output == asl.run(document, data, agents=agents(), clock="virtual").output


def test_the_foreign_effects_are_foreign() -> None:
    """They import protocols and values only, in fewer than 150 lines."""
    source = Path(foreign_effects.__file__).read_text()
    assert len(source.splitlines()) < 150
    modules = {
        node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("asl")
    }
    assert modules == {
        "asl.core.errors",
        "asl.states.calls",
        "asl.states.effects",
        "asl.states.map_data",
    }
