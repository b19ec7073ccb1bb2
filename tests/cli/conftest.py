"""What every test of the command line uses: a folder with documents, and the command itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from asl.cli.main import cli

Asl = Callable[..., Result]

HELLO = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Agent": "Greeter",
            "Parameters": {"who.$": "$.name"},
            "ResultPath": "$.greeting",
            "End": True,
        }
    },
}
PASS = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
FAIL = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Refused", "Cause": "why"}}}
WRONG = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Nxt": "B"}}}
WAIT = {
    "StartAt": "Nap",
    "States": {"Nap": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True}},
}
DOCUMENTS = {"hello": HELLO, "pass": PASS, "fail": FAIL, "wrong": WRONG, "wait": WAIT}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a document for each row above, an agents file and a module."""
    for name, document in DOCUMENTS.items():
        (tmp_path / f"{name}.asl.json").write_text(json.dumps(document, indent=2))
    (tmp_path / "agents.yaml").write_text("Greeter: {return: {text: hello}}\n")
    (tmp_path / "greetings.py").write_text(
        "def greet(parameters):\n    print('working')\n    return 'hi ' + parameters['who']\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asl(folder: Path) -> Asl:
    """The command: `asl("run", "x.json", stdin="...")`; streams are kept apart."""

    def run(*words: Any, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, [str(word) for word in words], stdin, prog_name="asl")

    return run
