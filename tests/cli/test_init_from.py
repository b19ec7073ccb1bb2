"""`asl init --from DOC`, and commands for documents that define their agents."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import asl as package
from asl.agents.file import load_bindings

from .conftest import Asl

WORKFLOW = """
assistants:
  - id: writer
    system_prompt: |
      You write.
      Be brief: no "quotes" # please
    model: gpt-4.1
    temperature: 0.2
    datasource_ids: [wiki]
    tools: [{name: search}]
    mcp_servers:
      - {name: files, config: {command: npx, args: [-y, server], env: {TOKEN: 1}}}
tools: [{id: finder, tool: jira, tool_args: {q: "{{topic}}"}}]
states:
  - {id: draft, assistant_id: writer, task: Write, next: {state_id: find}}
  - {id: find, tool_id: finder, next: {state_id: end}}
"""
CHAIN: dict[str, Any] = {
    "id": "chain",
    "tasks": [
        {
            "id": "chat",
            "handler": "chat_completion",
            "system_instruction": "Be kind to {{var:who}}.",
            "execute_config": {"model": "small", "provider": "ollama", "tools": ["echo"]},
            "transition": {"branches": [{"operator": "default", "when": "", "goto": "get"}]},
        },
        {"id": "get", "handler": "tools", "tools": {"name": "crm", "tool_name": "get"}},
    ],
}
BLUEPRINT = """
agents:
  writer: {model: "openai:gpt-4o", system_prompt: You write., output_schema: {type: string}}
steps:
  - {name: write, uses: agents.writer}
  - {name: sign, uses: "desk:sign"}
"""
NATIVE = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Greeter", "End": True}}}
AMAZON = {
    "StartAt": "A",
    "States": {
        "A": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:us-east-1:123456789012:function:Charge",
            "End": True,
        }
    },
}


def draft(asl: Asl, document: str, name: str) -> Any:
    """Write a document and its agents file; return what the file says."""
    Path(name).write_text(document)
    done = asl("init", "--from", name, "--name", "drafted")
    assert done.exit_code == 0, done.stderr
    checked = asl("check", name, "--agents", "drafted.agents.yaml")
    assert checked.exit_code == 0, checked.stdout
    assert "V-TASK-03" not in checked.stdout
    return yaml.safe_load(Path("drafted.agents.yaml").read_text())


def test_draft_of_a_workflow(asl: Asl, folder: Path) -> None:
    """Assistants with prompt, model and settings; tools and servers by their names."""
    found = draft(asl, WORKFLOW, "flow.yaml")
    writer = found["agents"]["writer"]
    assert writer["model"] == "openai:gpt-4.1"
    assert writer["system"] == 'You write.\nBe brief: no "quotes" # please'
    assert writer["settings"] == {"temperature": 0.2}
    assert [*found["tools"]] == ["search", "jira"]
    assert found["servers"]["files"]["command"] == ["npx", "-y", "server"]
    assert found["servers"]["files"]["environment"] == {"TOKEN": "1"}


def test_draft_of_a_chain(asl: Asl, folder: Path) -> None:
    """A prompt with macros stays in the chain; the server is that of the tool's provider."""
    found = draft(asl, json.dumps(CHAIN), "chain.json")
    assert found["agents"]["chat"]["model"] == "ollama:small"
    assert "system" not in found["agents"]["chat"]
    assert "#   Be kind to {{var:who}}." in Path("drafted.agents.yaml").read_text()
    assert [*found["tools"]] == ["echo"]
    assert [*found["servers"]] == ["crm"]


def test_draft_of_a_blueprint(asl: Asl, folder: Path) -> None:
    """A function beside the blueprint is bound to itself."""
    Path("desk.py").write_text("def sign(data):\n    return data\n")
    found = draft(asl, BLUEPRINT, "steps.yaml")
    assert found["agents"]["writer"]["model"] == "openai:gpt-4o"
    assert found["agents"]["desk:sign"] == "desk:sign"


def test_draft_of_native_documents(asl: Asl, folder: Path) -> None:
    """Agents are models to choose, resources are handlers to fill in."""
    assert [*draft(asl, json.dumps(NATIVE), "native.asl.json")["agents"]] == ["Greeter"]
    Path("drafted.agents.yaml").unlink()
    found = draft(asl, json.dumps(AMAZON), "amazon.asl.json")
    assert [*found] == ["resources"]


def test_draft_is_loaded_once_its_key_is_there(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only secrets are missing in the file as it is written."""
    draft(asl, WORKFLOW, "flow.yaml")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    bound = load_bindings("drafted.agents.yaml")
    assert ([*bound.agents], [*bound.tools]) == (["writer"], ["search", "jira"])


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\v"])
def test_texts_of_a_document_add_nothing_to_its_draft(end: str, asl: Asl, folder: Path) -> None:
    """Whatever is a line break to some reader, a comment goes no further than its line."""
    hostile = f"{{{{x}}}} y{end}  evil: {{return: 1}}{end}evil: 1"
    assistant = {
        "id": "a",
        "model": hostile,
        "system_prompt": hostile,
        "tools": [{"name": hostile}],
        "mcp_servers": [{"name": hostile, "config": {"url": "https://x.invalid"}}],
    }
    state = {"id": "s", "assistant_id": "a", "task": "t", "next": {"state_id": "end"}}
    (folder / "w.yaml").write_text(yaml.safe_dump({"assistants": [assistant], "states": [state]}))
    assert asl("init", "new", "--from", "w.yaml").exit_code == 0
    found = yaml.safe_load((folder / "new/w.agents.yaml").read_text())
    assert found.keys() == {"agents", "tools", "servers"}
    assert found["agents"].keys() == {"a"}
    assert found["agents"]["a"].keys() == {"model", "key"}
    assert [*found["tools"]] == [*found["servers"]] == [hostile]


@pytest.mark.parametrize(
    ("field", "server"), [("env", {"command": "npx"}), ("headers", {"url": "https://x.invalid"})]
)
def test_secrets_that_a_document_asks_for_are_not_in_its_draft(
    field: str, server: dict[str, Any], asl: Asl, folder: Path
) -> None:
    """A server of the document gets a variable of the environment only from who runs it."""
    secret = "${env:HOME}"
    config = {**server, field: {"A": secret, "B": "plain"}}
    servers = [{"name": "s", "config": config}]
    assistant = {"id": "a", "system_prompt": "x", "mcp_servers": servers}
    state = {"id": "s", "assistant_id": "a", "task": "t", "next": {"state_id": "end"}}
    (folder / "w.yaml").write_text(yaml.safe_dump({"assistants": [assistant], "states": [state]}))
    assert asl("init", "new", "--from", "w.yaml").exit_code == 0
    text = (folder / "new/w.agents.yaml").read_text()
    assert secret not in json.dumps(yaml.safe_load(text))
    assert f"# TODO: A, as the document has it: {secret}" in text


def test_setting_without_a_model_is_a_warning(asl: Asl, folder: Path) -> None:
    """AGENTS-10, at its place in the author's file."""
    draft(asl, WORKFLOW, "flow.yaml")
    found = asl("check", "flow.yaml", "--agents", "drafted.agents.yaml").stdout
    assert "flow.yaml:9:21: warning AGENTS-10: 'datasource_ids'" in found
    strict = asl("check", "flow.yaml", "--agents", "drafted.agents.yaml", "--strict")
    assert strict.exit_code == 3


def test_tool_and_server_that_nothing_is_bound_to_are_warnings(asl: Asl, folder: Path) -> None:
    """AGENTS-11, with what to bind."""
    Path("flow.yaml").write_text(WORKFLOW)
    Path("mine.yaml").write_text("agents: {writer: {model: 'openai:*', key: abcdefgh}}\n")
    found = asl("check", "flow.yaml", "--agents", "mine.yaml").stdout
    assert "'writer' uses the tool 'search', and nothing is bound to it" in found
    assert "'writer' uses the server 'files', and nothing is bound to it" in found
    assert "servers: {files: ...}" in found


def test_allow_code_calls_functions_beside_the_blueprint(asl: Asl, folder: Path) -> None:
    """They are called with the input of the step, and with the context if they take it."""
    Path("sub").mkdir()
    Path("sub/desk.py").write_text(
        "def sign(data):\n    return f'{data}!'\n\n"
        "async def seal(data, *, context):\n    return f'{data} for {context.who}'\n"
    )
    Path("sub/steps.yaml").write_text(
        'steps:\n  - {name: a, uses: "desk:sign"}\n  - {name: b, uses: "desk:seal"}\n'
    )
    given = json.dumps({"input": "tea", "context": {"who": "Ann"}})
    refused = asl("run", "sub/steps.yaml", "--input", given)
    assert refused.exit_code == 1
    assert "AGENTS-11" in refused.stderr
    assert "--allow-code" in refused.stderr
    done = asl("run", "sub/steps.yaml", "--input", given, "--allow-code")
    assert json.loads(done.stdout) == {"output": "tea! for Ann", "context": {"who": "Ann"}}
    assert done.stderr == ""


def test_agents_file_may_bind_the_function_that_a_blueprint_names(asl: Asl, folder: Path) -> None:
    """It is called as the engine does; another function gets all parameters."""
    Path("desk.py").write_text("def sign(data):\n    return f'<{data}>'\n")
    Path("steps.yaml").write_text('steps: [{name: a, uses: "desk:sign"}]\n')
    Path("own.yaml").write_text('"desk:sign": desk:sign\n')
    done = asl("run", "steps.yaml", "--input", '"tea"', "--agents", "own.yaml")
    assert json.loads(done.stdout)["output"] == "<tea>"


def test_allow_code_of_a_missing_module_is_an_error(asl: Asl, folder: Path) -> None:
    """The message names the function."""
    Path("steps.yaml").write_text('steps: [{name: a, uses: "nowhere_here:sign"}]\n')
    done = asl("run", "steps.yaml", "--allow-code")
    assert done.exit_code == 2
    assert "nowhere_here:sign" in done.stderr


def test_setting_of_a_blueprint_step_is_a_warning(asl: Asl, folder: Path) -> None:
    """Sampling settings belong to the agent; those of a step are not passed."""
    document = BLUEPRINT.replace("uses: agents.writer}", "uses: agents.writer, config: {top_k: 3}}")
    Path("steps.yaml").write_text(document)
    Path("mine.yaml").write_text("agents: {writer: {model: 'openai:*', key: abcdefgh}}\n")
    found = asl("check", "steps.yaml", "--agents", "mine.yaml").stdout
    assert "steps.yaml:5:56: warning AGENTS-10: the setting 'top_k' of the step 'write'" in found


def test_name_of_the_file_is_that_of_the_document(asl: Asl, folder: Path) -> None:
    """Characters that base names do not have become hyphens; nothing is overwritten."""
    Path("sub").mkdir()
    Path("sub/my flow (1).yaml").write_text(WORKFLOW)
    done = asl("init", "--from", "sub/my flow (1).yaml")
    assert done.stdout.splitlines() == [
        "asl check 'sub/my flow (1).yaml' --agents my-flow-1.agents.yaml",
        "asl run 'sub/my flow (1).yaml' --agents my-flow-1.agents.yaml",
    ]
    assert asl("init", "--from", "sub/my flow (1).yaml").exit_code == 2


def test_from_and_example_exclude_each_other(asl: Asl, folder: Path) -> None:
    """Only one of them is written."""
    done = asl("init", "--from", "hello.asl.json", "--example", "goal")
    assert done.exit_code == 2
    assert "--example and --from exclude each other" in done.stderr


def test_python_check_reports_settings_tools_and_servers(folder: Path) -> None:
    """AGENTS-10 and AGENTS-11 as `asl check --agents` reports them, with their lines."""
    Path("flow.yaml").write_text(WORKFLOW)
    writer = {"writer": {"model": "openai:*", "key": "abcdefgh"}}
    found = package.check("flow.yaml", agents=writer)
    assert [each.line for each in found if each.code == "AGENTS-10"] == [9]
    assert {"AGENTS-11"} < {each.code for each in found}
    bound = package.check("flow.yaml", agents=writer, tools=["search", "files", "jira"])
    assert {each.code for each in bound} == {"AGENTS-10"}
    assert not package.check("flow.yaml", agents=writer, strict=True).ok
