"""Recordings of AWS's TestState: one state alone gives the same answer, and the same refusals."""

from collections.abc import Iterator
from typing import Any

import pytest

import asl

from .aws import agrees, everything, needs_recordings

pytestmark = needs_recordings

BEYOND = {
    "RoleArn must be specified": "there are no roles here",
    "Parameter validation failed": "said by AWS's client, not by the service",
    "Mocked result must be valid JSON": "a mock is a value here, not a text",
    "A test mock should have only one": "the recording holds one of the two",
}
"""Refusals that are out of reach, by the beginning of what AWS says."""
CALL = "An error occurred (ValidationException) when calling the TestState operation: "


def recordings(refused: bool) -> Iterator[Any]:
    for case in everything():
        if case["kind"] != "test_state" or "unverified" in case["tags"]:
            continue
        message = case["expected"].get("message")
        if (message is not None) == refused and not (message or "").startswith(tuple(BEYOND)):
            yield pytest.param(case, id=case["id"])


def answer(case: Any) -> asl.StateResult:
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
    )


def mock(recorded: Any) -> dict[str, Any]:
    """Return a recorded mock in the form of TestState's."""
    if recorded["kind"] == "return":
        mode = {key: recorded[key] for key in ("fieldValidationMode",) if key in recorded}
        return {"result": recorded["value"], **mode}
    return {"errorOutput": {key: recorded[key] for key in ("error", "cause") if key in recorded}}


@pytest.mark.parametrize("case", list(recordings(refused=False)))
def test_a_state_alone_answers_as_recorded(case: Any) -> None:
    """Status, next state, output, error, cause and every stage of the data."""
    got, expected = answer(case).to_json(), case["expected"]
    assert got.keys() == expected.keys()
    assert {key: got[key] for key in expected if not agrees(expected[key], got[key])} == {}


@pytest.mark.parametrize("case", list(recordings(refused=True)))
def test_a_request_is_refused_as_recorded(case: Any) -> None:
    """AWS's code and words; where the message alone was recorded, it is the code."""
    with pytest.raises(asl.InvalidTest) as refusal:
        answer(case)
    message = case["expected"]["message"].removeprefix(CALL)
    assert message in (str(refusal.value), refusal.value.code)
