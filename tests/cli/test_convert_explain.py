"""`asl convert --explain`: source and target of each state side by side, with the losses."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Asl

FLOW = """\
assistants:
  - { id: writer, system_prompt: You write. }
states:
  - { id: draft-text, assistant_id: writer, task: "On {{topic}}", next: { state_id: polish } }
  - { id: polish, assistant_id: writer, task: Polish, next: { state_id: end } }
"""


@pytest.fixture
def flow(folder: Path) -> str:
    (folder / "flow.yaml").write_text(FLOW)
    return "flow.yaml"


def test_states_are_side_by_side(asl: Asl, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their losses below; every line fits."""
    monkeypatch.setenv("COLUMNS", "80")
    result = asl("convert", "hello.asl.json", "--to", "codemie", "--explain")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "asl -> codemie"
    assert lines[2:4] == ["Ask", "Type: Task                             | id: Ask"]
    assert all(len(each) <= 80 for each in lines if " | " in each)
    assert any(each.startswith("  warning L-ROOTMERGE: ") for each in lines)


def test_a_narrow_terminal_has_one_column(asl: Asl, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source, then the target."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = asl("convert", "hello.asl.json", "--to", "codemie", "--explain").stdout.splitlines()
    assert lines[3] == "< Type: Task"
    assert "> id: Ask" in lines
    assert all(len(each) <= 40 for each in lines if each[:2] in ("< ", "> "))


@pytest.mark.parametrize("to", ["asl", "amazon", "contenox", "flujo"])
def test_json_pairs_the_states_of_every_language(asl: Asl, flow: str, to: str) -> None:
    """By their names, though a language may spell them otherwise."""
    result = asl("convert", flow, "--to", to, "--explain", "--json")
    found = json.loads(result.stdout)
    assert (found["from"], found["to"]) == ("codemie", to)
    paired = {each["state"]: each for each in found["states"]}
    for name in ("draft-text", "polish"):
        assert paired[name]["source"]["id"] == name
        assert paired[name]["target"] is not None


def test_losses_are_at_their_states(asl: Asl, flow: str) -> None:
    """Each place of an entry of the report at its own."""
    result = asl("convert", flow, "--to", "amazon", "--explain", "--json")
    places = {
        each["state"]: [
            loss["pointer"][:9] for loss in each["losses"] if loss["code"] == "L-RESOURCE"
        ]
        for each in json.loads(result.stdout)["states"]
    }
    assert places == {"draft-text": ["/states/0"], "polish": ["/states/1"], "": []}


def test_documents_with_errors_are_reported(asl: Asl) -> None:
    """As without the option."""
    assert asl("convert", "fail.asl.json", "--to", "asl", "--explain").exit_code == 0
    (Path("bad.asl.json")).write_text('{"StartAt": "A", "States": {}}')
    assert asl("convert", "bad.asl.json", "--to", "amazon", "--explain").exit_code == 3


@pytest.mark.parametrize(
    "words",
    [
        ("hello.asl.json", "pass.asl.json", "--explain"),
        ("hello.asl.json", "--explain", "-o", "x.yaml"),
        ("hello.asl.json", "--json"),
    ],
)
def test_wrong_usage(asl: Asl, words: tuple[str, ...]) -> None:
    """One document, nothing written, and JSON only of an explanation."""
    result = asl("convert", "--to", "codemie", *words)
    assert result.exit_code == 2
    assert "--explain" in result.stderr
