"""The operator's policy: documents can narrow it, and never widen it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.effects.operator_policy import read_policy

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


def spend(budget: Json, document: Json = None, **fields: Json) -> asl.Result:
    """Run three Tasks of 10 tokens and 1 dollar each under a ceiling."""
    used = {"_cost": 1, "_usage": {"input": 6, "output": 4}, "_tokens": 10}
    states: Json = {
        str(number): {"Type": "Task", "Agent": "A", "Next": str(number + 1), **fields}
        for number in range(3)
    }
    states["3"] = {"Type": "Succeed"}
    workflow = {"StartAt": "0", "States": states, **(document or {})}
    return asl.run(workflow, agents={"A": {"return": used}}, policy={"Budget": budget})


@pytest.mark.parametrize(
    ("budget", "succeeds"),
    [
        ({"MaxCost": 3}, True),
        ({"MaxCost": "$1.50"}, False),
        ({"MaxTokens": 15}, False),
        ({"MaxTokens": 30}, True),
        ({"MaxInputTokens": 7}, False),
        ({"MaxOutputTokens": 5}, False),
        ({"MaxCalls": 2}, False),
        ({"MaxCalls": 3}, True),
        ({"MaxCalls": {"A": 2}}, False),
        ({"MaxCalls": {"B": 2}}, True),
        ({}, True),
    ],
)
def test_budget_of_the_operator_holds_documents_without_one(budget: Json, succeeds: bool) -> None:
    """The call that would go beyond it fails."""
    result = spend(budget)
    assert result.error == (None if succeeds else "States.BudgetExceeded")
    if not succeeds:
        assert "of the operator's policy" in (result.cause or "")


@pytest.mark.parametrize(
    "own",
    [
        {"MaxCost": 100, "MaxTokens": 10**6},
        {"MaxCost": 100, "OnExceed": "Continue"},
        {"MaxCost": 1, "OnExceed": "Continue"},
        {"MaxCost": 100, "OnExceed": "PauseAndNotify"},
        {"MaxTokens": 10**6, "OnExceed": "Throttle"},
        {"MaxCost": 100, "ResetPeriod": "hourly"},
        {"MaxCost": 100, "OnExceed": "UseFallback", "Fallback": {"Agent": "A"}},
    ],
)
def test_no_budget_of_a_document_widens_that_of_the_operator(own: Json) -> None:
    """Whatever it does itself when it is exceeded."""
    assert spend({"MaxCost": 1.5}, {"Budget": own}).error == "States.BudgetExceeded"


def test_a_budget_of_a_document_may_be_narrower() -> None:
    """Then that holds."""
    result = spend({"MaxCost": 100}, {"Budget": {"MaxCost": 1.5}})
    assert "of the workflow" in (result.cause or "")


def test_priorities_and_catchers_do_not_lift_the_ceiling() -> None:
    """Each further call fails."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "3"}]
    result = spend({"MaxCalls": 1}, Budget={"Priority": "critical"}, Catch=catch)
    assert [event.type for event in result.events].count("TaskScheduled") <= 2
    assert result.ok


def test_children_spend_from_the_ceiling_of_their_parent() -> None:
    """A document cannot widen it by starting others."""
    child = {"StartAt": "C", "States": {"C": {"Type": "Task", "Agent": "A", "End": True}}}
    states = {
        name: {"Type": "Workflow", "WorkflowId": "child", **after}
        for name, after in (("1", {"Next": "2"}), ("2", {"End": True}))
    }
    result = asl.run(
        {"StartAt": "1", "States": states},
        agents={"A": {"return": 1}},
        workflows={"child": child},
        policy={"Budget": {"MaxCalls": 1}},
    )
    assert result.error == "States.BudgetExceeded"


def test_the_ceiling_counts_what_was_spent_before_a_pause(tmp_path: Path) -> None:
    """Calls, too, which no usage tells of."""
    document = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Task", "Agent": "A", "Next": "P"},
            "P": {"Type": "Approval", "Prompt": "?", "Options": ["yes"], "Next": "B"},
            "B": {"Type": "Task", "Agent": "A", "End": True},
        },
    }
    bindings: Json = {"agents": {"A": {"return": 1}}, "policy": {"Budget": {"MaxCalls": 1}}}
    with asl.open_store(tmp_path / "runs.db", **bindings) as store:
        paused = store.run(document, {}, name="it")
        assert paused.status == "PAUSED"
        store.answer(paused.pending[0]["requestId"], "yes", by="ann")
        result = store.resume("it")
        assert result.error == "States.BudgetExceeded"


@pytest.mark.parametrize(
    ("budget", "pointer"),
    [
        ([], "/Budget"),
        ({"MaxCosts": 1}, "/Budget/MaxCosts"),
        ({"MaxCost": "much"}, "/Budget/MaxCost"),
        ({"MaxCost": -1}, "/Budget/MaxCost"),
        ({"MaxCost.$": "$.x"}, "/Budget/MaxCost.$"),
        ({"MaxTokens": 1.5}, "/Budget/MaxTokens"),
        ({"MaxTokens": None}, "/Budget/MaxTokens"),
        ({"MaxCalls": {"A": "x"}}, "/Budget/MaxCalls"),
        ({"OnExceed": "Continue"}, "/Budget/OnExceed"),
        ({"MaxCost": "{% 5 %}"}, "/Budget/MaxCost"),
    ],
)
def test_a_wrong_budget_is_an_error_of_the_policy(budget: Json, pointer: str) -> None:
    """It says where it is."""
    with pytest.raises(asl.InvalidDocument) as caught:
        read_policy({"Budget": budget})
    found = [(each.code, each.pointer) for each in caught.value.report.errors]
    assert found == [("POLICY-01", pointer)]
