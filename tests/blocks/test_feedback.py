"""Answers: which fit, and where they are kept."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.engine.memory import ProcessMemory

pytestmark = pytest.mark.quick

Json = Any
FIELDS = [{"Name": "stars", "Type": "rating", "Scale": [0, 3]}, {"Name": "why"},
          {"Name": "again", "Type": "boolean"}, {"Name": "n", "Type": "number"}]  # fmt: skip


def asked(**block: Json) -> asl.Result:
    """Run a Task about which people are asked."""
    task = {"Type": "Task", "Agent": "A", "Feedback": block, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    return asl.run(document, agents={"A": {"return": 1}}, clock="virtual", name="x")


def answered(result: asl.Result, answer: Json, **more: Any) -> Json:
    (request,) = result.feedback
    more.setdefault("memory", ProcessMemory())
    return asl.give_feedback(result, request["feedbackId"], answer, **more)["answer"]


@pytest.mark.parametrize(
    ("block", "answer", "kept"),
    [
        ({}, 5, 5),
        ({"Scale": [-1, 1]}, -1, -1),
        ({"Scale": [1, 3], "Labels": ["bad", "fine", "good"]}, "good", 3),
        ({"Type": "thumbs"}, True, "up"),
        ({"Type": "thumbs"}, "down", "down"),
        ({"Type": "choice", "Labels": ["a", "b"]}, "b", "b"),
        ({"Type": "text"}, "fine", "fine"),
        ({"Type": "text", "Optional": True}, None, None),
        (
            {"Type": "structured", "Fields": FIELDS, "Optional": ["why"]},
            {"stars": 0, "again": True, "n": 1.5},
            {"stars": 0, "again": True, "n": 1.5},
        ),
        ({"Type": "structured", "Fields": FIELDS, "Optional": True}, {"why": "so"}, {"why": "so"}),
    ],
)
def test_valid_answer_is_unchanged(block: Json, answer: Json, kept: Json) -> None:
    """In the form in which it was asked for."""
    assert answered(asked(**block), answer) == kept


@pytest.mark.parametrize(
    ("block", "answer"),
    [
        ({}, 6), ({}, 0), ({}, "5"), ({}, 2.5), ({}, True), ({}, None),
        ({"Scale": [1, 2], "Labels": ["no", "yes"]}, "maybe"),
        ({"Type": "thumbs"}, "sideways"),
        ({"Type": "choice", "Labels": ["a"]}, "b"), ({"Type": "choice", "Labels": ["a"]}, ["a"]),
        ({"Type": "text"}, 5), ({"Type": "text"}, "x" * 10_001), ({"Type": "text"}, None),
        ({"Type": "structured", "Fields": FIELDS}, {"stars": 1}),
        ({"Type": "structured", "Fields": FIELDS, "Optional": True}, {"stars": 4}),
        ({"Type": "structured", "Fields": FIELDS, "Optional": True}, {"starz": 1}),
        ({"Type": "structured", "Fields": FIELDS, "Optional": True}, 5),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_refused(block: Json, answer: Json) -> None:
    """With the reason; nothing is kept."""
    memory = ProcessMemory()
    with pytest.raises(asl.AnswerRefused):
        answered(asked(**block), answer, memory=memory)
    assert memory.namespaces == {}


def test_answers_are_found_by_memory_blocks(tmp_path: Path) -> None:
    """Under the namespace that the block names; of each person the latest."""
    result, path = asked(Store="ratings"), str(tmp_path / "memory.db")
    for by, stars in (("ann", 1), ("bob", 4), ("ann", 5)):
        answered(result, stars, memory=path, by=by)
    reading = {"Type": "episodic", "Read": {"Collection": "ratings", "Limit": 10}}
    document = {
        "StartAt": "R",
        "States": {"R": {"Type": "Task", "Agent": "R", "Memory": reading, "End": True}},
    }
    agents = {"R": lambda parameters: parameters["_memory"]}
    read = asl.run(document, agents=agents, memory=path).output
    assert {(each["value"]["by"], each["value"]["answer"]) for each in read} == {
        ("ann", 5), ("bob", 4),
    }  # fmt: skip


def test_an_answer_to_nothing_is_refused() -> None:
    """The name of the request is looked for."""
    with pytest.raises(asl.AslError, match="no feedback request 'none'"):
        asl.give_feedback(asked(), "none", 5, memory=ProcessMemory())


def test_an_answer_may_come_later_and_elsewhere(tmp_path: Path) -> None:
    """A store knows what was asked; so does the command line."""
    from click.testing import CliRunner

    from asl.cli.main import cli

    task = {"Type": "Task", "Agent": "A", "Feedback": {"Question": "Fine?"}, "End": True}
    document = {"StartAt": "A", "States": {"A": task}}
    runs, memory = str(tmp_path / "runs.db"), str(tmp_path / "memory.db")
    with asl.open_store(runs, agents={"A": {"return": 1}}) as store:
        store.run(document, {}, name="x")
    listed = CliRunner().invoke(cli, ["feedback", "x", "--store", runs])
    assert json.loads(listed.stdout)["question"] == "Fine?"
    words = ["feedback", "x", "/A@0", "4", "--store", runs, "--as", "ann"]
    assert CliRunner().invoke(cli, words).exit_code == 2
    done = CliRunner().invoke(cli, [*words, "--memory", memory])
    assert json.loads(done.stdout)["answer"] == 4
    words[3] = "lots"
    refused = CliRunner().invoke(cli, [*words, "--memory", memory])
    assert "a whole number from 1 to 5" in refused.stderr


def test_a_computed_list_is_refused() -> None:
    """Only what is one value can be computed."""
    with pytest.raises(asl.InvalidDocument, match=r"'Scale.\$' of 'Feedback' is not executed"):
        asked(**{"Scale.$": "$.x"})
