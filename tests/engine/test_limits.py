"""Limits hold exactly: transitions, payload sizes, depth."""

from typing import Any

import pytest

import asl
from asl.core.profile import AWS, DEFAULT

pytestmark = pytest.mark.quick

LOOP = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.never", "IsPresent": True, "Next": "End"}],
            "Default": "B",
        },
        "B": {"Type": "Pass", "Next": "A"},
        "End": {"Type": "Succeed"},
    },
}


@pytest.mark.parametrize("limit", [1, 2, 9_999, 10_000, 10_001, 25_000])
def test_an_endless_loop_stops_at_the_limit(limit: int) -> None:
    """Exactly as many states are entered as are allowed."""
    program = asl.compile(LOOP, profile=DEFAULT.with_limits(max_transitions=limit))
    result = asl.run(program)
    assert result.error == "States.Runtime"
    assert len(result.visited) == limit


def test_a_machine_may_use_the_limit_up() -> None:
    """A machine that ends with its last allowed transition succeeds."""
    states = {f"S{i}": {"Type": "Pass", "Next": f"S{i + 1}"} for i in range(9)}
    document = {"StartAt": "S0", "States": {**states, "S9": {"Type": "Pass", "End": True}}}
    assert asl.run(document, profile=DEFAULT.with_limits(max_transitions=10)).ok
    assert not asl.run(document, profile=DEFAULT.with_limits(max_transitions=9)).ok


TASK = {"StartAt": "T", "States": {"T": {"Type": "Task", "Agent": "A", "End": True}}}
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


@pytest.mark.parametrize(("size", "ok"), [(1000, True), (1001, False)])
def test_an_answer_is_as_large_as_allowed(size: int, ok: bool) -> None:
    """The size is that of the compact JSON text in UTF-8, quotes included."""

    def agent(_: Any) -> str:
        return "é" * ((size - 2) // 2) + "x" * (size % 2)

    result = asl.run(TASK, agents={"A": agent}, profile=DEFAULT.with_limits(max_payload=1000))
    assert result.ok is ok
    assert ok or result.error == "States.DataLimitExceeded"


@pytest.mark.parametrize(("size", "ok"), [(256 * 1024, True), (256 * 1024 + 1, False)])
def test_the_aws_limit_holds_for_every_state(size: int, ok: bool) -> None:
    """Also for the input of a state that calls nobody."""
    result = asl.run(PASS, "x" * (size - 2), profile=AWS.with_quotas(input_characters=None))
    assert result.ok is ok
    assert ok or result.error == "States.DataLimitExceeded"
