"""A run becomes a case that holds."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.conformance import Recording, load_suite, run_suite
from asl.conformance.recorder import literal
from asl.core.json_patterns import matches

TASK = {"Type": "Task", "Agent": "Worker", "End": True}
EACH = {
    "Type": "Map",
    "ItemProcessor": {"StartAt": "Ask", "States": {"Ask": TASK}},
    "End": True,
}


def document(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def recorded(tmp_path: Path, what: dict[str, Any], data: Any, worker: Any, **more: Any) -> Any:
    """Run with a recording, write the case down, and run that."""
    recording = Recording()
    agents = recording.wrap({"Worker": worker})
    loaded = asl.load(what)
    result = asl.run(loaded, data, agents=agents, **more)
    workflows = {name: asl.load(each) for name, each in more.get("workflows", {}).items()}
    case = recording.case("recorded/one", loaded, data, result, workflows)
    file = tmp_path / "recorded.asl-test.json"
    file.write_text(json.dumps(case), encoding="utf-8")
    report = run_suite(load_suite(file))
    assert [verdict.reasons for verdict in report.failed] == []
    return case


def test_one_answer_is_a_return(tmp_path: Path) -> None:
    """A single call is scripted by its answer."""
    case = recorded(tmp_path, document(Ask=TASK), {"x": 1}, lambda data: {"got": data})
    assert case["mocks"] == {"Ask": {"return": {"got": {"x": 1}}}}
    assert case["expect"]["output"] == {"got": {"x": 1}}


def test_workflows_that_it_starts_go_with_it(tmp_path: Path) -> None:
    """Mocks are for the states of the document itself; another may have one of the same name."""
    start = {"Type": "Workflow", "WorkflowId": "other", "Input": "theirs", "Next": "Ask"}
    case = recorded(
        tmp_path,
        document(Start=start, Ask=TASK),
        {},
        lambda data: {"got": data},
        workflows={"other": document(Ask={**TASK, "Parameters": {"x": 1}})},
    )
    assert case["mocks"] == {"Ask": {"return": {"got": {"got": {"x": 1}}}}}
    assert case["agents"] == {"Worker": {"return": {"got": {"x": 1}}}}


def test_an_item_of_a_distributed_map_is_asked_by_the_document(tmp_path: Path) -> None:
    """Its execution is its own, and its states are those of the document."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
    processor = {**EACH["ItemProcessor"], "ProcessorConfig": config}
    case = recorded(tmp_path, document(Each={**EACH, "ItemProcessor": processor}), [1], str)
    assert case["mocks"] == {"Ask": {"return": "1"}}
    assert "agents" not in case


def test_an_agent_beside_that_of_a_state_is_recorded_by_its_name(tmp_path: Path) -> None:
    """No mock stands for it, though it speaks for the same state."""
    guarded = {**TASK, "Agent": "Echo", "Guardrails": {"Input": {"Validator": "Worker"}}}
    recording = Recording()
    agents = recording.wrap({"Echo": lambda data: data, "Worker": lambda data: {"valid": True}})
    loaded = asl.load(document(Ask=guarded))
    case = recording.case("one", loaded, 7, asl.run(loaded, 7, agents=agents))
    assert case["expect"]["status"] == "SUCCEEDED"
    assert case["mocks"] == {"Ask": {"return": 7}}
    assert case["agents"] == {"Worker": {"return": {"valid": True}}}
    file = tmp_path / "recorded.asl-test.json"
    file.write_text(json.dumps(case), encoding="utf-8")
    assert run_suite(load_suite(file)).ok


def test_answers_that_differ_by_request_are_a_table(tmp_path: Path) -> None:
    """A Map asks in any order, so each request keeps its answer."""
    case = recorded(tmp_path, document(Each=EACH), [1, 2, 1], lambda data: data * 10)
    rows = case["mocks"]["Ask"]["table"]
    assert sorted((row["when"], row["then"]["return"]) for row in rows) == [(1, 10), (2, 20)]


def test_errors_and_later_answers_are_a_sequence(tmp_path: Path) -> None:
    """A retried call fails again and then succeeds again."""
    calls = iter([ValueError("not yet"), "done"])

    def worker(data: Any) -> Any:
        answer = next(calls)
        if isinstance(answer, Exception):
            raise answer
        return answer

    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]
    case = recorded(tmp_path, document(Ask={**TASK, "Retry": retry}), {}, worker, clock="virtual")
    failed, done = case["mocks"]["Ask"]["sequence"]
    assert failed["raise"] == {"Error": "States.TaskFailed", "Cause": "ValueError: not yet"}
    assert done == {"return": "done"}


def test_an_agent_that_times_out_hangs_in_the_script(tmp_path: Path) -> None:
    """What was never answered is never answered again."""

    async def worker(data: Any, call: asl.Call) -> Any:
        await call.sleep(60)

    case = recorded(
        tmp_path, document(Ask={**TASK, "TimeoutSeconds": 5}), {}, worker, clock="virtual"
    )
    assert case["mocks"] == {"Ask": {"hang": True}}
    assert case["expect"]["error"] == "States.Timeout"


def test_async_agents_are_recorded(tmp_path: Path) -> None:
    """A coroutine function's answer is written down like any other."""

    async def worker(data: Any) -> Any:
        await asyncio.sleep(0)
        return "hi"

    assert recorded(tmp_path, document(Ask=TASK), {}, worker)["mocks"] == {"Ask": {"return": "hi"}}


def test_a_failure_is_expected_to_fail_again(tmp_path: Path) -> None:
    """Error and cause become part of the case."""
    expect = recorded(tmp_path, document(F={"Type": "Fail", "Error": "E"}), {}, print)["expect"]
    assert expect == {"status": "FAILED", "error": "E", "cause": None, "visited": ["F"]}


def test_time_and_chance_are_those_of_the_run(tmp_path: Path) -> None:
    """Clock, execution name and with them random values come out the same."""
    state = {
        "Type": "Pass",
        "Parameters": {"id.$": "States.UUID()", "at.$": "$$.Execution.StartTime"},
        "End": True,
    }
    recorded(tmp_path, document(A=state), {}, print, clock="virtual", name="monday")


@pytest.mark.parametrize("value", [{"$like": "a"}, [{"$any": True}], {"a": {"$partial": {}}}])
def test_values_that_look_like_wild_cards_are_taken_literally(value: Any) -> None:
    """A recorded value matches itself, and not what it would stand for as a pattern."""
    assert matches(literal(value), value)
    assert not matches(literal(value), "a")


@pytest.mark.parametrize("value", [{"$like": "a"}, {"$any": True}])
def test_requests_that_look_like_wild_cards_are_recorded(tmp_path: Path, value: Any) -> None:
    """A table row of the script matches only the request it was made for."""
    recorded(tmp_path, document(Each=EACH), [value, 1], lambda data: [data])


TOKEN = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
PASS = document(P={"Type": "Pass", "Result": "child", "End": True})


@pytest.mark.parametrize(
    ("state", "mock"),
    [
        (
            {"Resource": TOKEN, "Parameters": {"token.$": "$$.Task.Token"}},
            {"sequence": [{"raise": {"Error": "Again"}}, {"return": {"by": "token"}}]},
        ),
        (
            {
                "Resource": "arn:aws:states:::states:startExecution.sync:2",
                "Parameters": {"StateMachineArn": "Child"},
                "ResultSelector": {"Output.$": "$.Output"},
            },
            {"return": {"$partial": {"Output": "child"}}},
        ),
    ],
)
def test_answers_that_no_agent_gave_are_those_of_the_task(
    tmp_path: Path, state: dict[str, Any], mock: dict[str, Any]
) -> None:
    """What came by token, and what an execution came to, is the script of the state."""
    tokens, asked = asl.TaskTokens(), []

    def handler(parameters: Any) -> str:
        asked.append(parameters)
        if len(asked) == 1:
            tokens.send_task_failure(parameters["token"], "Again")
        else:
            tokens.send_task_success(parameters["token"], {"by": "token"})
        return "dropped"

    retry = [{"ErrorEquals": ["Again"], "MaxAttempts": 1}]
    loaded = asl.load(document(T={"Type": "Task", "Retry": retry, "End": True, **state}))
    recording = Recording()
    resources = recording.wrap({"arn:aws:states:::sqs:*": handler})
    result = asl.run(
        loaded, resources=resources, tokens=tokens, workflows={"Child": PASS}, clock="virtual"
    )
    case = recording.case("recorded/one", loaded, {}, result)
    assert matches(mock, case["mocks"]["T"])
    file = tmp_path / "recorded.asl-test.json"
    file.write_text(json.dumps(case), encoding="utf-8")
    assert run_suite(load_suite(file)).ok
