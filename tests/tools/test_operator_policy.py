"""The operator's policy: documents can narrow it, and never widen it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.hosts.operator_policy import read_policy

from .workflows import task

Json = Any


def run(operator: Json, document: Json = None, tool: Any = lambda _: "done") -> asl.Result:
    """Let an agent use `tool` under the operator's policy and the document's."""
    agent = {"use": [{"tool": "tool", "arguments": {}}]}
    return asl.run(task(document), agents={"A": agent}, tools={"tool": tool}, policy=operator)


@pytest.mark.parametrize("document", [None, {"Allowed": ["*"]}, {"Allowed": ["tool"]}])
def test_denied_tools_stay_denied(document: Json) -> None:
    """Whatever the document allows."""
    result = run({"Tools": {"Denied": ["to*"]}}, document)
    assert result.error == "States.Permissions"


def test_allowed_tools_are_those_of_both() -> None:
    """The document's list narrows that of the operator."""
    assert run({"Tools": {"Allowed": ["tool"]}}).ok
    assert run({"Tools": {"Allowed": ["tool"]}}, {"Allowed": ["tool", "other"]}).ok
    assert run({"Tools": {"Allowed": ["other"]}}, {"Allowed": ["tool"]}).error == (
        "States.Permissions"
    )
    assert run({"Tools": {"Allowed": ["tool"]}}, {"Denied": ["tool"]}).error == "States.Permissions"


def test_categories_of_the_operator_are_not_those_of_the_document() -> None:
    """A document cannot move a tool out of a category that the operator denies."""
    operator = {"ToolCategories": {"risky": ["tool"]}, "Tools": {"DeniedCategories": ["risky"]}}
    document = task() | {"ToolCategories": {"risky": []}}
    agent = {"use": [{"tool": "tool", "arguments": {}}]}
    result = asl.run(document, agents={"A": agent}, tools={"tool": lambda _: 1}, policy=operator)
    assert result.error == "States.Permissions"


def test_rate_limits_count_the_calls_of_all_workflows() -> None:
    """Children included."""
    child = task()
    parent = {
        "StartAt": "W",
        "States": {
            "W": {"Type": "Workflow", "WorkflowId": "child", "Next": "T"},
            "T": {"Type": "Task", "Agent": "A", "End": True},
        },
    }
    agent = {"use": [{"tool": "tool", "arguments": {}}]}
    operator = {"Tools": {"RateLimits": {"tool": {"MaxPerMinute": 1}}}}
    options: Json = {"agents": {"A": agent}, "tools": {"tool": lambda _: 1}, "policy": operator}
    assert asl.run(child, **options).ok
    result = asl.run(parent, workflows={"child": child}, **options)
    assert result.error == "States.RateLimitExceeded" or not result.ok


def test_images_and_mounts_of_sandboxes(tmp_path: Path) -> None:
    """A sandbox runs images and shows folders that the operator names."""
    operator = read_policy({"Images": ["python:3.*"], "Mounts": [str(tmp_path)]})
    inside, outside = str(tmp_path / "a"), str(tmp_path.parent)
    assert operator.refusal({"Image": "python:3.12", "Mounts": {"/w": inside}}) is None
    assert "evil" in (operator.refusal({"Image": "evil:1"}) or "")
    for source in (outside, f"{inside}/../../x", "/etc", f"{tmp_path}x"):
        assert source in (operator.refusal({"Mounts": {"/w": source}}) or "")
    settings = {"Sandbox": {"Environment": "docker", "Image": "evil:1"}}
    assert run({"Images": ["python:3.*"]}, settings).error == "States.Permissions"


@pytest.mark.parametrize(("policy", "message"), [
    ({"Tool": {}}, "no field 'Tool'"),
    ({"Images": "python"}, "'Images' must be a list of texts"),
    ({"Tools": {"Alowed": []}}, "Alowed"),
    ({"Tools": {"Hooks": {"Before": {"Agent": "A"}}}}, "'Hooks'"),
    ({"Tools": {"Allowed.$": "$.x"}}, "constant"),
    ({"Tools": {"RateLimits": {"a": {"MaxPerMinute": -1}}}}, "MaxPerMinute"),
])  # fmt: skip
def test_a_wrong_policy_is_refused(policy: Json, message: str) -> None:
    with pytest.raises(asl.InvalidDocument, match=message):
        read_policy(policy)


def test_policy_option_holds_for_run(tmp_path: Path) -> None:
    """`--policy FILE` and `ASL_POLICY`; a fault is told with its place in the file."""
    document = tmp_path / "doc.asl.json"
    document.write_text(json.dumps(task({"Allowed": ["tool"]})))
    agents = tmp_path / "agents.yaml"
    agents.write_text(
        "agents: {A: {use: [{tool: tool, arguments: {}}]}}\n"
        "tools: {tool: {description: One., agent: {return: 1}}}\n"
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text("Tools:\n  Denied: [tool]\n")
    words = ["run", str(document), "--agents", str(agents)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    for more, env in ((["--policy", str(policy)], {}), ([], {"ASL_POLICY": str(policy)})):
        done = CliRunner().invoke(cli, [*words, *more], env=env)
        assert (done.exit_code, "States.Permissions" in done.stderr) == (1, True), done.output
    policy.write_text("Tools:\n  Denid: [tool]\n")
    done = CliRunner().invoke(cli, [*words, "--policy", str(policy)])
    assert done.exit_code in (2, 3)
    assert "policy.yaml:2:" in done.stderr
