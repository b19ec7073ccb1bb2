"""Causes of errors: whoever follows them comes to an end."""

import itertools
from typing import Any

import pytest

import asl
from asl.core.errors import StateError, cause_for, causes
from asl.states.errors import HeartbeatMissed

pytestmark = pytest.mark.quick

TASK = {
    "StartAt": "A",
    "States": {"A": {"Type": "Task", "Agent": "A", "HeartbeatSeconds": 5, "End": True}},
}


def chain(error: BaseException | None) -> list[BaseException]:
    """Follow causes as foreign code does, for at most 20 errors."""
    found: list[BaseException] = []
    while error is not None and len(found) < 20:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def raised_from_itself(error: Exception) -> Exception:
    try:
        raise error from error
    except Exception as caught:
        return caught


def in_a_circle() -> Exception:
    first, second, third = ValueError("a"), KeyError("b"), TypeError("c")
    first.__cause__, second.__cause__, third.__context__ = second, third, first
    return first


def named_in_a_circle() -> Exception:
    error = StateError("Busy", "later")
    error.__cause__ = ValueError("x")
    error.__cause__.__context__ = error
    return error


@pytest.mark.parametrize(
    "made",
    [
        lambda: raised_from_itself(ValueError("x")),
        lambda: raised_from_itself(StateError("Busy", "later")),
        lambda: raised_from_itself(HeartbeatMissed("gone")),
        in_a_circle,
        named_in_a_circle,
        lambda: HeartbeatMissed("gone"),
        lambda: ExceptionGroup("g", [raised_from_itself(ValueError("x"))]),
    ],
)
@pytest.mark.parametrize("limits", [True, False])
def test_error_of_agent_has_causes_without_circle(made: Any, limits: bool) -> None:
    async def agent(parameters: Any) -> Any:
        raise made()

    task = {**TASK, "States": {"A": dict(TASK["States"]["A"])}}  # type: ignore[index]
    if not limits:
        del task["States"]["A"]["HeartbeatSeconds"]
    for function in (agent, lambda parameters: (_ for _ in ()).throw(made())):
        result = asl.run(task, {}, agents={"A": function}, clock="virtual")
        assert result.status in ("FAILED", "TIMED_OUT")
        assert result.origin is not None
        found = chain(result.origin[5])
        assert len(found) < 20
        assert len(found) == len({id(each) for each in found})


def test_cause_for_cuts_every_circle() -> None:
    made = [ValueError(str(number)) for number in range(4)]
    for edges in itertools.product(range(4), repeat=4):
        errors = [ValueError(str(number)) for number in range(4)]
        for error, to in zip(errors, edges, strict=True):
            error.__cause__ = errors[to]
        errors[0].__cause__ = cause_for(errors[0], errors[edges[0]])
        assert len(chain(errors[0])) <= 4
    assert cause_for(made[0], made[1]) is made[1]


def test_causes_yields_each_error_once() -> None:
    error = in_a_circle()
    assert [type(each) for each in causes(error)] == [ValueError, KeyError, TypeError]
