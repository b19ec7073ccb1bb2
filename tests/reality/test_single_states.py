"""Recordings of AWS's TestState: one state alone gives the same answer, and the same refusals."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import asl

from .aws import agrees, everything, needs_recordings

pytestmark = needs_recordings

BEYOND = {
    "Parameter validation failed": "said by AWS's client, not by the service",
    "A test mock should have only one": "the recording holds one of the two",
}
"""Refusals that are out of reach, by the beginning of what AWS says."""
ASKED = ("RoleArn must be specified", "Mocked result must be valid JSON")
"""Refusals of requests that only `asl.StepFunctions` takes: with roles, and texts of JSON."""
CALL = "An error occurred (ValidationException) when calling the TestState operation: "


def recordings(refused: bool) -> Iterator[Any]:
    for case in everything():
        if case["kind"] != "test_state" or "unverified" in case["tags"]:
            continue
        message = case["expected"].get("message")
        if (message is not None) == refused and not (message or "").startswith(tuple(BEYOND)):
            yield pytest.param(case, id=case["id"])


def answer(case: Any) -> dict[str, Any]:
    """Test the state of a case as it was tested."""
    return asl.test_state(
        case["definition"],
        case.get("input", {}),
        state=case.get("state"),
        mock=mock(case["mock"]) if case.get("mock") else None,
        context=case.get("context"),
        variables=case.get("variables"),
        level=case.get("level", "INFO"),
        reveal_secrets=case.get("reveal_secrets", False),
        configuration=case.get("configuration"),
    ).to_json()


def asked(case: Any) -> dict[str, Any]:
    """Test the state of a case by a request in the form of AWS's, and read the texts it answers."""
    request: dict[str, Any] = {
        "definition": json.dumps(case["definition"]),
        "input": json.dumps(case.get("input", {})),
        "inspectionLevel": case.get("level", "INFO"),
        "revealSecrets": case.get("reveal_secrets", False),
        "variables": json.dumps(case.get("variables") or {}),
        "stateName": case.get("state"),
        "stateConfiguration": case.get("configuration"),
    }
    if type((case.get("configuration") or {}).get("mapItemReaderData")) is list:
        data = json.dumps(case["configuration"]["mapItemReaderData"])
        request["stateConfiguration"] = {**case["configuration"], "mapItemReaderData": data}
    if case.get("context") is not None:
        request["context"] = json.dumps(case["context"])
    if recorded := case.get("mock"):
        request["mock"] = mock(recorded)
        if recorded["kind"] == "return":
            request["mock"]["result"] = json.dumps(recorded["value"])
    if not case["expected"].get("message"):
        request["roleArn"] = "arn:aws:iam::111111111111:role/tester"
    got: dict[str, Any] = asl.StepFunctions().test_state(**request)
    if "output" in got:
        got["output"] = json.loads(got["output"])
    for stage, text in got.get("inspectionData", {}).items():
        got["inspectionData"][stage] = json.loads(text) if type(text) is str else text
    return got


def mock(recorded: Any) -> dict[str, Any]:
    """Return a recorded mock in the form of TestState's."""
    if recorded["kind"] in ("return", "return_text"):
        mode = {key: recorded[key] for key in ("fieldValidationMode",) if key in recorded}
        return {"result": recorded["value"], **mode}
    return {"errorOutput": {key: recorded[key] for key in ("error", "cause") if key in recorded}}


@pytest.mark.parametrize("case", list(recordings(refused=False)))
@pytest.mark.parametrize("given", [answer, asked])
def test_a_state_alone_answers_as_recorded(case: Any, given: Callable[[Any], Any]) -> None:
    """Status, next state, output, error, cause and every stage of the data."""
    got, expected = given(case), case["expected"]
    assert got.keys() == expected.keys()
    assert {key: got[key] for key in expected if not agrees(expected[key], got[key])} == {}


@pytest.mark.parametrize("case", list(recordings(refused=True)))
def test_a_request_is_refused_as_recorded(case: Any) -> None:
    """AWS's code and words; where the message alone was recorded, it is the code."""
    with pytest.raises((asl.InvalidTest, asl.ServiceError)) as refusal:
        asked(case) if case["expected"]["message"].startswith(ASKED) else answer(case)
    message = case["expected"]["message"].removeprefix(CALL)
    assert message in (str(refusal.value), refusal.value.code)
