"""Conversations with language models: the parameter and the result `messages`."""

from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

import asl
from asl.agents.conversation import read_conversation
from asl.agents.model import ModelAgent
from asl.agents.tool import Tool
from asl.core.errors import StateError

from .workflows import task

ADA = {"role": "user", "content": "I am Ada."}
HELLO = {"role": "assistant", "content": "Hello, Ada."}
WHO = {"role": "user", "content": "Who am I?"}
CALLS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q":1}'}}
    ],
}
FOUND = {"role": "tool", "content": "[1]", "tool_call_id": "c1", "name": "find"}


class Model:
    """A model that gives its answers one after the other and remembers what it was asked."""

    def __init__(self, *answers: TextPart | ToolCallPart) -> None:
        self.answers = answers
        self.asked: list[list[tuple[str, Any]]] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        self.asked.append([(part.part_kind, getattr(part, "content", None)) for part in parts])
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return ModelResponse([answer], usage=RequestUsage(input_tokens=10, output_tokens=5))

    def run(self, parameters: Any, state: Any = None, **options: Any) -> asl.Result:
        agent = ModelAgent(FunctionModel(self, model_name="m"), **options)
        return asl.run(task(**(state or {})), parameters, agents={"A": agent})


def test_messages_are_the_history_of_the_model() -> None:
    model = Model(TextPart("Ada."))
    result = model.run({"messages": [ADA, HELLO, WHO]})
    assert model.asked == [
        [
            ("user-prompt", "I am Ada."),
            ("text", "Hello, Ada."),
            ("user-prompt", "Who am I?"),
        ]
    ]
    assert result.output["response"] == "Ada."
    assert result.output["messages"] == [{"role": "assistant", "content": "Ada."}]


@pytest.mark.parametrize("name", ["prompt", "task", "message", "input"])
@pytest.mark.parametrize("history", [[], [ADA, HELLO]])
def test_prompt_continues_the_messages(name: str, history: list[Any]) -> None:
    model = Model(TextPart("Ada."))
    result = model.run({"messages": history, name: "Who am I?"})
    assert len(model.asked[0]) == len(history) + 1
    assert model.asked[0][-1] == ("user-prompt", "Who am I?")
    assert result.output["messages"] == [WHO, {"role": "assistant", "content": "Ada."}]


def test_result_has_messages_for_a_conversation_only() -> None:
    assert "messages" not in Model(TextPart("hi")).run({"prompt": "Who am I?"}).output
    model = Model(TextPart("hi"))
    assert "messages" not in model.run({"messages": "no conversation"}).output
    assert model.asked == [[("user-prompt", '{"messages":"no conversation"}')]]


def test_system_prompt_of_the_agent_begins_the_history() -> None:
    model = Model(TextPart("Ada."))
    system = {"role": "system", "content": "You know people."}
    model.run({"messages": [system, ADA, HELLO, WHO]}, system="Be brief.")
    assert model.asked[0][:2] == [
        ("system-prompt", "Be brief."),
        ("system-prompt", "You know people."),
    ]
    model.run({"messages": [WHO]}, system="Be brief.")
    assert model.asked[1] == [("system-prompt", "Be brief."), ("user-prompt", "Who am I?")]


def test_usage_counts_this_call_only() -> None:
    result = Model(TextPart("Ada.")).run({"messages": [ADA, HELLO, WHO]})
    assert result.output["_usage"] == {"input": 10, "output": 5}
    assert result.usage["tokens"] == 15


def test_tool_calls_are_messages_that_can_be_sent_again() -> None:
    tool = Tool("find", "Finds.", lambda arguments: [arguments["q"]])
    model = Model(ToolCallPart("find", {"q": 1}, "c1"), TextPart("Ada."))
    added = model.run({"messages": [WHO]}, tools=[tool]).output["messages"]
    assert added == [CALLS, FOUND, {"role": "assistant", "content": "Ada."}]
    again = Model(TextPart("Still Ada."))
    result = again.run({"messages": [WHO, *added], "prompt": "And now?"}, tools=[tool])
    assert [kind for kind, _ in again.asked[0]] == [
        *("user-prompt", "tool-call", "tool-return", "text", "user-prompt"),
    ]
    assert len(result.output["messages"]) == 2


def test_history_may_end_with_the_result_of_a_tool() -> None:
    model = Model(TextPart("Ada."))
    result = model.run({"messages": [WHO, CALLS, FOUND]})
    assert [kind for kind, _ in model.asked[0]] == ["user-prompt", "tool-call", "tool-return"]
    assert result.output["messages"] == [{"role": "assistant", "content": "Ada."}]


def test_structured_answer_is_a_message() -> None:
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = Model(ToolCallPart("answer", {"n": "x"}), ToolCallPart("answer", {"n": 3}))
    result = model.run({"messages": [WHO]}, output=output, retries=1)
    assert result.output["n"] == 3
    assert result.output["messages"] == [{"role": "assistant", "content": '{"n":3}'}]
    again = Model(TextPart("Ada."))
    assert again.run({"messages": [WHO, *result.output["messages"], WHO]}).status == "SUCCEEDED"


def test_texts_of_several_parts() -> None:
    model = Model(TextPart("hi"))
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    model.run({"messages": [{"role": "user", "content": parts}]})
    assert model.asked == [[("user-prompt", "a\nb")]]


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        ([], "messages: they end before the first message"),
        ([ADA, HELLO], "messages: they end with the role 'assistant'"),
        (["hi"], r"messages\[0\]: a message is an object with 'role' and 'content'"),
        ([{"content": "x"}], r"messages\[0\]: the role must be one of .*, got no role"),
        ([ADA, {"role": "bot", "content": "x"}], r"messages\[1\]: the role .* got \"bot\""),
        ([{"role": ["user"], "content": "x"}], r"messages\[0\]: the role must be"),
        ([{"role": "user"}], r"messages\[0\]: 'content' must be a text"),
        ([{"role": "user", "content": None}], r"messages\[0\]: 'content' must be a text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "'content' must be a text"),
        ([{"role": "user", "content": 7}], "'content' must be a text"),
        ([FOUND], r"'tool_call_id' \"c1\" answers no call of a tool"),
        ([CALLS, FOUND, FOUND], r"messages\[2\]: 'tool_call_id'"),
        ([{**FOUND, "tool_call_id": [1]}], "answers no call of a tool"),
        ([CALLS, WHO], r"messages\[1\]: no tool has answered 'c1' before it"),
        ([WHO, CALLS], "messages: no tool has answered 'c1'"),
        ([{**CALLS, "tool_calls": ["x"]}], r"messages\[0\]\.tool_calls\[0\]: a call of a tool has"),
        (
            [{**CALLS, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "["}}]}],
            "a call of a tool has",
        ),
    ],
)
def test_messages_that_are_no_conversation(messages: Any, cause: str) -> None:
    with pytest.raises(StateError, match=cause) as caught:
        read_conversation({"messages": messages})
    assert caught.value.name == "Agent.InvalidInput"
    model = Model(TextPart("hi"))
    assert model.run({"messages": messages}).error == "Agent.InvalidInput"
    assert model.asked == []


def test_context_stands_before_the_message_to_answer() -> None:
    model = Model(TextPart("Ada."))
    state = {"Context": {"Include": ["$.fact"]}, "Parameters": {"messages": [ADA, HELLO, WHO]}}
    model.run({"fact": "x"}, state)
    assert model.asked[0][-1] == ("user-prompt", ["$.fact: x", "Who am I?"])


def test_guardrails_see_messages() -> None:
    rule = {"Type": "regex", "Pattern": "(?i)ada", "Action": "redact"}
    state = {"Guardrails": {"Output": {"Rules": [rule]}}}
    result = Model(TextPart("It is Ada.")).run({"messages": [WHO]}, state)
    assert "Ada" not in str(result.output["messages"])
    state = {"Guardrails": {"Input": {"Rules": [{**rule, "Action": "block"}]}}}
    model = Model(TextPart("no"))
    assert model.run({"messages": [ADA, HELLO, WHO]}, state).status == "FAILED"
    assert model.asked == []


def chat(append: str) -> dict[str, Any]:
    return {
        "StartAt": "Answer",
        "States": {
            "Answer": {
                "Type": "Task",
                "Agent": "A",
                "Parameters": {"messages.$": "$.messages", "prompt.$": "$.say[0]"},
                "ResultPath": "$.reply",
                "Next": "Append",
            },
            "Append": {
                "Type": "Pass",
                "Parameters": {
                    "messages.$": append,
                    "say.$": "$.say[1:]",
                },
                "Next": "More",
            },
            "More": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.say[0]", "IsPresent": True, "Next": "Answer"}],
                "Default": "Done",
            },
            "Done": {"Type": "Succeed"},
        },
    }


def test_chat_loop(tmp_path: Any) -> None:
    model = Model(TextPart("one"), TextPart("two"), TextPart("three"))
    document = chat("States.ArrayConcat($.messages, $.reply.messages)")
    with asl.Store(tmp_path / "runs.db") as store:
        result = store.run(
            document,
            {"messages": [], "say": ["a", "b", "c"]},
            agents={"A": ModelAgent(FunctionModel(model, model_name="m"))},
        )
    assert [each["content"] for each in result.output["messages"]] == [
        *("a", "one", "b", "two", "c", "three"),
    ]
    assert len(model.asked[2]) == 5
    assert result.usage["tokens"] == 45


def test_model_of_a_conversation_needs_no_finish_reason() -> None:
    result = asl.run(task(), {"messages": [WHO]}, agents={"A": ModelAgent(TestModel())})
    assert result.output["messages"][0]["role"] == "assistant"


def test_streamed_answer_is_a_message() -> None:
    result = asl.run(
        task(Streaming={"Enabled": True}),
        {"messages": [ADA, HELLO, WHO]},
        agents={"A": ModelAgent(TestModel(custom_output_text="Ada."))},
    )
    assert result.output["messages"] == [{"role": "assistant", "content": "Ada."}]
