"""Documents of other languages with language models behind their agents.

The models are a server on loopback that speaks OpenAI's protocol and records its requests.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents.file import load_bindings
from asl.dialects import agent_definitions
from tests.agents import lean_mcp
from tests.agents.servers import serving
from tests.agents.test_model import completion, said

pytest.importorskip("pydantic_ai")

MODEL = "{model: 'openai-chat:*', key: abcdefgh, url: URL}"
"""The document names the model."""


class Run:
    """One run: its result, and the requests that the server recorded."""

    def __init__(self, result: asl.Result, requests: list[dict[str, Any]]) -> None:
        self.result = result
        self.requests = requests

    def messages(self, index: int) -> list[tuple[str, Any]]:
        """Return role and content of the messages of a request."""
        return [(each["role"], each.get("content")) for each in self.requests[index]["messages"]]


def run(
    folder: Path,
    document: str,
    agents: str,
    answers: Sequence[dict[str, Any]],
    data: Any = "tea",
    clock: str = "wall",
) -> Run:
    """Run a document; the server gives the answers in their order."""
    coming = iter(answers)
    name = "flow.json" if document.startswith("{") else "flow.yaml"
    (folder / name).write_text(document)
    with serving(lambda exchange: said(exchange, 200, next(coming))) as server:
        (folder / "agents.yaml").write_text(agents.replace("URL", f"{server.url}/v1"))
        bound = load_bindings(folder / "agents.yaml")
        tools = {**bound.servers, **bound.tools}
        result = asl.run(folder / name, data, agents=bound.agents, tools=tools, clock=clock)
    return Run(result, [each.json for each in server.requests])


def bound(*names: str, more: str = "") -> str:
    """Return an agents file that binds names to models, or *more*."""
    return "agents:\n" + "".join(f"  {name}: {MODEL}\n" for name in names) + more


# CodeMie

WORKFLOW = """
assistants:
  - {id: writer, system_prompt: You write., model: gpt-4.1, temperature: 0.2}
  - {id: critic, system_prompt: You judge., model: gpt-5}
states:
  - {id: draft, assistant_id: writer, task: "Write about {{task}}", next: {state_id: judge}}
  - id: judge
    assistant_id: critic
    task: Judge the draft
    next: {state_id: end}
"""
SCHEMA = '{"type": "object", "properties": {"score": {"type": "integer"}}}'


def test_codemie_assistant_is_asked_with_its_prompt_model_and_settings(tmp_path: Path) -> None:
    """System prompt, model and temperature of the assistant; the history as messages."""
    answers = [completion("A draft."), completion("Good.")]
    made = run(tmp_path, WORKFLOW, bound("writer", "critic"), answers)
    first, second = made.requests
    assert (first["model"], first["temperature"]) == ("gpt-4.1", 0.2)
    assert second["model"] == "gpt-5"
    assert "temperature" not in second
    assert made.messages(0) == [
        ("system", "You write."),
        ("user", "tea"),
        ("user", "Write about tea"),
    ]
    assert made.messages(1) == [
        ("system", "You judge."),
        ("user", "tea"),
        ("assistant", "A draft."),
        ("user", "Judge the draft"),
    ]


def test_codemie_answer_is_text_and_usage_is_counted(tmp_path: Path) -> None:
    """Usage is part of the result of the run, not of the context."""
    answers = [completion("A draft."), completion("Good.")]
    result = run(tmp_path, WORKFLOW, bound("writer", "critic"), answers).result
    assert result.output == {
        "cm": {
            "last": "Good.",
            "history": [
                {"role": "human", "content": "tea"},
                {"role": "ai", "content": "A draft.", "state": "draft"},
                {"role": "ai", "content": "Good.", "state": "judge"},
            ],
            "steps": 2,
        }
    }
    assert result.usage["tokens"] == 30


@pytest.mark.parametrize("flag", ["include_in_llm_history: false", "keep_history: false"])
def test_codemie_state_outside_of_history_is_not_sent(tmp_path: Path, flag: str) -> None:
    """A state that leaves no message is missing in the next request."""
    document = WORKFLOW.replace("next: {state_id: judge}", f"next: {{state_id: judge, {flag}}}")
    answers = [completion("A draft."), completion("Good.")]
    made = run(tmp_path, document, bound("writer", "critic"), answers)
    assert ("assistant", "A draft.") not in made.messages(1)


def test_codemie_clear_prior_messages_and_human_result(tmp_path: Path) -> None:
    """`clear_prior_messages` drops earlier messages; a result may be a message of the user."""
    document = WORKFLOW.replace(
        "next: {state_id: judge}",
        "result_as_human_message: true, next: {state_id: judge, clear_prior_messages: true}",
    )
    answers = [completion("A draft."), completion("Good.")]
    made = run(tmp_path, document, bound("writer", "critic"), answers)
    assert made.messages(1) == [
        ("system", "You judge."),
        ("user", "A draft."),
        ("user", "Judge the draft"),
    ]


def test_codemie_output_schema_is_a_structured_answer(tmp_path: Path) -> None:
    """The value is the output of the state, and its keys are in the context."""
    document = WORKFLOW.replace("Judge the draft", f"Judge\n    output_schema: '{SCHEMA}'")
    answers = [completion("A draft."), completion(None, answer={"score": 7})]
    made = run(tmp_path, document, bound("writer", "critic"), answers)
    (tool,) = made.requests[1]["tools"]
    assert tool["function"]["parameters"]["properties"] == {"score": {"type": "integer"}}
    assert made.result.output["score"] == 7
    assert made.result.output["cm"]["last"] == '{"score": 7}'


def test_codemie_schema_may_have_a_property_named_response(tmp_path: Path) -> None:
    """A structured answer is kept whole, whatever its properties are called."""
    schema = '{"type": "object", "properties": {"response": {"type": "string"}}}'
    document = WORKFLOW.replace("Judge the draft", f"Judge\n    output_schema: '{schema}'")
    answers = [completion("A draft."), completion(None, answer={"response": "fine"})]
    output = run(tmp_path, document, bound("writer", "critic"), answers).result.output
    assert output["response"] == "fine"


def test_codemie_answer_against_its_schema_is_asked_again(tmp_path: Path) -> None:
    """An example instead of a schema is an instruction about the form of the answer."""
    document = WORKFLOW.replace("Judge the draft", 'Judge\n    output_schema: \'{"score": "..."}\'')
    answers = [completion("A draft."), completion('{"score": 7}')]
    made = run(tmp_path, document, bound("writer", "critic"), answers)
    assert made.messages(1)[1] == ("system", 'Answer in this form:\n{"score": "..."}')
    assert made.result.output["score"] == 7


def test_codemie_item_is_part_of_the_prompt(tmp_path: Path) -> None:
    """The platform appends it, also where the task happens to contain its text."""
    document = WORKFLOW.replace("next: {state_id: judge}", "next: {state_id: judge, iter_key: .}")
    answers = [completion('["e", "two"]'), completion("x"), completion("y")]
    made = run(tmp_path, document, bound("writer", "critic"), answers)
    prompts = [made.messages(index)[-1][1] for index in (1, 2)]
    assert sorted(prompts) == [  # the items are concurrent
        "Judge the draft\n\nCurrent task: e",
        "Judge the draft\n\nCurrent task: two",
    ]


def test_agents_file_overrides_prompt_model_and_settings(tmp_path: Path) -> None:
    """What stands in the agents file wins over the document."""
    more = (
        "  writer: {model: 'openai-chat:mine', key: abcdefgh, url: URL, system: Be brief.,"
        " settings: {temperature: 0.9, max_tokens: 5}}\n"
    )
    answers = [completion("A draft."), completion("Good.")]
    first = run(tmp_path, WORKFLOW, bound("critic", more=more), answers).requests[0]
    assert (first["model"], first["temperature"]) == ("mine", 0.9)
    assert first["max_completion_tokens"] == 5
    assert first["messages"][0] == {"role": "system", "content": "Be brief."}


def test_agent_without_any_model_is_an_error(tmp_path: Path) -> None:
    """`PROVIDER:*` needs a document that names the model."""
    document = WORKFLOW.replace("system_prompt: You judge., model: gpt-5", "system_prompt: Judge.")
    agents = bound("critic").replace("agents:", "agents:\n  writer: {return: A draft.}")
    result = run(tmp_path, document, agents, [], clock="virtual").result
    assert result.error == "Agent.InvalidInput"
    assert "write openai-chat:NAME into the agents file" in str(result.cause)


TOOLS = """
tools:
  search: {description: Searches., agent: {return: found}, input: {type: object}}
"""


def test_codemie_assistant_uses_the_tools_that_it_names(tmp_path: Path) -> None:
    """A tool of the assistant is bound by its name in the agents file."""
    document = WORKFLOW.replace("temperature: 0.2", "tools: [{name: search}]")
    answers = [completion(None, search={}), completion("A draft."), completion("Good.")]
    made = run(tmp_path, document, bound("writer", "critic", more=TOOLS), answers)
    (tool,) = made.requests[0]["tools"]
    assert tool["function"]["name"] == "search"
    assert made.messages(1)[-1] == ("tool", "found")
    assert "tools" not in made.requests[2]
    assert made.result.output["cm"]["last"] == "Good."


def test_codemie_tool_state_calls_the_tool_of_its_name(tmp_path: Path) -> None:
    """A tool actor that is not bound itself is answered by the tool that it names."""
    document = """
tools: [{id: finder, tool: search, tool_args: {q: "{{topic}}"}}]
states: [{id: find, tool_id: finder, next: {state_id: end, output_key: hit}}]
"""
    agents = "tools:\n  search: {description: Searches., agent: {echo: true}}\n"
    result = run(tmp_path, document, agents, [], {"topic": "tea"}).result
    assert result.output["hit"] == '{"q": "tea"}'


SERVER = f"""
servers:
  lean: {{command: {json.dumps([sys.executable, "-S", str(Path(lean_mcp.__file__))])}}}
"""


@pytest.mark.parametrize(
    ("listed", "offered"),
    [("", ["look", "two", "fail", "die"]), (", tools: [look]", ["look"])],
)
def test_codemie_assistant_uses_the_mcp_servers_that_it_names(
    tmp_path: Path, listed: str, offered: list[str]
) -> None:
    """A server is bound by its name in the agents file; it may list the tools that count."""
    pytest.importorskip("mcp")
    server = f"mcp_servers: [{{name: lean, command: lean{listed}}}]"
    document = WORKFLOW.replace("temperature: 0.2", server)
    answers = [completion(None, look={}), completion("A draft."), completion("Good.")]
    made = run(tmp_path, document, bound("writer", "critic", more=SERVER), answers)
    assert [each["function"]["name"] for each in made.requests[0]["tools"]] == offered
    assert made.messages(1)[-1][0] == "tool"
    assert made.result.output["cm"]["last"] == "Good."


def test_disabled_mcp_server_is_not_used(tmp_path: Path) -> None:
    """`enabled: false` leaves its tools out."""
    server = "mcp_servers: [{name: lean, command: lean, enabled: false}]"
    document = WORKFLOW.replace("temperature: 0.2", server)
    answers = [completion("A draft."), completion("Good.")]
    made = run(tmp_path, document, bound("writer", "critic", more=SERVER), answers)
    assert "tools" not in made.requests[0]


# Contenox


def test_contenox_tool_task_calls_the_tool_of_a_server(tmp_path: Path) -> None:
    """The provider is a server of the agents file, `tool_name` one of its tools."""
    pytest.importorskip("mcp")
    task = {"id": "find", "handler": "hook", "hook": {"name": "lean", "tool_name": "look"}}
    result = run(tmp_path, chain(task), SERVER, []).result
    assert result.status == "SUCCEEDED", result.cause
    assert (result.output["input"], result.output["key"]) == ("tea", "nothing")


def chain(*tasks: dict[str, Any]) -> str:
    """Return a chain of tasks, each followed by the next one unless it has a transition."""
    made = []
    for index, task in enumerate(tasks):
        goto = tasks[index + 1]["id"] if index + 1 < len(tasks) else "end"
        branches = [{"operator": "default", "when": "", "goto": goto}]
        made.append({"transition": {"branches": branches}, **task})
    return json.dumps({"id": "chain", "tasks": made})


def ask(handler: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "ask",
        "handler": handler,
        "system_instruction": "Rate it.",
        "prompt_template": "How good is {{.input}}?",
        **more,
    }


@pytest.mark.parametrize(
    ("handler", "answer", "output"),
    [
        ("parse_number", "I say 9.", 9),
        ("parse_score", "4.5", 4.5),
        ("parse_range", "1-3", "1-3"),
        ("prompt_to_string", " fine ", "fine"),
        ("prompt_to_js", "x = 1", "x = 1"),
    ],
)
def test_contenox_answer_of_a_model_is_the_output(
    tmp_path: Path, handler: str, answer: str, output: Any
) -> None:
    """The handler reads the text of the answer; instruction, model and settings are passed."""
    config = {"model": "small", "provider": "openai", "temperature": 0.3, "max_tokens": 50}
    document = chain(ask(handler, execute_config=config))
    made = run(tmp_path, document, bound("ask"), [completion(answer)])
    assert made.result.output == output
    assert made.result.usage["tokens"] == 15
    (request,) = made.requests
    assert (request["model"], request["temperature"]) == ("small", 0.3)
    assert request["max_completion_tokens"] == 50
    assert made.messages(0) == [("system", "Rate it."), ("user", "How good is tea?")]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (ask("condition_key", valid_conditions={"yes": True, "no": False}), "yes, no"),
        (
            ask(
                "route",
                transition={"branches": [{"operator": "equals", "when": "yes", "goto": "end"}]},
            ),
            "yes",
        ),
    ],
)
def test_contenox_choices_are_sent_to_the_model(
    tmp_path: Path, task: dict[str, Any], words: str
) -> None:
    """Keywords and labels are a second system message."""
    made = run(
        tmp_path,
        chain({**task, "execute_config": {"model": "m"}}),
        bound("ask"),
        [completion("yes")],
    )
    assert made.result.status == "SUCCEEDED"
    assert made.messages(0)[1] == ("system", f"Answer with one of these words only: {words}")


def test_contenox_chat_is_sent_as_messages(tmp_path: Path) -> None:
    """A second chat_completion continues the conversation of the first one."""
    document = chain(
        {
            "id": "one",
            "handler": "chat_completion",
            "system_instruction": "Be kind.",
            "execute_config": {"model": "m"},
        },
        {"id": "two", "handler": "chat_completion", "execute_config": {"model": "m"}},
    )
    made = run(tmp_path, document, bound("one", "two"), [completion("Hi."), completion("Bye.")])
    assert made.messages(1) == [
        ("system", "Be kind."),
        ("user", "tea"),
        ("assistant", "Hi."),
        ("user", "Continue."),
    ]
    assert [each["content"] for each in made.result.output["messages"]] == [
        "Be kind.",
        "tea",
        "Hi.",
        "Bye.",
    ]


def test_contenox_tools_are_requested_and_run_by_the_chain(tmp_path: Path) -> None:
    """chat_completion returns the request, execute_tool_calls performs it with bound tools."""
    config = {"model": "m", "tools": ["search"]}
    called = [
        {"operator": "equals", "when": "tool_call", "goto": "do"},
        {"operator": "default", "when": "", "goto": "end"},
    ]
    document = chain(
        {
            "id": "chat",
            "handler": "chat_completion",
            "execute_config": config,
            "transition": {"branches": called},
        },
        {
            "id": "do",
            "handler": "execute_tool_calls",
            "transition": {"branches": [{"operator": "default", "when": "", "goto": "chat"}]},
        },
    )
    answers = [completion("", search={}), completion("done")]
    made = run(tmp_path, document, bound("chat", more=TOOLS), answers)
    assert [each["function"]["name"] for each in made.requests[0]["tools"]] == ["search"]
    assert made.messages(1)[-1] == ("tool", "found")
    assert made.result.output["messages"][-1]["content"] == "done"
    assert made.result.visited[:3] == ["chat", "chat:if", "do"]


def test_contenox_tool_task_calls_the_bound_tool(tmp_path: Path) -> None:
    """A `tools` task that is not bound itself is answered by the tool of its provider."""
    tool = {"id": "find", "handler": "tools", "tools": {"name": "search", "args": {"q": "tea"}}}
    agents = "tools:\n  search: {description: Searches., agent: {echo: true}}\n"
    assert run(tmp_path, chain(tool), agents, []).result.output == {"q": "tea"}


# Flujo

BLUEPRINT = """
agents:
  writer:
    model: openai:gpt-4o
    system_prompt: You write.
    output_schema: {type: string}
    model_settings: {temperature: 0.1}
  critic:
    model: openai:gpt-4o-mini
    system_prompt: You judge.
    output_schema: {type: object, properties: {score: {type: integer}}}
  lister:
    model: openai:gpt-4o
    system_prompt: You list.
    output_schema: {type: array, items: {type: integer}}
steps:
  - {name: draft, uses: agents.writer}
  - {name: judge, uses: agents.critic, updates_context: true}
  - {name: list, uses: agents.lister}
"""


def test_flujo_agent_is_asked_with_its_prompt_model_settings_and_schema(tmp_path: Path) -> None:
    """The text, or the value by the output schema, is the output of the step."""
    answers = [
        completion("A draft."),
        completion(None, answer={"score": 7}),
        completion(None, answer={"value": [1, 2]}),
    ]
    made = run(tmp_path, BLUEPRINT, bound("writer", "critic", "lister"), answers)
    assert made.result.output == {"output": [1, 2], "context": {"score": 7}}
    assert made.result.usage["tokens"] == 45
    first, second, third = made.requests
    assert (first["model"], first["temperature"]) == ("gpt-4o", 0.1)
    assert second["model"] == "gpt-4o-mini"
    assert made.messages(0) == [("system", "You write."), ("user", "tea")]
    assert made.messages(1) == [("system", "You judge."), ("user", "A draft.")]
    schema = third["tools"][0]["function"]["parameters"]["properties"]["value"]
    assert schema == {"type": "array", "items": {"type": "integer"}}


def test_workflow_of_another_language_keeps_the_definitions(tmp_path: Path) -> None:
    """A document that was converted to the native language asks the same."""
    converted = asl.convert(asl.load(BLUEPRINT), "asl").text
    answers = [
        completion("A draft."),
        completion(None, answer={"score": 7}),
        completion(None, answer={"value": [1, 2]}),
    ]
    made = run(tmp_path, converted, bound("writer", "critic", "lister"), answers)
    assert made.result.output == {"output": [1, 2], "context": {"score": 7}}
    assert made.messages(0)[0] == ("system", "You write.")


def test_stored_execution_has_the_definitions(tmp_path: Path) -> None:
    """An execution in a store asks the model as a plain run does."""
    with serving(lambda exchange: said(exchange, 200, completion("Good."))) as server:
        (tmp_path / "agents.yaml").write_text(bound("writer", "critic").replace("URL", server.url))
        agents = load_bindings(tmp_path / "agents.yaml").agents
        with asl.open_store(tmp_path / "runs.db", agents=agents) as store:
            result = store.run(asl.load(WORKFLOW), "tea")
    assert result.output["cm"]["last"] == "Good."
    assert server.requests[0].json["messages"][0]["content"] == "You write."


@pytest.mark.parametrize(
    "metadata",
    [
        {"CodeMie": {"config": {"assistants": [{}]}}},
        {"CodeMie": {"config": {"assistants": 3, "tools": [{"id": "x"}]}}},
        {"Contenox": {"chain": {"tasks": [{"id": "a", "handler": "tools", "tools": 3}]}}},
        {"Flujo": {"blueprint": {}, "imports": {"x": 3}}},
        {"Flujo": {"blueprint": {"steps": [], "agents": {"x": 3}}, "imports": 3}},
    ],
)
def test_made_up_metadata_defines_no_agents(metadata: Any) -> None:
    """Metadata may be anything: what is no document of the language is ignored."""
    assert agent_definitions({"Metadata": metadata}) == {}


def test_server_with_odd_settings_is_listed() -> None:
    """What is not checked of a server does not stop a run."""
    server = {"name": "x", "command": "z", "config": {"args": 5, "env": 3, "headers": 4}}
    assistant = {"id": "a", "system_prompt": "x", "mcp_servers": [server]}
    metadata = {"CodeMie": {"config": {"assistants": [assistant], "states": []}}}
    defined = agent_definitions({"Metadata": metadata})
    assert defined["a"].servers[0].spec == {"command": ["z"]}
