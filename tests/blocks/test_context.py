"""Agents of every kind are shown what a Context has chosen, and nothing of it is shared."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.agents import HttpAgent, ProcessAgent
from asl.core.profile import DEFAULT
from asl.core.values import compact
from asl.expr.intrinsics.numeric import tokens_of
from asl.expr.paths import parse_path
from asl.expr.paths.nodes import locate, node_path, remove_nodes
from asl.expr.paths.selection import select

from ..agents.servers import serving

pytestmark = pytest.mark.quick

Json = Any


def shown(data: Json, agent: Any, **block: Json) -> Json:
    """Return what a Task with this Context comes to."""
    task = {"Type": "Task", "Agent": "A", "Context": block, "End": True}
    result = asl.run({"StartAt": "A", "States": {"A": task}}, data, agents={"A": agent})
    assert result.ok, result.cause
    return result.output


def test_a_function_gets_a_context_of_its_own() -> None:
    """It may change what it gets; the data of the execution stay."""

    def agent(parameters: Json, call: asl.Call) -> Json:
        call.context["parts"][0]["value"]["x"] = 2
        return [call.context, parameters]

    context, parameters = shown({"a": {"x": 1}}, agent, Strategy="sliding_window")
    assert context["parts"][0]["value"] == {"x": 1}
    assert parameters == {"a": {"x": 1}}


def test_a_program_gets_it_with_the_call() -> None:
    """It stands beside the key and the attempt."""
    code = "import json; print(json.dumps({'return': json.loads(input())['call']['context']}))"
    agent = ProcessAgent([sys.executable, "-c", code])
    assert shown({"a": 1}, agent, MaxTokens=5)["tokens"] == 1
    keys = "import json; print(json.dumps({'return': list(json.loads(input())['call'])}))"
    document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "A", "End": True}}}
    agents = {"A": ProcessAgent([sys.executable, "-c", keys])}
    assert "context" not in asl.run(document, agents=agents).output


CONTAINERS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text("ab é€😀", max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)
PATHS = st.sampled_from(["$", "$.a", "$.b[0]", "$..a", "$[*]", "$.a[-1]", "$['a','c']", "$.a[0:2]"])


@given(
    CONTAINERS,
    st.integers(1, 30),
    st.sampled_from(["sliding_window", "priority_based", "semantic"]),
    st.lists(PATHS, max_size=3),
    st.lists(PATHS, max_size=2),
    st.lists(PATHS, max_size=2),
)
def test_a_context_is_never_larger_than_it_may_be(
    data: Json, most: int, strategy: str, some: list[str], include: list[str], exclude: list[str]
) -> None:
    """Its parts add up to at most MaxTokens; what is excluded stands in no part."""
    block: Json = {"Strategy": strategy, "MaxTokens": most, "Query": "a b", "Priority": some}
    block |= {"Candidates": some, "Include": include, "Exclude": exclude}
    task = {"Type": "Task", "Agent": "A", "Context": block, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    result = asl.run(document, data, agents={"A": {"echo": "context"}})
    if not result.ok:
        assert result.error == "Agent.ContextOverflow"
        return
    parts = result.output["parts"]
    assert result.output["tokens"] == sum(part["tokens"] for part in parts) <= most
    for part in parts:
        assert part["tokens"] == tokens_of("count", part["value"], DEFAULT)
    assert sum(part["truncated"] for part in parts) <= 1
    paths = [part["path"] for part in parts]
    assert len(paths) == len(set(paths))


@given(CONTAINERS, PATHS)
def test_located_nodes_are_those_that_a_path_selects(data: Json, text: str) -> None:
    """Both walks find the same, each node can be named, and without them nothing is left there."""
    path = parse_path(text)
    nodes = locate(path, data)
    assert [value for _, value in nodes] == select(path.segments, data, data)
    for steps, value in nodes:
        assert locate(parse_path(node_path(steps)), data) == [(steps, value)]
    left = remove_nodes(data, (steps for steps, _ in nodes))
    if not nodes:
        assert compact(left) == compact(data)
    if text in ("$.a", "$..a", "$[*]"):
        assert locate(path, left) == []


def test_the_path_of_a_node_with_a_strange_name() -> None:
    """It is quoted."""
    assert node_path(("a b", 0, "it's", "\\")) == "$['a b'][0]['it\\'s']['\\\\']"


@pytest.mark.parametrize(("most", "elapsed"), [(25, 2), (26, 1)])
def test_it_counts_for_the_budget(most: int, elapsed: int) -> None:
    """What is reserved for each of two calls: 1 token of parameters, 11 of context, 1 of answer."""
    inner = {"Type": "Task", "Agent": "A", "Parameters": {}, "Generation": {"MaxTokens": 1}}
    inner |= {"Context": {"Strategy": "sliding_window"}, "End": True}
    branches = [{"StartAt": name, "States": {name: inner}} for name in ("T", "U")]
    fork = {"Type": "Parallel", "Branches": branches, "End": True}
    document = {"StartAt": "P", "Budget": {"MaxTokens": most}, "States": {"P": fork}}
    agents = {"A": {"return": {"_tokens": 7}, "delay": 1}}
    result = asl.run(document, {"a": "x" * 44}, agents=agents, clock="virtual")
    assert (result.usage["tokens"], result.elapsed) == (14, elapsed)


@pytest.mark.parametrize(("data", "there"), [({"a": 1}, True), ([1], False)])
def test_an_endpoint_gets_it_beside_the_parameters(data: Json, there: bool) -> None:
    """As a member of its own in the body, where that is an object."""
    with serving(lambda exchange: exchange.answer(200, exchange.json)) as server:
        said = shown(data, HttpAgent(server.url), Strategy="sliding_window")
    assert said["_context"]["tokens"] == 1 if there else said == data


def test_a_model_reads_it_before_the_prompt() -> None:
    """Each part is a text of its own, with its path."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from asl.agents.model import ModelAgent

    asked: list[Any] = []

    def model(messages: list[Any], info: Any) -> ModelResponse:
        asked.extend(part.content for message in messages for part in message.parts)
        return ModelResponse([TextPart("ok")])

    data = {"prompt": "why?", "notes": ["one", {"n": 2}]}
    block = {"Strategy": "priority_based", "Priority": ["$.notes[1]", "$.notes[0]"]}
    shown(data, ModelAgent(FunctionModel(model)), **block)
    assert asked == [['$.notes[1]: {"n":2}', "$.notes[0]: one", "why?"]]


def test_unbound_summariser_is_found_before_the_run() -> None:
    """The check knows all agents that a state may call."""
    block = {"Summarize": {"When": "Always", "Using": "Shorten"}}
    task = {"Type": "Task", "Agent": "A", "Context": block, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    found = asl.check(document, agents=["A", "Shortener"])
    assert [(each.code, each.pointer) for each in found] == [
        ("V-TASK-03", "/States/A/Context/Summarize/Using")
    ]


def test_a_summary_is_asked_for_once(tmp_path: Path) -> None:
    """A recovery builds the same context of the summary that is recorded."""
    calls: list[str] = []

    def shorten(parameters: Json) -> Json:
        calls.append("shorten")
        return {"summary": f"summary {len(calls)}"}

    def agent(parameters: Json, call: asl.Call) -> Json:
        calls.append("agent")
        if calls.count("agent") == 1:
            raise KeyboardInterrupt
        return call.context["parts"][0]["value"]

    block = {"Summarize": {"When": "Always", "Using": "S"}}
    task = {"Type": "Task", "Agent": "A", "Context": block, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    with asl.open_store(tmp_path / "s.db", agents={"A": agent, "S": shorten}) as store:
        with pytest.raises(KeyboardInterrupt):
            store.run(document, {"a": 1}, name="e")
        assert store.resume("e").output == "summary 1"
    assert calls == ["shorten", "agent", "agent"]
