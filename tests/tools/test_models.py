"""Language models and their tools: pydantic-ai's function model asks for what it may not have."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import asl
from asl.agents import ModelAgent, Tool
from asl.agents.file import load_bindings

from .workflows import task, told

Json = Any
SEARCH = Tool("search", "Searches.", {"return": "found"})
DELETE = Tool("delete_file", "Deletes.", {"return": "gone"})


class Asking:
    """A model that makes these requests, one after the other, and then is done."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.asked = 0
        self.offered: list[list[str]] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered.append([tool.name for tool in info.function_tools])
        part = self.parts[self.asked] if self.asked < len(self.parts) else TextPart("done")
        self.asked += 1
        return ModelResponse(list(part) if isinstance(part, Sequence) else [part])

    def run(
        self, policy: Json, tools: Any = None, document: Json = None, **options: Any
    ) -> asl.Result:
        agent = ModelAgent(FunctionModel(self), tools=tools, **options)
        given = {"search": SEARCH, "delete_file": DELETE}
        whole = {**task(policy), **(document or {})}
        return asl.run(whole, {"prompt": "go"}, agents={"A": agent}, tools=given)


def test_a_model_is_offered_what_the_state_allows() -> None:
    """Of its own tools those that the policy leaves, also that of the document."""
    model = Asking()
    assert model.run({"Denied": ["delete*"]}, tools=[SEARCH, DELETE]).ok
    assert model.offered == [["search"]]
    model = Asking()
    assert model.run(None, [SEARCH, DELETE], {"DefaultTools": {"Allowed": []}}).ok
    assert model.offered == [[]]


def test_a_model_without_tools_is_offered_those_that_the_state_names() -> None:
    """The document says so by name; where it only denies, it says nothing of the kind."""
    model = Asking(ToolCallPart("search", {}))
    result = model.run({"Allowed": ["search"]})
    assert result.output["response"] == "done"
    assert model.offered == [["search"], ["search"]]
    assert told(result) == [("ToolCalled", "search", None)]
    for policy in (None, {"Denied": ["x"]}):
        model = Asking()
        model.run(policy)
        assert model.offered == [[]]


SPELLINGS = [
    "delete_file", "Delete_File", "DELETE_FILE", "delete-file", "deleteFile", "delete file",
    " delete_file", "delete_file ", "delete_file\n", "delete_file\u200b", "\u200edelete_file",
    "ｄelete_file", "dеlete_file", "delete_file()", "functions.delete_file", "tools/delete_file",
    "./delete_file", "delete_file;search", "search,delete_file", "*", "", "delete_file\u0000",
    "d%65lete_file", "search/../delete_file", "mcp://x/delete_file", "delete_file?", "answer",
    "final_result", "delete_file\u0301", "search\ndelete_file",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_reaches_a_forbidden_tool(spelling: str) -> None:
    """The call ends with the named error, every request is recorded, and nothing was done."""
    model = Asking(*[ToolCallPart(spelling, {"path": "x"})] * 5)
    result = model.run({"Denied": ["delete_file"]}, tools=[SEARCH, DELETE])
    assert result.error == "States.Permissions", result.cause
    assert told(result) == [("ToolRefused", spelling, "States.Permissions")] * model.asked
    assert model.asked == 2


def test_a_model_may_do_something_else() -> None:
    """A forbidden request that is not repeated does not end the call, and is recorded."""
    model = Asking(ToolCallPart("delete_file", {}), ToolCallPart("search", {}))
    result = model.run({"Denied": ["delete_file"]}, tools=[SEARCH, DELETE])
    assert result.output["response"] == "done"
    assert sorted(told(result)) == [
        ("ToolCalled", "search", None),
        ("ToolRefused", "delete_file", "States.Permissions"),
    ]


def test_tools_of_a_server_are_meant_by_both_names(tmp_path: Path) -> None:
    """A model is offered `add`; the policy may say `things/add`, also where a file names it."""
    server = Path(__file__).parents[1] / "agents" / "lean_mcp.py"
    (tmp_path / "agents.json").write_text(
        json.dumps(
            {
                "agents": {"A": {"model": "openai:gpt-5", "key": "k", "tools": ["things/*"]}},
                "servers": {"things": {"command": [sys.executable, "-S", str(server), "things"]}},
            }
        )
    )
    bound = load_bindings(tmp_path / "agents.json")
    (box,) = bound.agents["A"].tools
    for policy, offered in (
        ({"Denied": ["things/broken"]}, ["add", "steps"]),
        ({"Denied": ["broken"]}, ["add", "steps"]),
        ({"Allowed": ["things/add"]}, ["add"]),
        ({"Allowed": ["steps"]}, ["steps"]),
        ({"Allowed": ["other/add"]}, []),
    ):
        model = Asking()
        result = model.run(policy, tools=[box])
        assert result.ok, result.cause
        assert model.offered == [offered]


STRICT = Tool(
    "search",
    "Searches.",
    {"echo": True},
    input={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "'q' is a required property"),
        ({"q": 5}, "$.q: 5 is not of type 'string'"),
        ('{"q": ', "Invalid JSON"),
        ("[1]", ""),
        ('{"q": NaN}', "nan is not a JSON number"),
        ('{"q": "a", "q": 5}', "$.q: 5 is not of type 'string'"),
        ('{"q": ' + "[" * 5000 + "]" * 5000 + "}", "recursion limit exceeded"),
        ('{"q": ' + "9" * 5000 + "}", "number out of range"),
    ],
)
def test_wrong_arguments_never_reach_the_tool(arguments: Any, part: str) -> None:
    """The model is told, and fails if it goes on; the history tells of each request."""
    model = Asking(*[ToolCallPart("search", arguments)] * 5)
    result = model.run(None, tools=[STRICT])
    assert result.error == "Agent.ToolError"
    assert part in (result.cause or "")
    assert told(result) == [("ToolRefused", "search", "Agent.ToolError")] * model.asked


def test_half_a_character_in_a_name_is_a_forbidden_tool() -> None:
    """What cannot be told to the model again ends the call with the same error."""
    model = Asking(*[ToolCallPart("\ud800delete_file", {})] * 5)
    result = model.run({"Denied": ["delete_file"]}, tools=[SEARCH, DELETE])
    assert result.error == "States.Permissions"
    assert {error for _, _, error in told(result)} == {"States.Permissions"}


def test_several_requests_at_once_keep_their_rates() -> None:
    """What a model asks for in one breath counts one by one."""
    requests = [ToolCallPart("search", {}) for _ in range(3)]
    result = Asking(requests).run({"RateLimits": {"search": {"MaxPerMinute": 2}}}, tools=[SEARCH])
    assert result.error == "States.RateLimitExceeded"
    assert sum(event == "ToolCalled" for event, *_ in told(result)) <= 2


def test_a_model_as_a_tool_has_the_same_rights() -> None:
    """Its own tools are held against the policy of the state, and what it uses is counted."""
    inner = Asking(ToolCallPart("search", {}))
    helper = Tool("helper", "Helps.", ModelAgent(FunctionModel(inner), tools=[SEARCH, DELETE]))
    outer = Asking(ToolCallPart("helper", {"prompt": "look"}))
    result = outer.run({"Allowed": ["helper", "search"]}, tools=[helper])
    assert result.output["response"] == "done", result.cause
    assert inner.offered == [["search"], ["search"]]
    assert told(result) == [("ToolCalled", "search", None), ("ToolCalled", "helper", None)]
    used = [e.details["usage"] for e in result.events if "usage" in e.details]
    assert used[0]["tokens"] > 0
    assert result.usage["tokens"] == used[0]["tokens"] + result.output["_tokens"]
