"""Agents that are language models: pydantic-ai's function model, and a server of our own."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

import asl
from asl.agents.file import InvalidAgents, load_bindings
from asl.agents.model import PROVIDERS, ModelAgent
from asl.agents.tool import Tool
from asl.engine.agent import AgentWrapper

from .servers import Exchange, HttpServer, serving
from .workflows import for_each, retried, task

Part = TextPart | ToolCallPart
SCORE = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0}},
    "required": ["score"],
    "additionalProperties": False,
}


class Scripted:
    """A model that says what a script has, one part for each request; the last one repeats."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts
        self.asked: list[list[Any]] = []
        self.infos: list[AgentInfo] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append([part for message in messages for part in message.parts])
        self.infos.append(info)
        part = self.parts[min(len(self.asked), len(self.parts)) - 1]
        return ModelResponse([part], usage=RequestUsage(input_tokens=10, output_tokens=5))

    def agent(self, **options: Any) -> ModelAgent:
        return ModelAgent(FunctionModel(self, model_name="m"), **options)

    def run(self, data: Any = None, **options: Any) -> asl.Result:
        return asl.run(task(), {} if data is None else data, agents={"A": self.agent(**options)})


def use(tool: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(tool, arguments)


USED = {"_tokens": 15, "_usage": {"input": 10, "output": 5}, "model": "function:m"}


@pytest.mark.parametrize(
    ("parameters", "prompt"),
    [
        ({"prompt": "a", "task": "b"}, "a"),
        ({"task": "b", "message": "c"}, "b"),
        ({"message": "c", "input": "d"}, "c"),
        ({"input": {"x": 1}}, '{"x":1}'),
        ({"code": "e"}, '{"code":"e"}'),
        ("f", "f"),
        ([1], "[1]"),
    ],
)
def test_the_prompt_is_a_parameter_or_all_of_them(parameters: Any, prompt: str) -> None:
    """`prompt`, `task`, `message`, `input` in this order; else everything as JSON."""
    script = Scripted(TextPart("hi"))
    result = script.run(parameters, system="Be brief.")
    assert result.output == {"response": "hi", **USED}
    system, user = script.asked[0]
    assert (type(system), system.content) == (SystemPromptPart, "Be brief.")
    assert (type(user), user.content) == (UserPromptPart, prompt)


def test_what_was_used_is_counted() -> None:
    """The execution knows the tokens of all requests, of failed calls too."""
    assert Scripted(TextPart("hi")).run().usage["tokens"] == 15
    script = Scripted(use("answer", score=-1))
    failed = script.run(output=SCORE, retries=2)
    assert failed.error == "Agent.InvalidOutput"
    assert (len(script.asked), failed.usage["tokens"]) == (3, 45)


@pytest.mark.parametrize("wrong", [-9, -(10**30), True, float("nan"), float("inf"), 1e300, 10**400])
@pytest.mark.parametrize("place", ["input_tokens", "output_tokens"])
def test_wrong_token_count_lowers_nothing_and_is_unknown_usage(place: str, wrong: Any) -> None:
    """What other requests of the call have used counts; the rest of the budget may be spent."""
    reports: list[dict[str, Any]] = [{}, {place: wrong}, {}]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        report = {"input_tokens": 10, "output_tokens": 10} | reports.pop(0)
        return ModelResponse([use("answer", score=-1)], usage=RequestUsage(**report))

    agent = ModelAgent(FunctionModel(answer, model_name="m"), output=SCORE, retries=2)
    document = {**task(), "Budget": {"MaxTokens": 100}}
    result = asl.run(document, {}, agents={"A": agent})
    assert result.error == "Agent.InvalidOutput"
    assert (result.usage["tokens"], result.usage["assumed"]["tokens"]) == (50, 50)


def test_an_answer_by_schema_is_the_result() -> None:
    """Its members stand beside the usage; a wrong one is asked for again with what is wrong."""
    script = Scripted(use("answer", score=-1), TextPart("nine"), use("answer", score=9))
    result = script.run(output=SCORE, retries=2)
    assert result.output == {
        "score": 9,
        "_tokens": 45,
        "_usage": {"input": 30, "output": 15},
        "model": "function:m",
    }
    assert "$.score: -1 is less than the minimum of 0" in str(script.asked[1])
    (tool,) = script.infos[0].output_tools
    assert tool.parameters_json_schema["required"] == ["score"]


def test_an_answer_that_stays_wrong_is_an_error() -> None:
    """After the retries the cause says what was wrong last."""
    result = Scripted(use("answer", score="x")).run(output=SCORE)
    assert result.error == "Agent.InvalidOutput"
    assert "$.score: 'x' is not of type 'integer'" in (result.cause or "")


def test_an_answer_cannot_report_usage() -> None:
    """What the model says about its own cost is not believed."""
    script = Scripted(use("answer", _cost=-5, _tokens=-1, model="free", text="x"))
    result = script.run(output={"type": "object"})
    assert result.output == {"text": "x", **USED}


# Tools


def look(parameters: Any) -> Any:
    if parameters["at"] == "nothing":
        raise ValueError("there is nothing")
    if parameters["at"] == "secrets":
        raise asl.StateError("States.Permissions", "not for you")
    return {"seen": parameters["at"]}


LOOK = Tool(
    "look",
    "Looks at a thing.",
    look,
    input={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)


def test_a_model_uses_tools() -> None:
    """A tool is offered with its description and schema, and its answer goes to the model."""
    script = Scripted(use("look", at="it"), TextPart("done"))
    assert script.run(tools=[LOOK]).output["response"] == "done"
    (offered,) = script.infos[0].function_tools
    assert (offered.name, offered.description) == ("look", "Looks at a thing.")
    assert offered.parameters_json_schema["required"] == ["at"]
    (answer,) = [part for part in script.asked[-1] if isinstance(part, ToolReturnPart)]
    assert answer.content == {"seen": "it"}


def test_a_tool_that_fails_may_be_handled() -> None:
    """The model is told, and may do something else."""
    script = Scripted(use("look", at="nothing"), TextPart("never mind"))
    assert script.run(tools=[LOOK]).output["response"] == "never mind"
    assert "ValueError: there is nothing" in str(script.asked[1])


@pytest.mark.parametrize(
    ("part", "name", "cause"),
    [
        (use("look", at="nothing"), "Agent.ToolError", "ValueError: there is nothing"),
        (use("look", at=5), "Agent.ToolError", "$.at: 5 is not of type 'string'"),
        (use("look"), "Agent.ToolError", "'at' is a required property"),
        (ToolCallPart("look", '{"at": '), "Agent.ToolError", "Invalid JSON"),
        (use("look", at="secrets"), "States.Permissions", "not for you"),
        *(
            (use(name, at="it"), "States.Permissions", f"may not use the tool {name!r}")
            for name in ("rm", "Look", "look ", "lооk", "look\u200b", "../look", "*", "l%6Fok", "")
        ),
    ],
)
def test_a_wrong_use_of_a_tool_is_an_error(part: Part, name: str, cause: str) -> None:
    """The model is told once; if it goes on, the call ends with the name of the specification."""
    script = Scripted(part)
    result = script.run(tools=[LOOK])
    assert result.error == name
    assert cause in (result.cause or "")
    assert len(script.asked) == (1 if part.tool_name == "look" and "not for" in cause else 2)


def test_tools_are_agents_of_any_kind() -> None:
    """Async functions, plain ones that look at the call, scripts, other models."""
    calls: list[asl.Call] = []

    async def sleep(parameters: Any, call: asl.Call) -> str:
        calls.append(call)
        await call.sleep(0)
        return "slept"

    inner = Scripted(TextPart("inner"))
    tools = [
        Tool("sleep", "Sleeps.", sleep),
        Tool("script", "Says one.", {"return": 1}),
        Tool("model", "Thinks.", inner.agent()),
    ]
    script = Scripted(use("sleep"), use("script"), use("model", prompt="p"), TextPart("done"))
    assert script.run(tools=tools).output["response"] == "done"
    answers = [part.content for part in script.asked[-1] if isinstance(part, ToolReturnPart)]
    assert answers == ["slept", 1, {"response": "inner", **USED}]
    assert calls[0].state_name == "T"


def test_a_call_is_bounded() -> None:
    """A model that never comes to an end is stopped after so many requests."""
    script = Scripted(use("look", at="it"))
    result = script.run(tools=[LOOK], rounds=5)
    assert (result.error, len(script.asked)) == ("Agent.ModelError", 5)
    assert result.usage["tokens"] == 75


def test_tool_arguments_have_at_most_10_000_values() -> None:
    """A tool is not called with more; the model is told so."""
    note = Tool("note", "Notes lines.", lambda given: len(given["lines"]), input={"type": "object"})
    many, few = use("note", lines=[1] * 10_000), use("note", lines=[1] * 9_000)
    script = Scripted(many, few, TextPart("done"))
    assert script.run(tools=[note]).output["response"] == "done"
    answers = [part.content for part in script.asked[-1] if isinstance(part, ToolReturnPart)]
    assert answers == ["tool 'note': the arguments have more than 10,000 values", 9_000]


def test_a_model_that_raises_is_no_crash() -> None:
    """Whatever a library raises is an error of the call."""

    def broken(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise KeyError("oops")

    result = asl.run(task(), agents={"A": ModelAgent(FunctionModel(broken))})
    assert (result.error, result.cause) == ("Agent.ModelError", "KeyError: 'oops'")


def test_settings_are_handed_over() -> None:
    """Sampling settings reach the model; the provider's library repeats nothing."""
    script = Scripted(TextPart("hi"))
    script.run(settings={"temperature": 0, "max_tokens": 7}, timeout=3)
    settings = script.infos[0].model_settings or {}
    assert (settings["temperature"], settings["max_tokens"]) == (0, 7)
    assert (settings["timeout"], settings["max_retries"]) == (3, 0)


def test_the_document_may_say_how_to_answer() -> None:
    """What the state's Generation says wins over the settings of the agent."""
    script = Scripted(TextPart("hi"))
    agent = script.agent(settings={"temperature": 1, "seed": 3})
    generation = {"Temperature": 0.25, "MaxTokens": 9, "StopSequences": ["."]}
    result = asl.run(task(Generation=generation), {}, agents={"A": agent})
    assert result.status == "SUCCEEDED"
    settings = script.infos[0].model_settings or {}
    assert (settings["temperature"], settings["seed"], settings["max_tokens"]) == (0.25, 3, 9)
    assert settings["stop_sequences"] == ["."]


class Listening(AgentWrapper):
    """An agent in front of another one, which listens to its answer."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)
        self.heard: list[str] = []

    async def answer(self, payload: Any, call: Any) -> Any:
        call.listener = self.heard.append
        return await self.agent.answer(payload, call)


def test_answer_is_streamed_in_chunks() -> None:
    """Whoever listens hears the text as it comes; the result is the whole."""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for piece in ("Hel", "lo, ", "Ada"):
            yield piece

    listening = Listening(ModelAgent(FunctionModel(stream_function=stream)).open_agent({}))
    result = asl.run(task(), agents={"A": listening})
    assert result.output["response"] == "Hello, Ada"
    assert "".join(listening.heard) == "Hello, Ada"
    assert len(listening.heard) == 3


# A server that speaks OpenAI's protocol


def completion(content: str | None = "hi", **calls: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call-{name}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in calls.items()
        ]
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-2026",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def said(exchange: Exchange, status: int, body: Any, **headers: str) -> None:
    exchange.answer(status, body, Content_Type="application/json", **headers)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes an agents file with a model on a server and returns its agents."""
    monkeypatch.setenv("TINY_KEY", "sk-s3cr3t")

    def written(server: HttpServer, more: str = "") -> Any:
        (tmp_path / "agents.yaml").write_text(
            "agents:\n  A:\n    model: openai-chat:tiny\n    key: ${env:TINY_KEY}\n"
            f"    url: {server.url}/v1\n{more}"
        )
        return load_bindings(tmp_path / "agents.yaml").agents

    return written


def test_a_provider_is_asked_over_http(file: Callable[..., Any]) -> None:
    """Provider, name, key and URL come from the agents file."""
    with serving(lambda exchange: said(exchange, 200, completion("hello sk-s3cr3t"))) as server:
        agents = file(server, "    system: Be brief.\n    settings: {temperature: 0.5}\n")
        result = asl.run(task(), {"prompt": "hi"}, agents=agents)
        many = asyncio.run(asl.arun(for_each(5), list(range(5)), agents=agents))
    assert result.output == {
        "response": "hello ***",
        "_tokens": 15,
        "_usage": {"input": 10, "output": 5},
        "model": "openai-chat:tiny",
    }
    assert result.usage["tokens"] == 15
    assert (many.status, many.usage["tokens"]) == ("SUCCEEDED", 75)
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-s3cr3t"
    assert request.json["model"] == "tiny"
    assert request.json["temperature"] == 0.5
    assert [each["content"] for each in request.json["messages"]] == ["Be brief.", "hi"]


@pytest.mark.parametrize(
    ("reason", "error"),
    [("stop", None), ("length", None), ("content_filter", "Agent.ModelError")],
)
@pytest.mark.parametrize("streams", [False, True])
def test_finish_reason_of_an_answer(
    reason: str, error: str | None, streams: bool, file: Callable[..., Any]
) -> None:
    """What was filtered is no answer; what is as long as it may be says so, whole or in pieces."""
    body = completion("Once upon")
    body["choices"][0]["finish_reason"] = reason
    whole = lambda exchange: said(exchange, 200, body)  # noqa: E731
    pieces = streaming([*streamed("Once", " upon", end=reason)], True)
    fields: Any = {"Streaming": {"Enabled": True}} if streams else {}
    with serving(pieces if streams else whole) as server:
        result = asl.run(task(**fields), {"prompt": "a tale"}, agents=file(server))
    assert result.error == error
    assert result.usage["tokens"] == 15
    if error is None:
        assert result.output["response"] == "Once upon"
        assert result.output.get("finish_reason") == (None if reason == "stop" else reason)
    else:
        assert result.cause == "the provider has filtered the answer"


def test_an_answer_by_schema_that_is_cut_is_invalid(file: Callable[..., Any]) -> None:
    """It is no object."""
    body = completion(None, answer={"score": 1})
    body["choices"][0]["finish_reason"] = "length"
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"sco'
    with serving(lambda exchange: said(exchange, 200, body)) as server:
        agents = file(server, "    output: {type: object}\n")
        result = asl.run(task(), {"prompt": "a tale"}, agents=agents)
    assert result.error == "Agent.InvalidOutput"


@pytest.mark.parametrize("status", [200, 401])
def test_api_key_argument_is_masked(status: int) -> None:
    """Whatever the provider does with it; a word in its place is no secret."""
    key = "sk-4711-given-in-python"
    body = completion(f"{key} none") if status == 200 else {"error": {"message": f"no {key}"}}
    with serving(lambda exchange: said(exchange, status, body)) as server:
        for given, shown in ((key, "***"), ("none", key)):
            agent = ModelAgent("openai-chat:tiny", key=given, url=f"{server.url}/v1")
            result = asl.run(task(), {"prompt": "hi"}, agents={"A": agent})
            told = repr(result.to_json())
            assert shown in told
            assert (key in told) == (given == "none")


def cut(exchange: Exchange) -> None:
    exchange.begin(200, Content_Length="1000", Content_Type="application/json")
    exchange.write(b'{"id": "x", ')
    exchange.cut()


FAILURES: list[tuple[Callable[[Exchange], None], str, str]] = [
    (
        lambda e: said(e, 429, {"error": {"message": "slow down"}}, Retry_After="7"),
        "States.RateLimitExceeded",
        "retry after 7 s",
    ),
    (lambda e: said(e, 500, {"error": {"message": "oops"}}), "Agent.ModelError", "oops"),
    (lambda e: e.answer(503, b"<html>down</html>"), "Agent.ModelError", "503"),
    (
        lambda e: said(e, 401, {"error": {"message": "wrong key sk-s3cr3t"}}),
        "States.Permissions",
        "wrong key ***",
    ),
    (
        lambda e: said(e, 400, {"error": {"message": "no", "code": "context_length_exceeded"}}),
        "Agent.ContextOverflow",
        "context_length_exceeded",
    ),
    (
        lambda e: said(e, 404, {"error": {"message": "no such model"}}),
        "Agent.ModelError",
        "no such",
    ),
    (lambda e: e.answer(200, b"<html>"), "Agent.ModelError", "expected JSON"),
    (lambda e: said(e, 200, b'{"id": '), "Agent.ModelError", ""),
    (lambda e: said(e, 200, {"hello": 1}), "Agent.ModelError", "choices"),
    (lambda e: said(e, 200, {**completion(), "choices": []}), "Agent.ModelError", ""),
    (cut, "Agent.NetworkError", ""),
    (
        lambda e: e.answer(307, Location="http://127.0.0.1:9/sk-s3cr3t"),
        "Agent.ModelError",
        "redirects to http://127.0.0.1:9/***: give that address as the url",
    ),
    (
        lambda e: e.answer(200, b"", Content_Encoding="gzip"),
        "Agent.ModelError",
        "the answer is compressed",
    ),
    (lambda e: said(e, 500, {"error": "x" * 100_000}), "Agent.ModelError", "xxx…"),
    (lambda e: said(e, 200, {**completion(), "choices": []}), "Agent.ModelError", "IndexError"),
    (lambda e: said(e, 200, {**completion(), "created": 10**30}), "Agent.ModelError", "datetime"),
    (lambda e: said(e, 200, b"[" * 5_000), "Agent.ModelError", "JSON"),
]


@pytest.mark.parametrize(("answer", "name", "cause"), FAILURES)
def test_what_a_provider_does_wrong_is_an_error(
    answer: Callable[[Exchange], None], name: str, cause: str, file: Callable[..., Any]
) -> None:
    """Each failure has the name of the specification; a request is sent once."""
    with serving(answer) as server:
        agents = file(server)
        result = asl.run(task(), {"prompt": "hi"}, agents=agents)
        assert (result.error, len(server.requests)) == (name, 1)
        assert cause in (result.cause or "")
        assert "s3cr3t" not in repr(result.to_json())
        again = asl.run(retried(name, 1), {"prompt": "hi"}, agents=agents, clock="virtual")
        assert (again.error, len(server.requests)) == (name, 3)


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_is_bounded(
    streams: bool, file: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading stops at the limit, however much is sent; what it has used nobody knows."""
    monkeypatch.setattr("asl.agents.model.MAX_BYTES", 10_000)

    def endless(exchange: Exchange) -> None:
        exchange.begin(200, Content_Type="text/event-stream", Connection="close")
        while not server.stopping.is_set():
            exchange.write(b": nothing yet\n\n" * 100)

    fields: Any = {"Streaming": {"Enabled": True}} if streams else {}
    with serving(endless) as server:
        result = asl.run(task(**fields), {"prompt": "hi"}, agents=file(server))
    assert result.error == "States.DataLimitExceeded"
    assert result.cause == "an answer of more than 10000 bytes"
    assert [each.type for each in result.events].count("UsageWarning") == 1


CALLS = [
    {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for n in range(2000)
]
MANY: list[Any] = [
    {"choices": completion()["choices"] * 2500},
    {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": CALLS}}]},
    {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": CALLS}}]},
    {"more": [{}] * 20_000},
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("many", MANY)
def test_the_values_of_one_piece_are_bounded(
    many: Any, streams: bool, file: Callable[..., Any]
) -> None:
    """The library takes long for each of them; what comes before has no influence."""
    body = json.dumps({**completion(), **many}).encode()
    if streams:
        body = b'event: "\r: "\n' + b"".join(streamed("a", end="", done=False)) + b"data: " + body
    fields: Any = {"Streaming": {"Enabled": True}} if streams else {}
    with serving(lambda exchange: said(exchange, 200, body)) as server:
        result = asl.run(task(**fields), {"prompt": "hi"}, agents=file(server))
    assert (result.error, result.cause) == (
        "States.DataLimitExceeded",
        "an answer of more than 10000 values",
    )


@pytest.mark.parametrize(
    ("output", "name", "cause"),
    [
        ("{type: object}", "Agent.InvalidOutput", "no answer by the schema"),
        (None, "Agent.ModelError", "the answer has no text"),
    ],
)
def test_an_answer_without_an_answer_is_an_error(
    output: str | None, name: str, cause: str, file: Callable[..., Any]
) -> None:
    """Text where an object is wanted, or nothing at all: after the retries the cause says so."""
    body = completion("nine" if output else "")
    more = "" if output is None else f"    output: {output}\n"
    with serving(lambda exchange: said(exchange, 200, body)) as server:
        result = asl.run(task(), {"prompt": "hi"}, agents=file(server, more))
    assert (result.error, len(server.requests), result.usage["tokens"]) == (name, 2, 30)
    assert (result.cause or "").startswith(cause)


def test_the_document_may_want_another_model(file: Callable[..., Any]) -> None:
    """Of the same provider, by its name alone; the budget knows which one was used."""
    fallback = {"When": "Always", "UseModel": "small"}
    budget = {"MaxTokens": 100, "OnExceed": "UseFallback", "Fallback": fallback}
    with serving(lambda exchange: said(exchange, 200, completion())) as server:
        result = asl.run({**task(), "Budget": budget}, agents=file(server))
    assert result.output["model"] == "openai-chat:small"
    assert server.requests[0].json["model"] == "small"


def test_no_other_provider_sees_the_key(
    file: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of another provider is asked there, with that provider's own key and address."""

    def answer(exchange: Exchange) -> None:
        said(exchange, 200, completion())

    fallback = {"When": "Always", "UseModel": "ollama:tiny"}
    budget = {"MaxTokens": 100, "OnExceed": "UseFallback", "Fallback": fallback}
    with serving(answer) as server, serving(answer) as other:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{other.url}/v1")
        monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
        result = asl.run({**task(), "Budget": budget}, agents=file(server))
    assert result.output["model"] == "ollama:tiny"
    assert (len(server.requests), len(other.requests)) == (0, 1)
    assert "s3cr3t" not in other.requests[0].headers["authorization"]


def test_a_call_that_fails_is_paid_for() -> None:
    """What was used before the failure counts against the budget."""
    script = Scripted(use("answer", score=-1))
    document = {**retried("Agent.InvalidOutput"), "Budget": {"MaxTokens": 40}}
    agents = {"A": script.agent(output=SCORE)}
    result = asl.run(document, agents=agents, clock="virtual")
    assert (result.error, len(script.asked)) == ("States.BudgetExceeded", 2)
    assert result.usage["tokens"] == 30  # of a limit of 40, which a report without usage uses up


def test_a_provider_that_says_nothing_times_out(file: Callable[..., Any]) -> None:
    """The agent's own timeout is an error, and nothing is asked a second time."""
    with serving(lambda exchange: server.stopping.wait(60) and None) as server:
        agents = file(server, "    timeout: 0.05\n")
        assert asl.run(task(), agents=agents).error == "States.Timeout"
        assert len(server.requests) <= 1  # none, if the time was over before the server looked


def test_a_provider_that_drips_times_out(file: Callable[..., Any]) -> None:
    """The timeout is that of the whole request, however often a byte comes."""

    def drip(exchange: Exchange) -> None:
        exchange.begin(200, Content_Length="100000", Content_Type="application/json")
        while not server.stopping.wait(0.02):
            exchange.write(b" ")

    with serving(drip) as server:
        result = asl.run(task(), agents=file(server, "    timeout: 0.3\n"))
    assert result.error == "States.Timeout"


UNTOLD: list[Any] = [None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}]


@pytest.mark.parametrize("usage", UNTOLD)
def test_an_answer_is_never_free(usage: Any, file: Callable[..., Any]) -> None:
    """Where the provider tells no usage the history warns, and a budget cannot be held."""
    with serving(lambda exchange: said(exchange, 200, {**completion(), "usage": usage})) as server:
        agents = file(server)
        free = asl.run(task(), agents=agents)
        bounded = asl.run({**task(), "Budget": {"MaxTokens": 100}}, agents=agents)
    assert (free.output["_tokens"], free.output["_usage"]) == (0, None)
    for result in (free, bounded):
        (warned,) = [each for each in result.events if each.type == "UsageWarning"]
        assert warned.details["reason"] == "_usage null is no usage, so it is ignored"
    assert bounded.error == "Agent.InvalidOutput"


def test_a_failure_keeps_its_name_whatever_it_has_used() -> None:
    """What the provider has not told counts as all that is left of the limit."""

    def fails(parameters: Any, call: asl.Call) -> None:
        error = asl.StateError("Agent.NetworkError", "it breaks off")
        error.usage = {"_usage": None}
        raise error

    document = {**retried("Agent.NetworkError", 30), "Budget": {"MaxTokens": 160}}
    result = asl.run(document, agents={"A": fails}, clock="virtual")
    assert result.error == "States.BudgetExceeded"
    failed = [each for each in result.events if each.type == "TaskFailed"]
    assert {each.details["error"] for each in failed[:-1]} == {"Agent.NetworkError"}
    assert len(failed) == 2


@pytest.mark.parametrize(
    ("answer", "is_free"),
    [
        (lambda e: e.answer(200, b"<html>"), False),
        (lambda e: said(e, 200, {"hello": 1}), False),
        (cut, False),
        (lambda e: said(e, 200, {**completion(), "choices": []}), False),
        (lambda e: said(e, 200, {**completion(), "created": 10**30}), False),
        (lambda e: e.answer(200, b"", Content_Encoding="gzip"), False),
        (lambda e: e.answer(307, Location="/elsewhere"), True),
        (lambda e: said(e, 500, {"error": {"message": "oops"}}), True),
        (lambda e: said(e, 429, {"error": {"message": "slow down"}}), True),
        (None, True),
    ],
)
def test_unreadable_answer_counts_against_the_limit(
    answer: Callable[[Exchange], None] | None, is_free: bool, file: Callable[..., Any]
) -> None:
    """It uses up the limit; a status, or a server that is not there, has used nothing."""
    document = {**retried("States.ALL", 20), "Budget": {"MaxTokens": 160}}
    with serving(answer or cut) as server:
        agents = file(server)
        if answer is not None:
            result = asl.run(document, {"prompt": "x"}, agents=agents, clock="virtual")
    if answer is None:
        result = asl.run(document, {"prompt": "x"}, agents=agents, clock="virtual")
    assert (result.error == "States.BudgetExceeded") != is_free
    if answer is not None:
        assert len(server.requests) == (21 if is_free else 1)


def streamed(*pieces: str, end: str = "stop", done: bool = True) -> Iterator[bytes]:
    """Yield the lines of a streamed answer."""
    for index, piece in enumerate([*pieces, None]):
        if piece is None and not end:
            return
        choice = {
            "index": 0,
            "delta": {} if piece is None else {"role": "assistant", "content": piece},
            "finish_reason": end if piece is None else None,
        }
        chunk = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": index,
            "model": "tiny-2026",
            "choices": [choice],
        }
        if piece is None:
            chunk["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    if done:
        yield b"data: [DONE]\n\n"


def streaming(lines: list[bytes], chunked: bool) -> Callable[[Exchange], None]:
    """Answer with a stream; a chunked one lacks its end, another one ends with the connection."""

    def answer(exchange: Exchange) -> None:
        encoding = {"Transfer_Encoding": "chunked"} if chunked else {"Connection": "close"}
        exchange.begin(200, Content_Type="text/event-stream", **encoding)
        for line in lines:
            exchange.write(b"%x\r\n%s\r\n" % (len(line), line) if chunked else line)
        if chunked and lines[-1].endswith(b"[DONE]\n\n"):
            exchange.write(b"0\r\n\r\n")
        exchange.cut()

    return answer


def listened(lines: list[bytes], chunked: bool) -> tuple[asl.Result, list[str]]:
    with serving(streaming(lines, chunked)) as server:
        agent = ModelAgent("openai-chat:tiny", key="k", url=f"{server.url}/v1")
        listening = Listening(agent.open_agent({}))
        return asl.run(task(), {"prompt": "hi"}, agents={"A": listening}), listening.heard


@pytest.mark.parametrize("chunked", [True, False])
def test_a_stream_is_heard_as_it_comes(chunked: bool) -> None:
    """Over HTTP as well."""
    result, heard = listened(list(streamed("Hel", "lo")), chunked)
    assert result.output["response"] == "Hello"
    assert result.output["_usage"] == {"input": 10, "output": 5}
    assert heard == ["Hel", "lo"]


@pytest.mark.parametrize("chunked", [True, False])
def test_a_stream_that_is_cut_is_no_answer(chunked: bool) -> None:
    """However the connection ends: what came so far is not taken for the whole."""
    result, heard = listened(list(streamed("Hel", "lo", end="", done=False)), chunked)
    assert result.error == ("Agent.NetworkError" if chunked else "Agent.ModelError")
    assert heard == ["Hel", "lo"]


def test_garbage_in_a_stream_is_an_error() -> None:
    """A line that is no JSON ends the call."""
    result, _ = listened([*streamed("Hel", end="", done=False), b"data: {nonsense\n\n"], False)
    assert result.error == "Agent.ModelError"


def test_a_run_that_is_cut_short_ends_its_request(file: Callable[..., Any]) -> None:
    """Nothing of the call is left when the state has timed out."""
    with serving(lambda exchange: server.stopping.wait(60) and None) as server:
        result = asl.run(task(TimeoutSeconds=1), agents=file(server))
    assert (result.error, result.cause) == ("States.Timeout", "state 'T': no answer within 1 s")


# In an agents file


def test_tools_come_from_the_agents_file(tmp_path: Path) -> None:
    """A model names the tools of its file; tools may be models that use tools."""
    bodies: list[Any] = []

    def answer(exchange: Exchange) -> None:
        body = exchange.json
        bodies.append(body)
        first = body["messages"][-1]["role"] == "user"
        (offered,) = [each["function"]["name"] for each in body["tools"]]
        arguments = {"prompt": "p"} if offered == "ask" else {"n": 1}
        said(exchange, 200, completion(None, **{offered: arguments}) if first else completion())

    with serving(answer) as server:
        model = f"{{model: 'openai-chat:tiny', key: k, url: '{server.url}/v1', tools: "
        (tmp_path / "agents.yaml").write_text(
            f"agents:\n  A: {model}[ask]}}\n"
            "tools:\n"
            f"  ask: {{description: Asks., agent: {model}[count]}}}}\n"
            "  count:\n    description: Counts.\n    agent: {return: 3}\n"
            "    input: {type: object, properties: {n: {type: integer}}}\n"
        )
        bound = load_bindings(tmp_path / "agents.yaml")
        result = asl.run(task(), {"prompt": "hi"}, agents=bound.agents)
    assert result.output["response"] == "hi"
    assert [each["messages"][-1]["role"] for each in bodies] == ["user", "user", "tool", "tool"]
    assert bodies[2]["messages"][-1]["content"] == "3"
    assert sorted(bound.tools) == ["ask", "count"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A: {model: gpt-5}", "1:12: error AGENTS-01: 'model' must be 'provider:name'"),
        ("A: {model: 'a:b', output: {type: array}}", "1:27: error AGENTS-01: the answer is an obj"),
        (
            "A: {model: 'a:b', output: {type: object, properties: 1.5}}",
            "1:54: error AGENTS-01: no JSON Schema",
        ),
        ("A: {model: 'a:b', output: {type: objekt}}", "1:34: error AGENTS-01: no JSON Schema"),
        (
            "A: {model: 'a:b', output: {type: object, properties: {model: {}}}}",
            "error AGENTS-01: 'model' is reserved for the reported usage",
        ),
        ("A: {model: 'a:b', tools: [x]}", "1:27: error AGENTS-08: the file has no tool 'x'"),
        ("A: {model: 'a:b', settings: {temperature: 3}}", "1:43: error AGENTS-01: 'temperature'"),
        (
            "A: {model: 'a:b', system: '${env:K}'}",
            "1:27: error AGENTS-05: a secret is not allowed here",
        ),
        ("tools: {x: {description: d}}", "1:9: error AGENTS-01: 'agent' is missing"),
        ("tools: {x: {description: d, agent: y}}", "1:36: error AGENTS-01: 'function' must be"),
        (
            "tools: {x: {description: d, agent: 'builtins:len', input: {type: 5}}}",
            "1:66: error AGENTS-01: no JSON Schema",
        ),
        (
            "agents: {A: {model: 'a:b', tools: [serach]}}\n"
            "tools: {search: {description: d, agent: 'builtins:len'}}",
            "(did you mean 'search'?)",
        ),
        (
            "tools: {x: {description: d, agent: {model: 'a:b', tools: [x]}}}",
            "1:59: error AGENTS-04: the tool 'x' needs itself",
        ),
        (
            "tools:\n  x: {description: d, agent: {model: 'a:b', tools: [y]}}\n"
            "  y: {description: d, agent: {model: 'a:b', tools: [z, x]}}\n"
            "  z: {description: d, agent: 'builtins:len'}",
            "3:56: error AGENTS-04: the tool 'y' needs itself",
        ),
    ],
)
def test_a_fault_in_the_file_has_its_place(text: str, found: str, tmp_path: Path) -> None:
    """What a model or a tool cannot be is said by the check of the file."""
    (tmp_path / "agents.yaml").write_text(text)
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(tmp_path / "agents.yaml")
    assert found in str(refusal.value)


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ("opnai:x", "did you mean 'openai'?"),
        ("nobody:x", "pydantic-ai has no provider 'nobody'"),
        ("anthropic:x", 'pip install "pydantic-ai-slim[anthropic]"'),
        ("openai:x", "set OPENAI_API_KEY, or write it into the agents file, key: ${env:OPENAI_API"),
    ],
)
def test_a_provider_that_is_not_there_is_named(
    model: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause says what to do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    result = asl.run(task(), agents={"A": ModelAgent(model)})
    assert result.error == "Agent.InvalidInput"
    assert cause in (result.cause or "")


def test_a_gateway_is_not_taken_for_the_provider_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who names it wants its way and has its key; the provider itself is asked nothing."""
    with serving(lambda exchange: said(exchange, 200, completion())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        model = ModelAgent("gateway/openai-chat:tiny", key="sk-of-the-gateway-itself")
        result = asl.run(task(), agents={"A": model})
    assert (result.error, server.requests) == ("Agent.InvalidInput", [])
    assert "has no provider 'gateway/openai-chat'" in (result.cause or "")


def test_a_fault_of_ours_is_not_blamed_on_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong while a provider is chosen keeps its kind: no setting would mend it."""
    monkeypatch.setattr("asl.agents.model.size_hook", None)
    result = asl.run(task(), agents={"A": ModelAgent("openai-chat:tiny", key="k", url="http://x")})
    assert result.error != "Agent.InvalidInput"
    assert "TypeError" in (result.cause or "")


def test_the_providers_that_are_known_are_those_of_the_library() -> None:
    """The table has every name that the installed library has a model for, and no other."""
    import ast
    import inspect

    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider_class

    named = {
        each.value
        for case in ast.walk(ast.parse(inspect.getsource(infer_provider_class)))
        if isinstance(case, ast.MatchValue)
        for each in [case.value]
        if isinstance(each, ast.Constant)
    }
    assert named >= PROVIDERS
    assert len(named) > 30
    for name in named:
        said = ""
        try:  # what a model makes of this provider is its own matter
            infer_model(f"{name}:x", lambda _: object())  # type: ignore[arg-type, return-value]
        except UserError as error:
            said = str(error)
        except (ImportError, AttributeError):
            pass
        assert said.startswith("Unknown model") == (name not in PROVIDERS), name


def test_a_missing_library_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything runs."""
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(asl.AslError) as missing:
        ModelAgent("openai:x")
    assert str(missing.value) == ("a language model needs 'pydantic_ai': pip install '.[models]'")


def test_nothing_is_imported_early() -> None:
    """Only a call needs the library."""
    code = (
        "import sys; from asl.agents.model import ModelAgent; ModelAgent('openai:x');"
        "assert 'pydantic_ai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_test_model_of_the_library_works() -> None:
    """A model that says nothing of how its answer ends has answered all the same."""
    from pydantic_ai.models.test import TestModel

    model = ModelAgent(TestModel(custom_output_text="hello"))
    result = asl.run(task(), agents={"A": model})
    assert result.output["response"] == "hello"


def test_openai_with_url_of_another_server_speaks_chat_completions() -> None:
    paths = []

    def answer(exchange: Exchange) -> None:
        paths.append(exchange.path)
        said(exchange, 200, completion())

    with serving(answer) as server:
        agent = ModelAgent("openai:tiny", key="k", url=f"{server.url}/v1")
        result = asl.run(task(), agents={"A": agent})
    assert result.status == "SUCCEEDED"
    assert paths == ["/v1/chat/completions"]


@pytest.mark.parametrize("model", ["other", "openai:other"])
def test_model_of_the_document_is_asked_of_the_same_server(model: str) -> None:
    asked = []

    def answer(exchange: Exchange) -> None:
        asked.append(json.loads(exchange.body)["model"])
        said(exchange, 200, completion())

    with serving(answer) as server:
        agent = ModelAgent("openai:tiny", key="k", url=f"{server.url}/v1")
        result = asl.run(task(Model={"Preferred": model}), agents={"A": agent})
    assert (result.output["model"], asked) == ("openai:other", ["other"])
