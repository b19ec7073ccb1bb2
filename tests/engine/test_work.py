"""Work of an execution: it is bounded for each state, and lets other executions run in between."""

import asyncio
from functools import partial
from typing import Any

import pytest

import asl
from asl.core.profile import DEFAULT, UNBOUNDED, profile_named
from asl.core.work import LIMITS, WorkLimits, WorkMeter

HALF = "($f := function($n) { $n > 30000 ? 0 : $f($n + 1) }; $f(1))"
"""Takes a good part of the steps that a state may take."""


def passes(*outputs: str) -> dict[str, Any]:
    names = [f"S{index}" for index in range(len(outputs))]
    states = {
        name: {"Type": "Pass", "Output": f"{{% {output} %}}", "Next": following}
        for name, output, following in zip(names, outputs, [*names[1:], "End"], strict=True)
    }
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "S0",
        "States": {**states, "End": {"Type": "Succeed"}},
    }


def test_steps_of_a_state_count_together() -> None:
    document = passes("[0]")
    document["States"]["S0"]["Output"] = [f"{{% {HALF} %}}"] * 10
    result = asl.run(document)
    assert result.error == "States.QueryEvaluationError"
    assert f"exceeded {LIMITS.steps} steps" in (result.cause or "")


def test_every_state_has_all_steps_for_itself() -> None:
    assert asl.run(passes(*[HALF] * 10)).ok


def test_history_of_states_that_compute_much_is_complete() -> None:
    result = asl.run(passes(*[HALF] * 10))
    assert result.visited == [*(f"S{index}" for index in range(10)), "End"]
    assert sum(event.type == "PassStateExited" for event in result.events) == 10


def test_execution_that_computes_lets_others_run() -> None:
    async def turns() -> int:
        task = asyncio.ensure_future(asl.arun(passes(*[HALF] * 10)))
        count = 0
        while not task.done():
            await asyncio.sleep(0)
            count += 1
        assert task.result().ok
        return count

    assert asyncio.run(turns()) >= 10


def looping(**fields: Any) -> dict[str, Any]:
    task = {"Type": "Task", "Agent": "a", "Next": "A", **fields}
    return {"StartAt": "A", "States": {"A": task}}


def failing(data: Any) -> Any:
    raise ValueError("no")


def test_loop_of_tasks_ends_at_max_effects() -> None:
    calls: list[Any] = []
    profile = DEFAULT.with_limits(max_effects=50)
    result = asl.run(looping(), {}, agents={"a": calls.append}, profile=profile)
    assert (result.error, len(calls)) == ("States.Runtime", 50)
    assert "more than 50 attempts" in (result.cause or "")


def test_task_that_catches_itself_ends_at_max_effects() -> None:
    profile = DEFAULT.with_limits(max_effects=50)
    document = looping(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "A"}])
    result = asl.run(document, {}, agents={"a": failing}, profile=profile)
    assert result.error == "States.Runtime"


def test_retries_count_as_attempts() -> None:
    profile = DEFAULT.with_limits(max_effects=50)
    retry = {"ErrorEquals": ["States.ALL"], "MaxAttempts": 1000, "IntervalSeconds": 1}
    document = looping(Retry=[retry])
    clock = asl.VirtualClock()
    result = asl.run(document, {}, agents={"a": failing}, profile=profile, clock=clock)
    assert result.error == "States.Runtime"


def test_timeout_ends_a_loop_on_a_virtual_clock() -> None:
    document = looping() | {"TimeoutSeconds": 1}
    result = asl.run(document, {}, agents={"a": lambda data: data}, clock=asl.VirtualClock())
    assert result.error == "States.Timeout"


def test_items_of_nested_maps_count_together() -> None:
    inner = {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}},
        "End": True,
    }
    outer = {**inner, "ItemProcessor": {"StartAt": "M", "States": {"M": inner}}}
    document = {"StartAt": "All", "States": {"All": outer}}
    data = [[1] * 10] * 10
    assert asl.run(document, data, profile=DEFAULT.with_limits(max_items=110)).ok
    result = asl.run(document, data, profile=DEFAULT.with_limits(max_items=109))
    assert result.error == "States.Runtime"
    assert "more than 109 items" in (result.cause or "")


@pytest.mark.parametrize("name", ["default", "aws", "lenient"])
def test_bounds_of_a_profile_by_name(name: str) -> None:
    """A name gives bounds as it gives quotas, and the profile's own name tells them."""
    profile = profile_named(f"{name}:max_effects=7:max_items=none")
    assert profile is not None
    assert profile.max_effects == 7
    assert profile.max_items == UNBOUNDED
    assert profile.name == f"{name}:max_effects=7:max_items=none"
    assert profile.quotas is profile_named(name).quotas  # type: ignore[union-attr]
    assert profile.with_quotas(max_effects=25_000, max_items=250_000).name == name


def test_bound_of_attempts_is_lifted() -> None:
    """`profile` of a run takes the name of a profile with another bound."""
    document = {
        "StartAt": "W",
        "States": {"W": {"Type": "Map", "End": True, "ItemProcessor": {"StartAt": "P", "States": {
            "P": {"Type": "Pass", "End": True}}}}},
    }  # fmt: skip
    assert asl.run(document, [1, 2, 3], profile="default:max_items=2").error == "States.Runtime"
    assert asl.run(document, [1, 2, 3], profile="default:max_items=none").ok


def _loop(*calls: str, data: Any) -> asl.Result:
    names = [f"S{index}" for index in range(len(calls))]
    states = {
        name: {"Type": "Pass", "Parameters": {"r.$": call}, "ResultPath": "$.r", "Next": following}
        for name, call, following in zip(names, calls, [*names[1:], "End"], strict=True)
    }
    document = {"StartAt": "S0", "States": {**states, "End": {"Type": "Succeed"}}}
    return asl.run(document, data, prices={"m": {"input": 1, "output": 1}})


OBJECTS = [{"n": index, "same": list(range(1000))} for index in range(600)]


@pytest.mark.parametrize(
    ("call", "data"),
    [
        ("States.ArrayContains($.a, $.w)", {"a": OBJECTS, "w": {**OBJECTS[0], "n": -1}}),
        ("States.ArrayUnique($.a)", {"a": OBJECTS}),
        ("States.StringSplit($.t, ',')", {"t": "a," * 4_000_000}),
    ],
)
def test_work_of_an_intrinsic_is_counted(call: str, data: Any) -> None:
    result = _loop(call, data=data)
    assert result.error == "States.Runtime"
    assert "takes more than 1500000 steps" in str(result.cause)


SIZED = {
    "o": {"a": OBJECTS[:20], **{str(index): index for index in range(5_000)}},
    "t": "é" * 500_000,
}


@pytest.mark.parametrize(
    "call",
    [
        "States.TokenCount($.t)",
        "States.TokenCount($.o)",
        "States.Truncate($.o, 10)",
        "States.Truncate($.t, 1000000)",
        "States.EstimateCost($.o, 'm')",
        "States.Merge($.o, $.o)",
    ],
)
def test_work_of_measuring_is_counted(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call counts the size of the value that it measures or merges."""
    meter = partial(WorkMeter, WorkLimits(steps=30_000))
    monkeypatch.setattr("asl.engine.execution.WorkMeter", meter)
    calls = f"States.Array({', '.join([call] * 20)})"
    result = _loop(calls, data=SIZED)
    assert result.error == "States.Runtime"
    assert "takes more than 30000 steps" in str(result.cause)
    assert _loop(call, data=SIZED).ok


def test_merge_of_many_arguments_counts_all_that_it_copies() -> None:
    """The whole of an object is copied for each argument that it is merged with."""
    wide = {str(index): index for index in range(20_000)}
    call = f"States.Merge($.w{', $.one' * 300})"
    result = _loop(call, data={"w": wide, "one": {"a": 1}})
    assert result.error == "States.Runtime"


def test_intrinsics_let_others_run_in_between() -> None:
    """States that handle much text are work as those of JSONata are."""
    document = {
        "StartAt": "A",
        "States": {
            "A": {
                "Type": "Pass",
                "Parameters": {"t.$": "$.t", "r.$": "States.StringToJson($.t)"},
                "Next": "B",
            },
            "B": {
                "Type": "Pass",
                "Parameters": {"t.$": "States.JsonToString($.r)"},
                "Next": "A",
            },
        },
    }
    profile = DEFAULT.with_limits(max_transitions=60)
    ticks = 0

    async def beside() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def both() -> asl.Result:
        other = asyncio.ensure_future(beside())
        result = await asl.arun(document, {"t": "[" + "1," * 100_000 + "1]"}, profile=profile)
        other.cancel()
        return result

    assert asyncio.run(both()).error == "States.Runtime"
    assert ticks > 3


@pytest.mark.parametrize("profile", ["default", "aws"])
def test_paths_of_a_state_count_together(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that takes too many steps fails its state; it is not an absent value."""
    meter = partial(WorkMeter, WorkLimits(steps=30_000))
    monkeypatch.setattr("asl.engine.execution.WorkMeter", meter)
    data = {"a": [{"n": index} for index in range(2_000)]}

    def choice(count: int) -> dict[str, Any]:
        rule = {"And": [{"Variable": "$..n", "IsPresent": True}] * count, "Next": "End"}
        states = {"C": {"Type": "Choice", "Choices": [rule]}, "End": {"Type": "Succeed"}}
        return {"StartAt": "C", "States": states}

    assert asl.run(choice(1), data, profile=profile).ok
    result = asl.run(choice(20), data, profile=profile)
    assert result.error == "States.Runtime"
    assert "takes more than 30000 steps" in str(result.cause)
