"""What cases take of documents, and what they do not."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from asl.cli.main import cli
from asl.conformance import Case, coverage_of, run_suite, with_events
from asl.conformance.coverage import CoverageGap, DocumentCoverage

pytestmark = pytest.mark.quick

ROUTED = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Agent": "A",
            "Catch": [
                {"ErrorEquals": ["Late"], "Next": "End"},
                {"ErrorEquals": ["States.ALL"], "Next": "Route"},
            ],
            "Next": "Route",
        },
        "Route": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.n", "NumericLessThan": 0, "Next": "End"},
                {"Variable": "$.n", "NumericGreaterThan": 9, "Next": "End"},
            ],
            "Default": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "L", "States": {"L": {"Type": "Pass", "End": True}}},
                {
                    "StartAt": "R",
                    "States": {
                        "R": {"Type": "Pass", "Next": "S"},
                        "S": {"Type": "Pass", "End": True},
                    },
                },
            ],
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$[0].items",
            "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}},
            "Next": "End",
        },
        "End": {"Type": "Succeed"},
    },
}


def case(id: str, answer: Any, **more: Any) -> Case:
    return Case(id, {"status": "SUCCEEDED"}, document=ROUTED, agents={"A": answer}, **more)


def covered(*cases: Case) -> list[DocumentCoverage]:
    return coverage_of(run_suite([with_events(each) for each in cases]).verdicts)


def words(*cases: Case) -> list[str]:
    (found,) = covered(*cases)
    return [missed.what for missed in found.missed]


LEFT = case("left", {"return": {"n": -1}})
ITEMS = case("items", {"return": {"n": 5, "items": [1, 2]}})
LATE = case("late", {"raise": {"Error": "Late"}})


def test_what_one_case_does_not_take_is_named() -> None:
    """States that were never entered, and the ways out of the others that were never gone."""
    (found,) = covered(LEFT)
    assert (found.states, found.transitions) == ((3, 9), (2, 8))
    assert [missed.what for missed in found.missed] == [
        "'Ask' never goes to 'End' (catch Late)",
        "'Ask' never goes to 'Route' (catch)",
        "'Route' never goes to 'Both' (otherwise)",
        "'Both' is never entered",
        "'Each' is never entered",
        "'L' is never entered",
        "'R' is never entered",
        "'S' is never entered",
        "'I' is never entered",
    ]


def test_cases_of_a_document_count_together() -> None:
    """Branches and items count, too; an empty list leaves the machine of its items untouched."""
    empty = case("empty", {"return": {"n": 5, "items": []}})
    assert "'I' is never entered" in words(LEFT, empty)
    assert words(LEFT, ITEMS) == [
        "'Ask' never goes to 'End' (catch Late)",
        "'Ask' never goes to 'Route' (catch)",
    ]


def test_a_catcher_is_another_way_than_next() -> None:
    """A catcher and `Next` that lead to the same state are told apart."""
    assert words(LEFT, ITEMS, LATE) == ["'Ask' never goes to 'Route' (catch)"]
    other = case("other", {"raise": {"Error": "Odd"}})  # `Route` finds no `$.n` in the error
    caught = words(LEFT, ITEMS, LATE, other)
    assert caught == []


def test_the_aws_profile_tells_of_no_catchers() -> None:
    """Where a catch is no event, a way counts however it was taken."""
    resource = json.loads(
        json.dumps(ROUTED).replace('"Agent": "A"', '"Resource": "arn:aws:lambda:::function:f"')
    )
    aws = Case(
        "aws", {"status": "FAILED"}, document=resource, profile="aws",
        resources={"arn:aws:lambda:::function:f": {"raise": {"Error": "Odd"}}},
    )  # fmt: skip
    assert "'Ask' never goes to 'End' (catch Late)" in words(aws)
    assert not [each for each in words(aws) if "'Ask' never goes to 'Route'" in each]


def test_documents_that_are_refused_have_no_part() -> None:
    """A case of a wrong document takes nothing and breaks nothing."""
    wrong = Case("wrong", {"valid": False}, document={"StartAt": "A", "States": {}})
    assert covered(wrong) == []
    assert len(covered(wrong, LEFT)) == 1


SUITE = """
suite: Two ways
document_file: two.asl.json
cases:
  - id: two/a
    input: {n: 1}
    expect: {output: a}
"""
TWO = """{
  "StartAt": "Which",
  "States": {
    "Which": {
      "Type": "Choice",
      "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "A"}],
      "Default": "B"
    },
    "A": {"Type": "Pass", "Result": "a", "End": true},
    "B": {"Type": "Pass", "Result": "b", "End": true}
  }
}"""
MISSED = [
    "two.asl.json: 2 of 3 states and 1 of 2 transitions are taken",
    "    two.asl.json:4: 'Which' never goes to 'B' (otherwise)",
    "    two.asl.json:10: 'B' is never entered",
]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.asl.json").write_text(TWO)
    (tmp_path / "two.asl-test.yaml").write_text(SUITE)
    return tmp_path


def test_the_command_names_files_and_lines(two: Path) -> None:
    """`asl test --coverage` prints what is missed before the summary."""
    result = CliRunner().invoke(cli, ["test", "two.asl-test.yaml", "--coverage"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:-1] == MISSED
    shared = CliRunner().invoke(cli, ["test", "two.asl-test.yaml", "--coverage", "--jobs", "2"])
    assert shared.stdout.splitlines()[:-1] == MISSED


def test_the_command_writes_it_as_json(two: Path) -> None:
    """In JSON every document is an object; JUnit has no place for it."""
    result = CliRunner().invoke(cli, ["test", ".", "--coverage", "--format", "json"])
    assert json.loads(result.stdout)["coverage"] == [
        {
            "document": "two.asl.json",
            "states": {"taken": 2, "all": 3},
            "transitions": {"taken": 1, "all": 2},
            "missed": [
                {"place": "two.asl.json:4", "what": "'Which' never goes to 'B' (otherwise)"},
                {"place": "two.asl.json:10", "what": "'B' is never entered"},
            ],
        }
    ]
    refused = CliRunner().invoke(cli, ["test", ".", "--coverage", "--format", "junit"])
    assert refused.exit_code == 2
    assert "--coverage needs --format text or json" in refused.stderr


def test_places_are_those_of_the_author() -> None:
    """A document in another language is named by its own lines."""
    workflow = """\
name: Twice
execution_config:
  assistants:
    - {id: w, model: gpt, system_prompt: Write.}
  states:
    - id: first
      assistant_id: w
      task: Write.
      next:
        condition: {expression: "ok == True", then: second, otherwise: end}
    - id: second
      assistant_id: w
      task: Write more.
      next: {state_id: end}
"""
    one = Case(
        "one", {"status": "SUCCEEDED"}, document_text=workflow, dialect="codemie",
        document_name="twice.yaml", agents={"w": {"return": {"ok": False}}},
    )  # fmt: skip
    (found,) = covered(one)
    assert CoverageGap("twice.yaml:11", "'second' is never entered") in found.missed


def test_states_of_items_of_distributed_maps_are_taken() -> None:
    """Each item has a history of its own; what is started of another document has no part."""
    inner = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Big",
        "States": {
            "Big": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericGreaterThan": 9, "Next": "Yes"}],
                "Default": "Other",
            },
            "Yes": {"Type": "Pass", "End": True},
            "Other": {"Type": "Workflow", "WorkflowId": "other", "End": True},
        },
    }
    document = {
        "StartAt": "M",
        "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}},
    }
    other = {
        "StartAt": "Big",
        "States": {"Big": {"Type": "Pass", "Next": "Yes"}, "Yes": {"Type": "Succeed"}},
    }
    one = Case(
        "one", {"status": "SUCCEEDED"}, document=document, input=[1], workflows={"other": other}
    )
    (found,) = covered(one)
    assert found.states == (3, 4)
    assert [missed.what for missed in found.missed] == [
        "'Big' never goes to 'Yes' ($ > 9)",
        "'Yes' is never entered",
    ]
