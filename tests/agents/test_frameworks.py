"""Agents of other frameworks as bindings: pydantic-ai, LangGraph and the OpenAI Agents SDK."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

import asl
from asl.agents import GraphAgent, OpenAiAgent, PydanticAgent
from asl.agents.adapters import ADAPTERS, as_agent
from asl.agents.file import check_agents, load_bindings
from asl.agents.framework import RequestLog
from asl.core.document import read_value
from asl.engine.usage import request_tokens

from .workflows import task

agents = pytest.importorskip("agents")
pytest.importorskip("langgraph")
from agents.models.interface import Model  # noqa: E402
from langchain_core.language_models.fake_chat_models import (  # noqa: E402
    FakeMessagesListChatModel,
)
from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402
from langgraph.types import interrupt  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as AiAgent  # noqa: E402
from pydantic_ai import DeferredToolRequests  # noqa: E402
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.models.test import TestModel  # noqa: E402
from pydantic_ai.usage import RequestUsage  # noqa: E402

WHO = {"role": "user", "content": "Who am I?"}
HISTORY = [
    {"role": "user", "content": "I am Ada."},
    {"role": "assistant", "content": "Hello, Ada."},
    WHO,
]
PRICES = {"openai:m": {"input": 0.5, "output": 0.25}, "function:m": 1, "m": 1, "n": 2}


class Score(BaseModel):
    score: int


class Refused(Exception):
    """What the library of a provider raises for a status."""

    def __init__(self, status_code: int) -> None:
        super().__init__("refused")
        self.status_code = status_code


# One agent of each framework that gives these answers: a text, or an exception to raise.

Answer = str | Exception
Make = Callable[..., Any]


def pydantic_agent(*answers: Answer, seen: list[Any] | None = None, **options: Any) -> Any:
    left = list(answers)

    def answer(messages: Any, info: Any) -> ModelResponse:
        if seen is not None:
            parts = [part for each in messages for part in each.parts]
            seen.append([str(getattr(part, "content", "")) for part in parts])
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return ModelResponse([TextPart(given)], usage=RequestUsage(input_tokens=3, output_tokens=2))

    return AiAgent(FunctionModel(answer, model_name="m"), **options)


class FakeModel(Model):
    """A model of the OpenAI Agents SDK."""

    model = "m"

    def __init__(self, *answers: Any, seen: list[Any] | None = None) -> None:
        self.answers = list(answers)
        self.seen = seen

    async def get_response(  # type: ignore[override]
        self, system_instructions: Any, input: Any, *rest: Any, **more: Any
    ) -> Any:
        if self.seen is not None:
            self.seen.append([each.get("content", "") for each in input])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            text = ResponseOutputText(text=answer, type="output_text", annotations=[])
            answer = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        usage = agents.Usage(requests=1, input_tokens=3, output_tokens=2, total_tokens=5)
        return agents.ModelResponse(output=[answer], usage=usage, response_id=None)

    def stream_response(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError


def openai_agent(*answers: Any, seen: list[Any] | None = None, **options: Any) -> Any:
    return agents.Agent(name="w", model=FakeModel(*answers, seen=seen), **options)


def message(text: str, model: str = "m") -> AIMessage:
    return AIMessage(
        text,
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        response_metadata={"model_name": model},
    )


def compiled(*nodes: Any, state: Any = MessagesState, **options: Any) -> Any:
    graph = StateGraph(state)
    last = START
    for index, node in enumerate(nodes):
        graph.add_node(f"n{index}", node)
        graph.add_edge(last, f"n{index}")
        last = f"n{index}"
    graph.add_edge(last, END)
    return graph.compile(**options)


def graph_agent(*answers: Answer, seen: list[Any] | None = None) -> Any:
    left = list(answers)

    async def node(state: Any) -> Any:
        if seen is not None:
            seen.append([each.text for each in state["messages"]])
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        model = FakeMessagesListChatModel(responses=[message(given)])
        return {"messages": [await model.ainvoke(state["messages"])]}

    return compiled(node)


FRAMEWORKS = {"pydantic": pydantic_agent, "langgraph": graph_agent, "openai": openai_agent}
MODELS = {"pydantic": "function:m", "langgraph": "m", "openai": "openai:m"}
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def run(agent: Any, data: Any = None, state: Any = None, **more: Any) -> asl.Result:
    data = {"prompt": "hi"} if data is None else data
    return asl.run(task(**(state or {})), data, agents={"A": agent}, prices=PRICES, **more)


@each_framework
def test_answer_and_usage(framework: str) -> None:
    seen: list[Any] = []
    result = run(FRAMEWORKS[framework]("Hello.", seen=seen))
    assert result.output == {
        "response": "Hello.",
        "_tokens": 5,
        "_usage": {"input": 3, "output": 2},
        "model": MODELS[framework],
    }
    assert seen == [["hi"]]
    assert result.usage["tokens"] == 5
    assert result.usage["cost"] == (2 if framework == "openai" else 5)


@each_framework
def test_conversation(framework: str) -> None:
    seen: list[Any] = []
    agent = FRAMEWORKS[framework]("Ada.", seen=seen)
    result = run(agent, {"messages": HISTORY})
    assert seen == [["I am Ada.", "Hello, Ada.", "Who am I?"]]
    assert result.output["messages"] == [{"role": "assistant", "content": "Ada."}]
    assert result.output["response"] == "Ada."
    result = run(agent, {"messages": HISTORY[:2], "prompt": "Who am I?"})
    assert result.output["messages"] == [WHO, {"role": "assistant", "content": "Ada."}]
    assert run(agent, {"messages": [{"role": "bot"}]}).error == "Agent.InvalidInput"


@each_framework
@pytest.mark.parametrize(
    ("raised", "name"),
    [
        (Refused(429), "States.RateLimitExceeded"),
        (Refused(401), "States.Permissions"),
        (Refused(403), "States.Permissions"),
        (Refused(504), "States.Timeout"),
        (Refused(500), "Agent.ModelError"),
        (TimeoutError("slow"), "States.Timeout"),
        (ConnectionError("gone"), "Agent.NetworkError"),
        (ValueError("wrong"), "States.TaskFailed"),
        (asl.StateError("Own.Name", "c"), "Own.Name"),
    ],
)
def test_exceptions(framework: str, raised: Exception, name: str) -> None:
    result = run(FRAMEWORKS[framework](raised))
    assert result.error == name
    assert (result.cause or "").endswith(str(raised.args[-1]))


@each_framework
def test_retry_and_catch_see_the_error(framework: str) -> None:
    state = {"Retry": [{"ErrorEquals": ["States.RateLimitExceeded"], "MaxAttempts": 2}]}
    agent = FRAMEWORKS[framework](Refused(429), Refused(429), "at last")
    result = run(agent, state=state, clock="virtual")
    assert result.output["response"] == "at last"


@each_framework
def test_budget_counts_agents(framework: str) -> None:
    document = task()
    document["Budget"] = {"MaxTokens": 4, "OnExceed": "Fail"}
    agent = FRAMEWORKS[framework]("Hello.")
    assert asl.run(document, {"prompt": "x"}, agents={"A": agent}).error == "States.BudgetExceeded"


@each_framework
def test_cancellation_ends_the_run(framework: str) -> None:
    ended: list[str] = []

    async def wait(*given: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    class Waiting(FakeModel):
        async def get_response(self, *given: Any, **more: Any) -> Any:
            return await wait()

    agent = {
        "pydantic": lambda: AiAgent(FunctionModel(wait, model_name="m")),
        "langgraph": lambda: compiled(wait),
        "openai": lambda: agents.Agent(name="w", model=Waiting()),
    }[framework]()
    result = run(agent, state={"TimeoutSeconds": 1})
    assert (result.error, ended) == ("States.Timeout", ["cancelled"])


@each_framework
def test_agent_as_a_tool(framework: str) -> None:
    async def boss(parameters: Any, call: Any) -> Any:
        return await call.tools.call("writer", {"prompt": "hi"})

    document = task(Tools={"Allowed": ["writer"]})
    tools = {"writer": FRAMEWORKS[framework]("Hello.")}
    assert asl.run(document, {}, agents={"A": boss}, tools=tools).output["response"] == "Hello."


@each_framework
def test_result_is_recorded_in_a_store(framework: str, tmp_path: Path) -> None:
    with asl.Store(tmp_path / "runs.db") as store:
        agent = FRAMEWORKS[framework]("Hello.")
        result = store.run(task(), {"messages": [WHO]}, name="a", agents={"A": agent})
        assert result.output["response"] == "Hello."
        assert store.result("a").output == result.output


# Recognition and agents files


@each_framework
def test_agents_file_names_an_object(framework: str, tmp_path: Path) -> None:
    (tmp_path / "crew.py").write_text(
        f"from {__name__} import FRAMEWORKS\nwriter = FRAMEWORKS[{framework!r}]('Hello.')\n"
    )
    file = tmp_path / "agents.yaml"
    file.write_text("agents:\n  A: crew.py:writer\n  B: {function: 'crew.py:writer'}\n")
    assert check_agents(read_value(file)).ok
    bound = load_bindings(file)
    for name in ("A", "B"):
        assert run(bound.agents[name]).output["response"] == "Hello."
    file.write_text("agents:\n  A: {function: 'crew.py:writer', lambda: true}\n")
    with pytest.raises(asl.AslError, match="'lambda' configures a function"):
        load_bindings(file)


def test_no_framework_is_imported_for_other_bindings() -> None:
    code = (
        "import asl, sys; asl.run({'StartAt': 'T', 'States': {'T': {'Type': 'Task', 'Agent': 'A',"
        " 'End': True}}}, {}, agents={'A': lambda parameters: 1});"
        "sys.exit(any(each in sys.modules for each in ('pydantic_ai', 'langgraph', 'agents')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_no_agent_is_named_with_all_forms() -> None:
    with pytest.raises(asl.AslError, match="'A' is bound to StateGraph; an agent is ") as caught:
        as_agent(StateGraph(MessagesState), "A")
    assert all(adapter.form in str(caught.value) for adapter in ADAPTERS)


def test_class_of_the_same_name_is_not_taken_for_a_framework() -> None:
    class AgentBase:
        __module__ = "agents.agent"

        def __call__(self, parameters: Any) -> str:
            return "own"

    assert run(AgentBase()).output == "own"


# pydantic-ai


def test_structured_output_of_pydantic_ai() -> None:
    agent = AiAgent(TestModel(custom_output_args={"score": 3}), output_type=Score)
    result = run(agent, {"messages": [WHO]})
    assert result.output["score"] == 3
    assert result.output["messages"] == [{"role": "assistant", "content": '{"score":3}'}]
    numbers = AiAgent(TestModel(custom_output_args=[1, 2]), output_type=list[int])
    assert run(numbers).output["response"] == [1, 2]


def test_output_that_stays_wrong_is_an_error() -> None:
    def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse([ToolCallPart("final_result", {"score": "x"})])

    assert run(AiAgent(FunctionModel(answer), output_type=Score)).error == "Agent.InvalidOutput"


def test_system_prompt_and_deps_of_pydantic_ai() -> None:
    seen: list[Any] = []
    agent = pydantic_agent("hi", seen=seen, system_prompt="Be brief.", deps_type=str)

    @agent.system_prompt
    def who(context: Any) -> str:
        return f"Talk to {context.deps}."

    run(PydanticAgent(agent, deps="Ada"), {"messages": HISTORY})
    assert seen[0][:2] == ["Be brief.", "Talk to Ada."]
    assert len(seen[0]) == 5


def test_model_of_the_document() -> None:
    result = run(pydantic_agent("hi"), state={"Model": {"Preferred": "test"}})
    assert result.error == "Agent.InvalidInput"  # the provider 'function' has no such model


def test_streaming_of_pydantic_ai() -> None:
    chunks = []
    result = asl.run(
        task(Streaming={"Enabled": True}),
        {"prompt": "x"},
        agents={"A": AiAgent(TestModel(custom_output_text="one two"))},
        listener=lambda event: chunks.append(event.type),
    )
    assert result.output["response"] == "one two"
    assert any("Chunk" in each for each in chunks)


# LangGraph


class Texts(TypedDict):
    text: str
    length: int


def test_state_of_a_graph_is_the_result() -> None:
    graph = compiled(lambda state: {"length": len(state["text"])}, state=Texts)
    assert run(graph, {"text": "abc"}).output == {"text": "abc", "length": 3}
    assert run(graph, "abc").error == "Agent.InvalidInput"


def test_usage_of_several_models_is_a_cost() -> None:
    def ask(model: str) -> Any:
        fake = FakeMessagesListChatModel(responses=[message("x", model)])

        async def node(state: Any) -> Any:
            return {"messages": [await fake.ainvoke("hi")]}

        return node

    result = run(compiled(ask("m"), ask("n")))
    assert (result.usage["tokens"], result.usage["cost"]) == (10, 15)
    assert "model" not in result.output
    unknown = run(compiled(ask("m"), ask("other")))
    assert (unknown.usage["tokens"], unknown.usage["cost"]) == (10, 0)


@each_framework
def test_usage_that_is_none_is_unknown(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative count lowers nothing: with a budget, the call fails."""
    real = request_tokens
    for module in ("framework", "model_runs"):
        monkeypatch.setattr(f"asl.agents.{module}.request_tokens", lambda a, b: real(-a, b))
    result = run(FRAMEWORKS[framework]("Hello."), state={"Budget": {"MaxTokens": 100}})
    assert result.error == "Agent.InvalidOutput"
    assert (result.usage["tokens"], result.usage["assumed"]["tokens"]) == (2, 98)


@pytest.mark.parametrize("wrong", [None, "x", [1], -1, 10**20])
def test_log_of_requests_takes_whatever_a_provider_reports(wrong: Any) -> None:
    log = RequestLog()
    for model, given in ((wrong, 3), ("m", wrong), ("m", 3)):
        log.begin()
        log.end(model, given, 2)
    assert (log.open, log.answered[-1]) == (0, ("m", (3, 2, True)))
    assert log.answered[1] == ("m", (0, 2, False))


def test_usage_before_a_failure_counts() -> None:
    fake = FakeMessagesListChatModel(responses=[message("x")])

    async def ask(state: Any) -> Any:
        return {"messages": [await fake.ainvoke("hi")]}

    def fail(state: Any) -> Any:
        raise ValueError("late")

    result = run(compiled(ask, fail))
    assert (result.error, result.usage["tokens"]) == ("States.TaskFailed", 5)


def test_usage_that_a_node_tells_in_its_message() -> None:
    result = run(compiled(lambda state: {"messages": [message("Hello.")]}))
    assert (result.usage["tokens"], result.output["model"]) == (5, "m")


def test_graph_with_checkpointer_has_a_thread_of_its_own() -> None:
    seen: list[Any] = []

    def node(state: Any) -> Any:
        seen.append(len(state["messages"]))
        return {"messages": [message("x")]}

    graph = compiled(node, checkpointer=InMemorySaver())
    run(graph)
    run(graph)
    assert seen == [1, 1]
    shared = GraphAgent(graph, config={"configurable": {"thread_id": "one"}})
    run(shared)
    run(shared)
    assert seen[2:] == [1, 3]


def test_interrupted_graph_is_an_error() -> None:
    graph = compiled(lambda state: interrupt("ok?"), checkpointer=InMemorySaver())
    result = run(graph)
    assert result.error == "Agent.InvalidOutput"
    assert "waits for a person's decision" in (result.cause or "")


def test_recursion_limit_is_an_error() -> None:
    graph = GraphAgent(
        compiled(*[lambda state: {"messages": []}] * 5), config={"recursion_limit": 2}
    )
    assert run(graph).error == "Agent.ModelError"


def test_other_members_of_the_state_stand_in_the_result() -> None:
    class State(TypedDict):
        messages: Annotated[list[Any], lambda old, new: old + new]
        topic: str

    def node(state: Any) -> Any:
        return {"messages": [message("x")], "topic": state["topic"].upper()}

    result = run(compiled(node, state=State), {"prompt": "hi", "topic": "bees", "other": 1})
    assert (result.output["topic"], result.output["response"]) == ("BEES", "x")


# OpenAI Agents SDK


def use(tool: str, arguments: str) -> Any:
    return ResponseFunctionToolCall(
        call_id="c1", name=tool, arguments=arguments, type="function_call"
    )


@agents.function_tool
def find(q: int) -> str:
    """Find something."""
    return f"found {q}"


def test_tool_calls_of_the_sdk_are_messages() -> None:
    agent = openai_agent(use("find", '{"q":1}'), "done", tools=[find])
    added = run(agent, {"messages": [WHO]}).output["messages"]
    assert [each["role"] for each in added] == ["assistant", "tool", "assistant"]
    assert added[1]["content"] == "found 1"
    result = run(agent, {"messages": [WHO, *added, WHO]})
    assert result.output["messages"] == [{"role": "assistant", "content": "done"}]


def test_structured_output_of_the_sdk() -> None:
    agent = openai_agent('{"score": 3}', output_type=Score)
    assert run(agent).output["score"] == 3
    wrong = run(openai_agent('{"score": "x"}', output_type=Score))
    assert (wrong.error, wrong.usage["tokens"]) == ("Agent.InvalidOutput", 5)


def test_turns_of_the_sdk_are_bounded() -> None:
    agent = OpenAiAgent(openai_agent(use("find", '{"q":1}'), tools=[find]), turns=3)
    result = run(agent)
    assert (result.error, result.usage["tokens"]) == ("Agent.ModelError", 15)


def test_guardrail_of_the_sdk() -> None:
    @agents.input_guardrail
    def never(context: Any, agent: Any, given: Any) -> Any:
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    result = run(openai_agent("hi", input_guardrails=[never]))
    assert result.error == "Agent.GuardrailViolation"


def test_handoff_of_the_sdk() -> None:
    writer = openai_agent("written")
    boss = agents.Agent(name="boss", model=FakeModel(use("transfer_to_w", "{}")), handoffs=[writer])
    result = run(boss, {"messages": [WHO]})
    assert (result.output["response"], result.usage["tokens"]) == ("written", 10)


def test_tool_of_the_sdk_that_needs_approval_is_an_error() -> None:
    @agents.function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    result = run(openai_agent(use("pay", '{"amount":1}'), tools=[pay]))
    assert (result.error, result.usage["tokens"]) == ("Agent.InvalidOutput", 5)
    assert "waits for a person's decision" in (result.cause or "")


@pytest.mark.parametrize(
    ("model", "spoken", "name"),
    [
        ("gpt-5", "gpt-5", "openai:gpt-5"),
        ("openai:gpt-5", "openai/gpt-5", "openai:gpt-5"),
        ("anthropic:c", "litellm/anthropic/c", "anthropic:c"),
    ],
)
def test_model_of_the_document_for_the_sdk(
    model: str, spoken: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def found(provider: Any, wanted: str) -> Any:
        asked.append(wanted)
        return FakeModel("hi")

    monkeypatch.setattr("agents.MultiProvider.get_model", found)
    result = run(openai_agent("no"), state={"Model": {"Preferred": model}})
    assert (asked[0], result.output["model"]) == (spoken, name)
    assert result.output["response"] == "hi"


def test_tool_of_pydantic_ai_that_needs_approval_is_an_error() -> None:
    agent = AiAgent(TestModel(), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return "paid"

    result = run(agent)
    assert result.error == "Agent.InvalidOutput"
    assert "waits for a person's decision" in (result.cause or "")
    assert result.usage["tokens"] > 0


def test_agent_of_pydantic_ai_without_a_model() -> None:
    assert run(AiAgent()).error == "Agent.InvalidInput"
    result = run(AiAgent(), state={"Model": {"Preferred": "test"}})
    assert result.output["model"] == "test"


def test_agents_file_with_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "a-very-secret-key")
    text = f"from {__name__} import FRAMEWORKS\n"
    for name in FRAMEWORKS:
        text += f"{name} = FRAMEWORKS[{name!r}]('It is a-very-secret-key.')\n"
    (tmp_path / "crew.py").write_text(text)
    file = tmp_path / "agents.yaml"
    lines = "".join(f"  {name}: crew.py:{name}\n" for name in FRAMEWORKS)
    file.write_text(
        f"agents:\n{lines}  W: {{command: [x], environment: {{KEY: '${{env:MY_KEY}}'}}}}\n"
    )
    bound = load_bindings(file)
    for name in FRAMEWORKS:
        result = run(bound.agents[name], {"messages": [WHO]})
        assert result.output["response"] == "It is ***."
        assert "very-secret" not in str(result.output)
