"""Calls within calls: tools, agents as tools and hooks spend what was set aside, or more is."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl

Json = Any


def document(limit: int, hooks: bool, own: int | None = None) -> Json:
    """A Map whose agent uses tools, with hooks around them."""
    tools: Json = {"Allowed": ["search"]}
    if hooks:
        tools["Hooks"] = {"Before": {"Agent": "Before"}, "After": {"Agent": "After"}}
    task: Json = {"Type": "Task", "Agent": "Outer", "Tools": tools, "End": True}
    if own is not None:
        task["Budget"] = {"MaxTokens": own}
    return {
        "StartAt": "M",
        "Budget": {"MaxTokens": limit},
        "States": {
            "M": {
                "Type": "Map",
                "ItemProcessor": {"StartAt": "T", "States": {"T": task}},
                "End": True,
            }
        },
    }


def spends(tokens: int, seconds: float = 1) -> Any:
    """An agent, or a tool, of which every call uses as much."""

    async def answer(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(seconds)
        return {"_tokens": tokens, "_cost": tokens / 100}

    return answer


def uses_tools(tokens: int, at_once: bool) -> Any:
    """An agent that uses its tool as often as it is told, before it is done."""

    async def answer(parameters: Json, call: asl.Call) -> Json:
        width = parameters if at_once else 1
        for first in range(0, parameters, width):
            calls = [call.tools.call("search", {"n": first + n}) for n in range(width)]
            for done in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(done, Exception):
                    assert done.name == "States.BudgetExceeded"
        return {"_tokens": tokens, "_cost": tokens / 100}

    return answer


@settings(max_examples=10_000 if settings().max_examples > 100 else 100, deadline=None)
@given(
    st.integers(1, 40),
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.tuples(*[st.integers(0, 40)] * 4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([{}, {"Pool": "p"}, {"MaxCostPerHour": 1}]),
    st.booleans(),
)
def test_never_over(
    sixteenth: int,
    items: list[int],
    sizes: tuple[int, ...],
    hooks: bool,
    at_once: bool,
    shared: Json,
    sized: bool,
) -> None:
    """Calls of which each keeps to its share never spend more than limit and what was reserved."""
    limit = 16 * sixteenth
    outer, tool, before, after = (min(each, sixteenth) for each in sizes)
    flow = document(limit, hooks)
    money = {name: each if name == "Pool" else limit / 100 for name, each in shared.items()}
    flow["Budget"] |= {"MaxCost": limit / 100, **money}
    if sized:
        task = flow["States"]["M"]["ItemProcessor"]["States"]["T"]
        task |= {"Model": {"Preferred": "m"}, "Generation": {"MaxTokens": max(outer, 1)}}
    result = asl.run(
        flow,
        items,
        agents={
            "Outer": uses_tools(outer, at_once),
            "Before": spends(before, 2),
            "After": spends(after),
        },
        tools={"search": spends(tool, 3)},
        pools={"p": limit / 100},
        prices={"m": "0.01"},
        clock="virtual",
    )
    usage = result.usage
    assert usage["tokens"] <= limit + usage["reserved"]["tokens"], usage
    assert usage["cost"] <= (limit / 100) + usage["reserved"]["cost"] + 1e-9, usage


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.lists(st.integers(0, 3), min_size=1, max_size=20), st.booleans())
def test_what_a_state_may_spend_is_for_its_calls_and_all_within(
    limit: int, items: list[int], at_once: bool
) -> None:
    """A visit with a budget of 20 spends no more than that and one call for each at once."""
    flow = document(limit, True, own=20)
    agents = {"Outer": uses_tools(4, at_once), "Before": spends(4, 2), "After": spends(4)}
    result = asl.run(flow, items, agents=agents, tools={"search": spends(4, 3)}, clock="virtual")
    usage = result.usage
    assert usage["tokens"] <= limit + usage["reserved"]["tokens"], usage


@pytest.mark.parametrize(
    "bounds", [{}, {"Generation": {"MaxTokens": 1}, "Model": {"Preferred": "m"}}]
)
def test_what_was_used_within_a_call_is_set_aside_for_the_next(bounds: Json) -> None:
    """An agent that uses nothing, whose tool uses 30: two run at once where 70 are left."""
    under_way = most = 0

    async def tool(parameters: Json, call: asl.Call) -> Json:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await call.sleep(1)
        under_way -= 1
        return {"_tokens": 30}

    flow = document(100, False)
    task = flow["States"]["M"]["ItemProcessor"]["States"]["T"]
    task |= bounds
    one = {**task, "Next": "M"}
    del one["End"]
    flow = {
        **flow,
        "StartAt": "One",
        "States": {"One": {**one, "Parameters": 1, "ResultPath": None}, **flow["States"]},
    }
    result = asl.run(
        flow,
        [1] * 10,
        agents={"Outer": uses_tools(0, False)},
        tools={"search": tool},
        clock="virtual",
    )
    assert most == 2
    assert result.usage["tokens"] == 120
    assert result.usage["reserved"]["tokens"] == (64 if bounds else 60)
    assert result.error == "States.BudgetExceeded"
