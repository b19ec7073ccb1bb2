"""`asl test init`."""

import json
from pathlib import Path

import pytest

from .conftest import Asl


def test_a_case_for_each_path_passes(asl: Asl, folder: Path) -> None:
    """Into a file beside the document, which is then a suite."""
    asl("init", "--name", "first")
    (folder / "first.asl-test.yaml").unlink()
    done = asl("test", "init", "first.asl.json")
    assert done.exit_code == 0
    assert "wrote 3 cases to first.asl-test.yaml" in done.stderr
    assert asl("test", "first.asl-test.yaml").stdout.startswith("3 passed")
    assert asl("test", "init", "first.asl.json").exit_code == 2
    (folder / "cases").mkdir()
    assert asl("test", "init", "first.asl.json", "-o", "cases/a.asl-test.yaml").exit_code == 0
    assert asl("test", "cases").stdout.startswith("3 passed")


def test_paths_without_a_case_are_printed(asl: Asl, folder: Path) -> None:
    """A way without a case is named; a limit that was reached, too."""
    asl("init", "--name", "first")
    done = asl("test", "init", "first.asl.json", "-o", "x.asl-test.yaml", "--limit", "2")
    assert "not all paths were tried" in done.stderr
    document = (folder / "first.asl.json").read_text()
    selector = (
        '"ResultSelector": { "score.$": "States.MathRandom(1, 2, 3)" },\n      "Next": "Sort"'
    )
    (folder / "second.asl.json").write_text(document.replace('"Next": "Sort"', selector))
    done = asl("test", "init", "second.asl.json")
    assert (
        "no data was found that leads through Judge > Sort > Accepted: it continues at Rejected "
        "instead of Accepted" in done.stderr
    )
    assert "wrote 2 cases to" in done.stderr


FOREIGN = {
    "codemie": """
assistants:
  - id: writer
    system_prompt: You write.
states:
  - id: draft
    assistant_id: writer
    next: { state_id: end }
""",
    "contenox": """
id: chain
tasks:
  - id: ask
    handler: condition_key
    valid_conditions: { "yes": true, "no": false }
    prompt_template: Is it?
    transition:
      branches:
        - { operator: equals, when: "yes", goto: good }
        - { operator: default, goto: end }
  - id: good
    handler: noop
    prompt_template: It is.
    transition: { branches: [{ operator: default, goto: end }] }
""",
    "flujo": """
version: "0.1"
name: one
steps:
  - kind: step
    name: draft
    agent: { id: agents.writer }
""",
}


FOUND = {"codemie": "1 passed", "contenox": "2 passed", "flujo": "1 passed"}


@pytest.mark.parametrize("dialect", FOREIGN)
def test_document_of_another_language(asl: Asl, folder: Path, dialect: str) -> None:
    """Which name the language, and pass."""
    (folder / "other.yaml").write_text(FOREIGN[dialect])
    done = asl("test", "init", "other.yaml")
    assert done.exit_code == 0, done.stderr
    assert f"dialect: {dialect}\n" in (folder / "other.asl-test.yaml").read_text()
    assert asl("test", "other.asl-test.yaml").stdout.startswith(FOUND[dialect])


def test_agents_of_blocks_have_results(asl: Asl, folder: Path) -> None:
    """Debaters, rules of guardrails and summarisers, and functions that take numbers."""
    rules = [{"Type": "semantic", "Check": "polite", "Action": "block"}]
    states = {
        "Discuss": {
            "Type": "Debate",
            "Agents": ["Pro", "Con"],
            "Topic": "Engines",
            "ResultPath": "$.debate",
            "Next": "Write",
        },
        "Write": {
            "Type": "Task",
            "Agent": "Writer",
            "Context": {"Summarize": {"When": "Always", "Using": "Short"}},
            "Guardrails": {"Output": {"Rules": rules, "Validator": "Reader"}},
            "ResultPath": "$.text",
            "Next": "Sum",
        },
        "Sum": {
            "Type": "Pass",
            "Parameters": {
                "sum.$": "States.MathAdd($.text.cost, $.spent)",
                "first.$": "States.ArrayGetItem($.debate.history, 0)",
            },
            "End": True,
        },
    }
    (folder / "d.asl.json").write_text(json.dumps({"StartAt": "Discuss", "States": states}))
    done = asl("test", "init", "d.asl.json")
    assert "wrote 1 case" in done.stderr, done.stderr
    assert asl("test", "d.asl-test.yaml").stdout.startswith("1 passed")


def test_loop_with_a_counter_has_a_case(asl: Asl, folder: Path) -> None:
    """How often it is gone round is the document's business; ways without it are still missed."""
    rule = {"Variable": "$.n", "NumericGreaterThan": 3}
    states = {
        "Begin": {"Type": "Pass", "Result": {"n": 1}, "Next": "Count"},
        "Count": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
            "Next": "Enough",
        },
        "Enough": {"Type": "Choice", "Choices": [{**rule, "Next": "Done"}], "Default": "Count"},
        "Done": {"Type": "Succeed"},
    }
    (folder / "d.asl.json").write_text(json.dumps({"StartAt": "Begin", "States": states}))
    done = asl("test", "init", "d.asl.json")
    assert "wrote 1 case" in done.stderr, done.stderr
    rounds = ["Count", "Enough"] * 3
    assert ", ".join(["Begin", *rounds, "Done"]) in " ".join(
        (folder / "d.asl-test.yaml").read_text().split()
    )
    assert asl("test", "d.asl-test.yaml").stdout.startswith("1 passed")


def test_suite_contains_the_parameters(asl: Asl, folder: Path) -> None:
    """It runs as it was tried."""
    state = {"Type": "Task", "Agent": "Writer", "Parameters": {"tone": "{{tone}}"}, "End": True}
    document = {"Parameters": {"tone": {"Type": "string"}}, "StartAt": "A", "States": {"A": state}}
    document["Parameters"]["tone"]["Required"] = True  # type: ignore[index,call-overload]
    (folder / "d.asl.json").write_text(json.dumps(document))
    assert asl("test", "init", "d.asl.json").exit_code == 3
    done = asl("test", "init", "d.asl.json", "--param", "tone=kind")
    assert done.exit_code == 0, done.stderr
    assert "parameters: {tone: kind}" in (folder / "d.asl-test.yaml").read_text()
    assert asl("test", "d.asl-test.yaml").stdout.startswith("1 passed")


def test_template_with_one_state_machine(asl: Asl, folder: Path) -> None:
    """Its definition may lie in a file of its own; the cases refer to nothing by anchors."""
    (folder / "template.yaml").write_text(
        "Resources:\n"
        "  Flow:\n"
        "    Type: AWS::Serverless::StateMachine\n"
        "    Properties: { DefinitionUri: flow.asl.json }\n"
    )
    (folder / "flow.asl.json").write_text(
        """{"StartAt": "A", "States": {
          "A": {"Type": "Task", "Resource": "arn:aws:lambda:::function:a", "Next": "B"},
          "B": {"Type": "Task", "Resource": "arn:aws:lambda:::function:b", "End": true}}}"""
    )
    assert asl("test", "init", "template.yaml").exit_code == 0
    assert "&" not in (folder / "template.asl-test.yaml").read_text()
    assert asl("test", "template.asl-test.yaml").stdout.startswith("1 passed")


def test_input_has_the_fields_that_its_path_reads(asl: Asl, folder: Path) -> None:
    """What the document only writes is no part of it, and what an expression reads is."""
    asl("init", "--name", "first")
    asl("test", "init", "first.asl.json", "-o", "x.asl-test.yaml")
    inputs = [
        line for line in (folder / "x.asl-test.yaml").read_text().splitlines() if "input" in line
    ]
    assert inputs == ["  input: {text: text}"] * 3


def test_file_of_cases_is_named_after_the_document(asl: Asl, folder: Path) -> None:
    """The file of the cases is called as the document is, its version included."""
    whole = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    for name in ("d.v1.asl.json", "d.v2.json"):
        (folder / name).write_text(json.dumps(whole))
        assert asl("test", "init", name).exit_code == 0
    assert {each.name for each in folder.glob("d.*.yaml")} == {
        "d.v1.asl-test.yaml",
        "d.v2.asl-test.yaml",
    }


def test_input_and_profile_options(asl: Asl, folder: Path) -> None:
    """The input is that of the cases, the profile stands in the suite."""
    hashed = {"Type": "Pass", "Parameters": {"x.$": "States.Hash($.t, $.h)"}, "End": True}
    (folder / "h.asl.json").write_text(json.dumps({"StartAt": "H", "States": {"H": hashed}}))
    (folder / "in.json").write_text('{"t": "some", "h": "SHA-1"}')
    ran = asl("test", "init", "h.asl.json", "--input", "in.json", "--profile", "aws")
    assert ran.exit_code == 0, ran.stderr
    written = (folder / "h.asl-test.yaml").read_text()
    assert "profile: aws" in written
    assert "SHA-1" in written
    assert asl("test", "h.asl-test.yaml").exit_code == 0
