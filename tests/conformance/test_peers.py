"""Other interpreters behind the protocol, and the pages about them."""

import os
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from asl.conformance import Case
from conformance.peers import speed
from conformance.peers.cases import Question, questions
from conformance.peers.interpreters import OURS, Peer, installed
from conformance.peers.scores import Score, page, score
from conformance.peers.scripts import TaskFailed, TaskScripts
from tests.bundled import bundled

ROOT = Path(__file__).resolve().parents[2]
PEERS = {each.name: each for each in installed()}
RESOURCE = "arn:aws:lambda:us-east-1:123456789012:function:f"
FILES = ("choice", "retry", "wait")
CASES = {
    *("choice/first-wins", "choice/default", "retry/interval", "retry/max-attempts"),
    *("retry/then-catch", "wait/seconds-path"),
}
"""Plain cases that every interpreter answers."""


@pytest.fixture(autouse=True)
def _project_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started commands find this very package and the adapters."""
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), path])))


@cache
def chosen() -> list[Question]:
    cases = (case for file in FILES for case in bundled(f"core/{file}.yaml"))
    return questions(case for case in cases if case.id in CASES)


@pytest.mark.parametrize("name", ["moto", "aws-local-stepfunctions"])
def test_adapter_answers_plain_cases(name: str) -> None:
    if name not in PEERS:
        pytest.skip(f"{name} is not installed")
    found = score(PEERS[name], chosen())
    assert {each.case.id for each in found.asked} == CASES
    assert found.right == {each.case.id for each in found.asked}, found.report.failed


def test_page_counts_by_feature() -> None:
    (choice, *_) = asked = [each for each in chosen() if "Choice" in each.features]
    peer = Peer("mine", "1.0", (), frozenset({"Map"}), "its manual")
    report = score(PEERS[OURS], asked).report
    result = Score(peer, asked, frozenset({choice.case.id}), frozenset(), report)
    text = page([result], asked, date(2030, 1, 31))
    assert "| Choice | 1 of 2 (50%) |" in text
    assert "| mine | 1.0 | 2 | 1 of 2 (50%) | not asked |" in text
    assert "| mine | Map | 0 | its manual |" in text
    assert "2030-01-31" in text


def test_agent_becomes_a_lambda_function() -> None:
    (found,) = [each for each in chosen() if each.case.id == "retry/interval"]
    assert found.source.document != found.case.document
    resources = {
        each["Resource"]
        for each in found.case.document["States"].values()  # type: ignore[index]
        if each["Type"] == "Task"
    }
    assert resources == found.case.resources.keys()


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        ({}, None),
        ({"answers": {"A": {"return": 1}}}, "task tokens, activities and jobs"),
        ({"resources": {RESOURCE: {"hang": True}}}, "tasks that take virtual time"),
        ({"expect": {"status": "TIMED_OUT"}}, "tasks that take virtual time"),
        ({"expect": {}}, "history, elapsed time or written objects alone"),
    ],
)
def test_case_that_no_other_interpreter_can_be_asked(
    change: dict[str, object], obstacle: str | None
) -> None:
    task = {"Type": "Task", "Resource": RESOURCE, "End": True}
    plain = Case(
        "a",
        {"output": 1},
        document={"StartAt": "A", "States": {"A": task}},
        resources={RESOURCE: {"return": 1}},
    )
    case = replace(plain, **change)  # type: ignore[arg-type]
    assert Question(case, case).obstacle == obstacle


def test_scripts_answer_in_turn() -> None:
    scripts = TaskScripts(
        {
            "mocks": {"M": {"return": "mocked"}},
            "resources": {
                "r": {"sequence": [{"raise": {"Error": "E", "Cause": "c"}}, {"echo": True}]},
                "*": {"table": [{"when": {"$partial": {"a": 1}}, "then": {"return": "row"}}]},
            },
        }
    )
    with pytest.raises(TaskFailed) as failed:
        scripts.answer("A", "r", 1)
    assert (failed.value.error, failed.value.cause) == ("E", "c")
    assert [scripts.answer("A", "r", 2), scripts.answer("A", "r", 3)] == [2, 3]
    assert scripts.answer("M", "r", 1) == "mocked"
    assert scripts.answer("A", "other", {"a": 1, "b": 2}) == "row"


def test_speed_page_has_a_column_for_each_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "STARTS", 1)
    text = speed.page([PEERS[OURS]], [speed.HELLO])
    assert "| | asl |" in text
    assert "| hello | " in text
