"""Nested calls: tools, agents as tools and hooks spend the reservation of the outer call."""

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from tests.examples import examples

pytestmark = pytest.mark.quick

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
        width = max(parameters, 1) if at_once else 1
        for first in range(0, parameters, width):
            calls = [call.tools.call("search", {"n": first + n}) for n in range(width)]
            for done in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(done, Exception):
                    assert done.name == "States.BudgetExceeded"
        return {"_tokens": tokens, "_cost": tokens / 100}

    return answer


@settings(max_examples=examples(30, 10_000), deadline=None)
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


@settings(max_examples=examples(30), deadline=None)
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


def map_of(agent: str, budget: Json) -> Json:
    """Return a Map with a budget."""
    task = {"Type": "Task", "Agent": agent, "End": True}
    processor = {"StartAt": "T", "States": {"T": task}}
    return {"Type": "Map", "ItemProcessor": processor, "Budget": budget, "End": True}


def in_workflow(budget: Json, state: Json) -> Json:
    """Return a workflow of one state."""
    return {"StartAt": "S", "Budget": budget, "States": {"S": state}}


TOKENS: Json = {"MaxTokens": 8}
CHILD: Json = {"Type": "Workflow", "WorkflowId": "child", "End": True}
LIMITED: dict[str, tuple[Json, Json]] = {
    "workflow": (in_workflow(TOKENS, map_of("Outer", {})), None),
    "cost": (in_workflow({"MaxCost": 0.08}, map_of("Outer", {})), None),
    "state": (in_workflow({}, map_of("Outer", TOKENS)), None),
    "pool": (in_workflow({"Pool": "p"}, map_of("Outer", {})), None),
    "part of a pool": (
        in_workflow({"Pool": "p", "MaxFromPool": "0.08"}, map_of("Outer", {})),
        None,
    ),
    "hour": (in_workflow({"MaxCostPerHour": 0.08}, map_of("Outer", {})), None),
    "child": (in_workflow({}, CHILD), in_workflow(TOKENS, map_of("Outer", {}))),
    "pool of a child": (in_workflow({}, CHILD), in_workflow({"Pool": "p"}, map_of("Outer", {}))),
    "parent": (in_workflow(TOKENS, CHILD), in_workflow({}, map_of("Outer", {}))),
}


@pytest.mark.parametrize("level", LIMITED)
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("seconds", [0, 1])
@pytest.mark.parametrize("items", [[0, 1, 1], [0, 1, 2, 1, 3]])
def test_concurrent_calls_that_use_more_tools_than_before(
    level: str, at_once: bool, seconds: int, items: Json
) -> None:
    """The limit of 8 is exceeded by no more than one call with its tools."""
    document, child = LIMITED[level]
    total, calls = 0, []

    def spend(number: int, tokens: int) -> Json:
        nonlocal total
        total += tokens
        calls[number] += tokens
        return {"_tokens": tokens, "_cost": tokens / 100}

    async def outer(parameters: Json, call: asl.Call) -> Json:
        number = len(calls)
        calls.append(0)
        await call.sleep(1)
        width = max(parameters, 1) if at_once else 1
        for _ in range(0, parameters, width):
            uses = [call.tools.call("search", {"of": number}) for _ in range(width)]
            with contextlib.suppress(asl.StateError):
                await asyncio.gather(*uses)
        return spend(number, 2)

    async def search(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(seconds)
        return spend(parameters["of"], 5)

    result = asl.run(
        document,
        items,
        agents={"Outer": outer},
        tools={"search": search},
        workflows={} if child is None else {"child": child},
        pools={"p": "0.08"},
        clock="virtual",
    )
    assert len(calls) > 2
    assert total <= 8 + max(calls)
    assert result.usage["tokens"] == total


def test_a_call_beside_one_of_unknown_size_does_not_exceed_the_limit() -> None:
    """Both use more than what is reserved for them: only the one of unknown size may."""
    total, calls = 0, {"First": 0, "Known": 0, "Unknown": 0}

    def spend(name: str, tokens: int) -> Json:
        nonlocal total
        total += tokens
        calls[name] += tokens
        return {"_tokens": tokens}

    def agent(tokens: int, tools: int, seconds: float) -> Any:
        async def answer(parameters: Json, call: asl.Call) -> Json:
            await call.sleep(seconds)
            for _ in range(tools + parameters["more"]):
                with contextlib.suppress(asl.StateError):
                    await call.tools.call("search", {"of": parameters["name"]})
            return spend(parameters["name"], tokens)

        return answer

    async def search(parameters: Json, call: asl.Call) -> Json:
        await call.sleep(4)
        return spend(parameters["of"], 5)

    def task(agent: str, name: str, more: int, **rest: Json) -> Json:
        return {"Type": "Task", "Agent": agent, "Parameters": {"name": name, "more": more}, **rest}

    branches = [
        {"StartAt": name, "States": {name: task(name, name, more, End=True)}}
        for name, more in (("Unknown", 0), ("Known", 1))
    ]
    document = {
        "StartAt": "First",
        "Budget": {"MaxTokens": 16},
        "States": {
            "First": task("Known", "First", 0, Next="Both"),
            "Both": {"Type": "Parallel", "Branches": branches, "End": True},
        },
    }
    asl.run(
        document,
        agents={"Known": agent(2, 1, 1), "Unknown": agent(20, 1, 2)},
        tools={"search": search},
        clock="virtual",
    )
    assert calls == {"First": 7, "Known": 7, "Unknown": 25}
    assert total <= 16 + 25
