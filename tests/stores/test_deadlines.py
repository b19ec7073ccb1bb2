"""No time that was told or is waited for moves when a process dies and another goes on."""

import asyncio
from typing import Any

import pytest

import asl
from asl import VirtualClock
from asl.executions import Store
from tests.deaths import lived
from tests.stores.conftest import Place

DOWN = 400.0
"""Seconds for which nobody is at work on the execution."""
INPUT = {"few": [1], "count": 0, "text": "x" * 2000}
"""So large that no position is taken instead of a small answer."""
TASK = {"Type": "Task", "Agent": "Work", "ResultPath": None}
WAIT = {"Type": "Wait", "Seconds": 600, "End": True}
LOOK = {"Type": "Pass", "Parameters": {"at.$": "$$.State.EnteredTime"}, "End": True}


def each(state: Any, **fields: Any) -> Any:
    """A Map whose items go through one state."""
    processor = {"StartAt": "Do", "States": {"Do": state}}
    return {"Type": "Map", "ItemsPath": "$.few", "ItemProcessor": processor, **fields}


AFTER_A_FORK = {
    "Each": each({**TASK, "End": True}, ResultPath=None, Next="Nap"),
    "Nap": WAIT,
}
AFTER_LONG_COMPUTING = {
    "Count": {
        "Type": "Pass",
        "Parameters": {"count.$": "States.MathAdd($.count, 1)"},
        "Next": "More",
    },
    "More": {
        "Type": "Choice",
        "Choices": [{"Variable": "$.count", "NumericLessThan": 6000, "Next": "Count"}],
        "Default": "Nap",
    },
    "Nap": WAIT,
}
IN_A_CHILD_THAT_COMPUTES = {
    "Each": each(LOOK, ResultPath="$.each", Next="First"),
    "First": {**TASK, "Next": "Second"},
    "Second": {**TASK, "OutputPath": "$.each[0].at", "End": True},
}


def lived_twice(path: Place, states: Any, effect: int) -> tuple[Any, float]:
    """Die before the given effect, go on later; return the output and the seconds that it took."""
    document = {"StartAt": next(iter(states)), "States": states}
    clock = VirtualClock()
    store = Store(path, clock=clock, agents={"Work": lambda data: 1})
    first = lived(store, lambda: store.run(document, INPUT, name="it"), effect, "effect.ready")
    assert first is None
    later = VirtualClock(clock.now() + DOWN)
    with Store(path, clock=later, agents={"Work": lambda data: 1}) as store:
        result = store.resume("it")
        return result.output, result.ended - clock.start


def test_a_wait_after_a_fork_keeps_its_deadline(place: Place) -> None:
    """It begins when the fork was joined, not when the children's answers are read again."""
    assert lived_twice(place, AFTER_A_FORK, 3)[1] == 600


def test_a_wait_after_long_computing_keeps_its_deadline(place: Place) -> None:
    """The clock is looked at now and then while states are computed, and never again for them."""
    assert lived_twice(place, AFTER_LONG_COMPUTING, 1)[1] == 600


def test_what_a_child_computes_comes_to_the_same(place: Place) -> None:
    """It may have read the time, and others have seen what came of it."""
    output, _ = lived_twice(place, IN_A_CHILD_THAT_COMPUTES, 3)
    assert output == "2024-01-01T00:00:00.000Z"


async def fails(data: Any, call: asl.Call) -> Any:
    await call.sleep(4)
    raise asl.StateError("States.RateLimitExceeded", "too many")


async def babbles(data: Any, call: asl.Call) -> Any:
    await call.sleep(4)
    return "a secret"


FALLS_BACK: Any = {"Model": {"Preferred": "m", "Fallback": ["n", "o", "p"]}}
ASKS_AGAIN: Any = {
    "Guardrails": {
        "Output": {
            "Rules": [{"Type": "pattern", "Block": ["secret"], "Action": "retry"}],
            "MaxRetries": 3,
        }
    }
}


@pytest.mark.parametrize(("agent", "block"), [(fails, FALLS_BACK), (babbles, ASKS_AGAIN)])
@pytest.mark.parametrize("effect", [1, 2, 3])
def test_further_calls_of_an_attempt_have_what_is_left(
    effect: int, agent: Any, block: Any, place: Place
) -> None:
    """Whichever process makes them: the timeout of a state is that of all its calls together."""
    task = {"Type": "Task", "Agent": "Work", "TimeoutSeconds": 10, **block, "End": True}
    path, clock = place, VirtualClock()
    store = Store(path, clock=clock, agents={"Work": agent})
    document = {"StartAt": "T", "States": {"T": task}}
    first = lived(store, lambda: store.run(document, {}, name="it"), effect, "effect.ready")
    assert first is None
    with Store(path, clock=VirtualClock(clock.now()), agents={"Work": agent}) as store:
        result = store.resume("it")
    assert result.error == "States.Timeout"
    assert result.ended - clock.start == pytest.approx(10)


RETRIED: Any = {"Retry": [{"ErrorEquals": ["Flaky"], "IntervalSeconds": 100}], "End": True}
DIRECTLY = {"Type": "Task", "Agent": "Work", **RETRIED}
WITH_ITS_BRANCH = {
    "Type": "Parallel",
    "Branches": [
        {"StartAt": "In", "States": {"In": {"Type": "Task", "Agent": "Work", "End": True}}}
    ],
    **RETRIED,
}


@pytest.mark.parametrize("state", [DIRECTLY, WITH_ITS_BRANCH])
def test_a_retry_that_is_interrupted_waits_for_its_time(state: Any, place: Place) -> None:
    """Whoever stops the process does not shorten what a child waits for."""
    path, clock = place, VirtualClock()
    document = {"StartAt": "Each", "States": {"Each": each(state, End=True)}}
    called: list[float] = []

    def work(data: Any) -> int:
        called.append(clock.now() - clock.start)
        if len(called) == 1:
            raise asl.StateError("Flaky", "once")
        return 1

    async def interrupted() -> None:
        with Store(path, clock=clock, agents={"Work": work}) as store:
            run = asyncio.ensure_future(store.arun(document, {"few": [1]}, name="it"))
            await asyncio.sleep(30)
            run.cancel()
            await asyncio.wait([run])

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        runner.run(interrupted())
    with Store(path, clock=clock, agents={"Work": work}) as store:
        assert store.resume("it").ok
    assert called == [0, 100]


def late_timeout(path: Place, resumed_after: float) -> Any:
    """Return the result of an execution that pauses after 8 s and goes on later.

    Its approval times out after 15 s, while no process is at work on it.
    """
    ask = {"Type": "Approval", "Prompt": "?", "Timeout": "15s", "Next": "Nap"}
    ask["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "Nap"}]  # type: ignore[assignment]
    task = {
        "Type": "Task",
        "Agent": "Work",
        "Parameters": {"at.$": "$$.State.EnteredTime"},
        "End": True,
    }
    nap = {"Type": "Wait", "Seconds": 1, "Next": "Do"}
    asking = {"StartAt": "Ask", "States": {"Ask": ask, "Nap": nap, "Do": task}}
    waiting = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 8, "End": True}}}
    both = {"Type": "Parallel", "Branches": [asking, waiting], "End": True}
    clock = VirtualClock()
    with Store(path, clock=clock, agents={"Work": lambda data: data}) as store:
        assert store.run({"StartAt": "P", "States": {"P": both}}, {}, name="it").pending
    later = VirtualClock(clock.start + resumed_after)
    with Store(path, clock=later, agents={"Work": lambda data: data}) as store:
        result = store.resume("it")
        assert result.events  # while the store is open
        return result


def test_history_times_never_decrease_after_a_late_timeout(place: Place) -> None:
    """The timeout lies before the resumption that is told already, and is told with its time."""
    result = late_timeout(place, 20)
    times = [event.timestamp - result.execution.started for event in result.events]
    assert result.ok
    assert times == sorted(times)
    assert max(times) == 20


def test_history_shows_what_a_late_state_handed_over(place: Place) -> None:
    """The agent was given the time at which its state began; the history repeats that one."""
    result = late_timeout(place, 15.5)
    (scheduled,) = (event for event in result.events if event.type == "TaskScheduled")
    assert scheduled.details["parameters"] == result.output[0]


def test_history_times_never_decrease_when_the_system_time_was_set_back(place: Place) -> None:
    """It was set back between two processes, to before the start of the execution."""
    result = late_timeout(place, -5)
    times = [event.timestamp for event in result.events]
    assert times == sorted(times)
    assert result.ended >= result.execution.started
