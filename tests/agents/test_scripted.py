"""Agents whose answers are written down."""

from typing import Any

import pytest

import asl
from asl.agents.scripted import check_script

from .workflows import caught, for_each, retried, task

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ({"return": {"a": 1}}, {"a": 1}),
        ({"return": None}, None),
        ({"echo": True}, {"q": 1}),
        ({"table": [{"when": {"q": 2}, "then": {"hang": 1}}, {"then": {"echo": True}}]}, {"q": 1}),
        ({"table": [{"when": {"q": {"$type": "number"}}, "then": {"return": "n"}}]}, "n"),
        ({"sequence": [{"return": "first"}, {"return": "second"}]}, "first"),
        ({"return": 1, "delay": 5}, 1),
    ],
)
def test_a_script_answers(script: Any, output: Any) -> None:
    """Each kind of script gives what it says."""
    assert asl.run(task(), {"q": 1}, agents={"A": script}, clock="virtual").output == output


def test_a_sequence_goes_on_with_its_last_answer() -> None:
    """Calls beyond the end of a sequence repeat the last script."""
    script = {"sequence": [{"return": 1}, {"return": 2}]}
    workflow = for_each(4, MaxConcurrency=1)
    assert asl.run(workflow, [0, 0, 0, 0], agents={"A": script}).output == [1, 2, 2, 2]


def test_a_script_serves_every_execution_from_its_start() -> None:
    """A script that is bound to two runs answers both alike."""
    script = {"sequence": [{"return": 1}, {"return": 2}]}
    assert [asl.run(task(), agents={"A": script}).output for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("script", "name", "cause"),
    [
        ({"raise": {"Error": "Busy", "Cause": "later"}}, "Busy", "later"),
        ({"raise": {"Error": "Busy"}}, "Busy", ""),
        ({"raise": {}}, "States.TaskFailed", ""),
        ({"table": [{"when": 1, "then": {"return": 1}}]}, "States.TaskFailed", "no row"),
    ],
)
def test_a_script_fails(script: Any, name: str, cause: str) -> None:
    """A scripted error has the name and the cause that are written down."""
    result = asl.run(caught(name), agents={"A": script})
    assert result.output["Error"] == name
    assert cause in result.output["Cause"]


def test_retry_takes_the_next_answer_of_a_sequence() -> None:
    """A retry is a call like any other."""
    script = {"sequence": [{"raise": {"Error": "Busy"}}, {"return": "done"}]}
    assert asl.run(retried("Busy"), agents={"A": script}, clock="virtual").output == "done"


def test_delays_take_virtual_time_only() -> None:
    """A day's delay passes on the execution's clock."""
    result = asl.run(task(), agents={"A": {"return": 1, "delay": 86400}}, clock="virtual")
    assert (result.output, result.elapsed) == (1, 86400)


def test_a_script_that_hangs_is_ended_by_the_timeout() -> None:
    """A call that never answers is a timeout for Catch."""
    workflow = caught("States.Timeout", TimeoutSeconds=10)
    result = asl.run(workflow, agents={"A": {"hang": True}}, clock="virtual")
    assert (result.output["Error"], result.elapsed) == ("States.Timeout", 10)


def test_a_scripted_heartbeat_keeps_the_call_alive() -> None:
    """`heartbeat` is the time between signs of life during the delay."""
    workflow = task(HeartbeatSeconds=3, TimeoutSeconds=60)
    alive = {"return": 1, "delay": 20, "heartbeat": 2}
    silent = {"return": 1, "delay": 20}
    assert asl.run(workflow, agents={"A": alive}, clock="virtual").ok
    assert asl.run(workflow, agents={"A": silent}, clock="virtual").error == "States.Timeout"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({}, "exactly one of"),
        ({"return": 1, "echo": True}, "exactly one of"),
        ({"retrun": 1}, "did you mean 'return'"),
        ({"return": 1, "delay": -1}, r"script\.delay: a number of seconds above 0"),
        ({"raise": "Busy"}, r"script\.raise: an object"),
        ({"sequence": []}, r"script\.sequence: a list"),
        ({"sequence": [{"return": 1}, {"nope": 1}]}, r"script\.sequence\[1\]: unknown key"),
        ({"table": [{"when": 1}]}, r"script\.table\[0\]: a row has 'then'"),
        ({"table": [{"then": {}}]}, r"script\.table\[0\]\.then: exactly one of"),
        ([], "a script is an object"),
    ],
)
def test_a_wrong_script_is_refused_with_its_place(script: Any, message: str) -> None:
    """A script is checked when it is bound, down to its last part."""
    with pytest.raises(asl.AslError, match=message):
        check_script(script)
