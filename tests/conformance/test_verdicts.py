"""Verdicts from observations."""

from typing import Any

import pytest

from asl.conformance import Case, judge

pytestmark = pytest.mark.quick

DONE = {"status": "SUCCEEDED", "output": {"a": 1}, "visited": ["A"], "elapsed": 1.5}
FAILED = {"status": "FAILED", "error": "Oops", "cause": "why"}
USED = {**DONE, "usage": {"cost": 0.5, "tokens": 3, "byState": {}, "byModel": {}}}
WROTE = {**DONE, "objects": [{"bucket": "b", "key": "o/1.json", "text": "[1]"}]}
HISTORY = {
    **DONE,
    "events": [
        {"id": 1, "type": "ExecutionStarted", "path": [], "details": {"input": {}}},
        {"id": 2, "type": "PassStateEntered", "path": ["A"], "details": {"name": "A", "input": {}}},
        {"id": 3, "type": "PassStateExited", "path": ["A"], "details": {"name": "A", "output": 1}},
        {"id": 4, "type": "ExecutionSucceeded", "path": [], "details": {"output": 1}},
    ],
}
WARNED = {
    "valid": True,
    "diagnostics": [
        {"code": "V-ST-04", "severity": "warning", "message": "m", "pointer": "/States/B"}
    ],
}
REFUSED = {
    "valid": False,
    "diagnostics": [
        {
            "code": "V-ST-03",
            "severity": "error",
            "message": "no such state",
            "pointer": "/a",
            "line": 3,
        }
    ],
}


def verdict(expect: dict[str, Any], seen: dict[str, Any]) -> Any:
    return judge(Case("one", expect), seen)


@pytest.mark.parametrize(
    ("expect", "seen"),
    [
        ({"status": "SUCCEEDED"}, DONE),
        ({"output": {"a": 1.0}}, DONE),
        ({"output": {"a": {"$type": "number"}}}, DONE),
        ({"output": None}, {"status": "SUCCEEDED", "output": None}),
        ({"error": None, "cause": None}, DONE),
        ({"error": "Oops", "cause": {"$like": "w.y"}}, FAILED),
        ({"visited": ["A"]}, DONE),
        ({"objects": []}, DONE),
        ({"objects": [{"key": {"$like": "o/.*"}, "text": {"$json": [1]}}]}, WROTE),
        ({"elapsed": 1.5 + 5e-7}, DONE),
        ({"elapsed": {"$type": "number"}}, DONE),
        ({"cost": 0.5, "usage": {"$partial": {"tokens": 3}}}, USED),
        ({"events": []}, HISTORY),
        ({"events": [{"type": "PassStateEntered"}, {"type": "ExecutionSucceeded"}]}, HISTORY),
        (
            {"events": [{"type": "PassStateExited", "path": ["A"], "details": {"name": "A"}}]},
            HISTORY,
        ),
        (
            {
                "events": [{"type": each["type"]} for each in HISTORY["events"]],
                "events_exact": True,
            },
            HISTORY,
        ),
        ({"diagnostics": [{"code": "V-ST-04", "severity": "warning"}]}, WARNED),
        ({"diagnostics": []}, WARNED),
        ({"diagnostics": [{"code": "V-ST-04"}], "diagnostics_exact": True, "valid": True}, WARNED),
        ({"diagnostics": [], "diagnostics_exact": False}, WARNED),
        ({"diagnostics": [{"code": "V-ST-04"}], "valid": True}, WARNED),
        ({"diagnostics": [{"code": "V-ST-04"}], "status": "SUCCEEDED"}, {**DONE, **WARNED}),
        ({"diagnostics": [{"code": "V-ST-03", "pointer": "/a", "line": 3}]}, REFUSED),
        ({"valid": False}, REFUSED),
    ],
)
def test_what_fits_passes(expect: dict[str, Any], seen: dict[str, Any]) -> None:
    """A case whose expectations all hold passes without a word."""
    assert verdict(expect, seen).reasons == ()
    assert verdict(expect, seen).outcome == "passed"


@pytest.mark.parametrize(
    ("expect", "seen", "reason"),
    [
        ({"status": "FAILED"}, DONE, 'got "SUCCEEDED" (SUCCEEDED, output {"a":1})'),
        ({"status": "SUCCEEDED"}, FAILED, "(FAILED, error Oops: why)"),
        ({"output": {"a": 2}}, DONE, "output.a: expected 2, got 1"),
        ({"output": {"a": True}}, DONE, "output.a: expected true, got 1"),
        ({"output": {}}, DONE, "output.a: unexpected 1"),
        ({"output": {"a": {"$like": "("}}}, DONE, "output.a: '(' is no regular expression: "),
        ({"output": {"$partial": ""}}, DONE, "output: '$partial' takes an object, not string"),
        ({"output": None}, FAILED, "there is none (FAILED, error Oops: why)"),
        ({"error": None}, FAILED, 'error: expected null, got "Oops"'),
        ({"error": "Oops"}, DONE, 'error: expected "Oops", got null (SUCCEEDED'),
        ({"visited": ["A", "B"]}, DONE, 'visited: expected ["A","B"], got ["A"]'),
        ({"elapsed": 1.6}, DONE, "elapsed: expected 1.6 seconds, got 1.5"),
        ({"elapsed": 1}, {"status": "SUCCEEDED"}, "elapsed: expected 1, got null"),
        (
            {"objects": [{"key": "o/2.json"}]},
            WROTE,
            'objects: no {"key":"o/2.json"} among [{"bucket"',
        ),
        ({"objects": [{"key": "o/1.json", "text": "[2]"}]}, WROTE, 'objects: no {"key":"o/1.json"'),
        ({"objects": [{"key": "o/1.json"}]}, DONE, "among []"),
        ({"cost": 1}, USED, "cost: expected 1, got 0.5"),
        ({"cost": 1}, DONE, "cost: expected 1, got null"),
        (
            {"events": [{"type": "ExecutionSucceeded"}, {"type": "PassStateEntered"}]},
            HISTORY,
            'events[1]: no {"type":"PassStateEntered"} among []',
        ),
        (
            {"events": [{"type": "PassStateExited", "path": ["B"]}]},
            HISTORY,
            "events[0]: the next PassStateExited is",
        ),
        (
            {"events": [{"type": "ExecutionStarted"}], "events_exact": True},
            HISTORY,
            'events: expected ["ExecutionStarted"], got',
        ),
        ({"diagnostics": []}, REFUSED, "V-ST-03 at '/a': no such state"),
        ({"diagnostics": [{"code": "V-ST-04"}]}, WARNED, "valid: expected a document that is"),
        ({"diagnostics": [{"code": "V-ST-03", "line": 4}]}, REFUSED, '"line":3'),
        (
            {"diagnostics": [], "diagnostics_exact": True},
            WARNED,
            'nothing expects {"code":"V-ST-04"',
        ),
        ({"valid": True}, REFUSED, "V-ST-03 at '/a': no such state"),
        ({"status": "SUCCEEDED"}, REFUSED, "the document was refused: V-ST-03"),
        ({"status": "SUCCEEDED"}, {"crash": "boom"}, "the interpreter failed: boom"),
    ],
)
def test_verdict_names_the_difference(
    expect: dict[str, Any], seen: dict[str, Any], reason: str
) -> None:
    """A failing case names the place, what was expected, and what came."""
    found = verdict(expect, seen)
    assert found.outcome == "failed"
    assert any(reason in each for each in found.reasons), found.reasons


def test_a_skipped_case_keeps_its_reason() -> None:
    """An interpreter may say that a case is not for it."""
    found = verdict({"status": "SUCCEEDED"}, {"skip": "no JSONata"})
    assert (found.outcome, found.reasons) == ("skipped", ("no JSONata",))
