"""The commands for documents that are put together from several files."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Asl

PART = {
    "Parameters": {
        "who": {"Type": "string", "Required": True},
        "times": {"Type": "integer", "Default": 1, "Max": 5},
    },
    "StartAt": "P",
    "States": {
        "P": {"Type": "Pass", "Parameters": {"to": "{{who}}", "n": "{{times}}"}, "End": True}
    },
}
YAML = """# mine
Imports: {part: part.asl.json}
StartAt: A
States:
  A: {Type: Include, Template: part, Parameters: {who: Ann}, End: true}
"""
INDENTED = json.dumps(
    {
        "Imports": {"part": "part.asl.json"},
        "StartAt": "A",
        "States": {
            "A": {
                "Type": "Include",
                "Template": "part",
                "Parameters": {"who": "Ann"},
                "End": True,
            }
        },
    },
    indent=2,
)
ONE_LINE = json.dumps(json.loads(INDENTED))


@pytest.fixture
def part(folder: Path) -> Path:
    path = folder / "part.asl.json"
    path.write_text(json.dumps(PART))
    return path


def test_lock_without_imports_changes_nothing(asl: Asl, part: Path) -> None:
    """Which is said, and no failure."""
    before = part.read_text()
    for words in (("lock", part), ("lock", "--check", part)):
        done = asl(*words)
        assert done.exit_code == 0
        assert "has no imports to lock" in done.stderr
    assert part.read_text() == before


@pytest.mark.parametrize("text", [YAML, INDENTED, ONE_LINE])
def test_lock_updates_one_member(text: str, asl: Asl, folder: Path, part: Path) -> None:
    """The rest of the document is unchanged."""
    document = folder / ("main.yaml" if text is YAML else "main.asl.json")
    document.write_text(text)
    for _ in range(3):
        assert asl("lock", "--check", document).exit_code == 3
        assert "locked 1 import of" in asl("lock", document).stderr
        assert "is current" in asl("lock", "--check", document).stderr
        assert asl("run", document).stdout == '{"to":"Ann","n":1}\n'
        part.write_text(part.read_text() + " ")
        assert "has changed since it was locked" in asl("check", document).stdout
    written = document.read_text()
    assert written.count("_lock") == written.count("sha256=") == 1
    if text is YAML:
        assert written.startswith(text)
    else:
        assert {key: each for key, each in json.loads(written).items() if key != "_lock"} == (
            json.loads(text)
        )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the parameter 'who' has no value"),
        (("--param", "who=Ann", "--param", "times:=7"), "'times' must be at most 5, not 7"),
        (("--param", "who=Ann", "--param", "times=2"), "'times' must be of type integer"),
        (("--param", "who:=3"), "'who' must be of type string"),
    ],
)
def test_run_of_a_template_names_the_missing_parameter(
    words: Any, says: str, asl: Asl, part: Path
) -> None:
    """The hint shows how to set it."""
    done = asl("run", part, *words)
    assert done.exit_code == 3
    assert says in done.stderr
    assert done.stderr.count("V-TPL-03") == 1
    assert "--param NAME=TEXT, NAME:=JSON" in done.stderr


def test_check_of_a_template_needs_no_parameters(asl: Asl, folder: Path, part: Path) -> None:
    """An Include sets them, so a folder of templates can be checked."""
    (folder / "parts").mkdir()
    part.rename(folder / "parts" / part.name)
    done = asl("check", "parts")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "info V-TPL-03: the parameter 'who' has no value" in done.stdout
    assert asl("check", f"parts/{part.name}", "--param", "who:=3").exit_code == 3


def test_agent_named_by_a_parameter_is_no_finding(asl: Asl, folder: Path) -> None:
    """Nobody could be bound to it yet."""
    template = {
        "Parameters": {"who": {"Required": True}},
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Agent": "{{who}}", "End": True}},
    }
    (folder / "template.asl.json").write_text(json.dumps(template))
    (folder / "agents.yaml").write_text("Ann: {return: 1}\n")
    done = asl("check", "template.asl.json", "--agents", "agents.yaml")
    assert "V-TASK-03" not in done.stdout
    assert "V-TASK-03" not in asl("run", "template.asl.json").stderr


def test_override_that_adds_a_state_is_one_finding(asl: Asl, folder: Path, part: Path) -> None:
    """Nothing is said of the state that is not taken."""
    document = json.loads(INDENTED)
    document["States"]["A"]["Override"] = {"States": {"New": {"Type": "Pass"}}}
    (folder / "main.asl.json").write_text(json.dumps(document))
    said = asl("check", "main.asl.json").stdout
    assert "V-OVR-01: the template has no state 'New'" in said
    assert "1 error" in said


def test_unused_import_has_no_suggestion(asl: Asl, folder: Path, part: Path) -> None:
    """Only a name that stands for no import can be a mistyped one."""
    document = json.loads(INDENTED)
    document["Imports"]["pert"] = "part.asl.json"
    (folder / "main.asl.json").write_text(json.dumps(document))
    said = asl("check", "main.asl.json").stdout
    assert "no Include names the import 'pert'" in said
    assert "did you mean" not in said


@pytest.mark.parametrize("imports", [5, None, "x", [], ["x"], {"p": 5}, {"p": None}, {"p": []}])
@pytest.mark.parametrize("lock", [None, 5, {"p": 5}, {"p": "x"}])
def test_lock_refuses_imports_of_a_wrong_type(
    imports: Any, lock: Any, asl: Asl, folder: Path
) -> None:
    """The document is unchanged."""
    document = folder / "wrong.json"
    states = {"A": {"Type": "Pass", "End": True}}
    text = json.dumps({"Imports": imports, "_lock": lock, "StartAt": "A", "States": states})
    document.write_text(text)
    done = asl("lock", document)
    assert done.exit_code in (2, 3), done.stderr
    assert document.read_text() == text
