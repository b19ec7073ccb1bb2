"""`asl completion`: the scripts in their shells, and what they offer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from asl.cli.completion import register_shells
from asl.cli.main import cli
from tests.cli.conftest import Asl

SPACED = {"StartAt": "A b", "States": {"A b": {"Type": "Task", "Agent": "Oracle", "End": True}}}


@pytest.fixture
def words(folder: Path) -> Path:
    """The current folder with a document whose state has a name of two words."""
    (folder / "spaced.asl.json").write_text(json.dumps(SPACED))
    register_shells()
    return folder


def offered(monkeypatch: pytest.MonkeyPatch, *before: str, at: str = "") -> list[str]:
    """Return what is offered for a word, as lines for PowerShell."""
    monkeypatch.setenv("COMP_WORDS", "\n".join(("asl", *before)))
    monkeypatch.setenv("COMP_WORD", at)
    kind = get_completion_class("powershell")
    assert kind is not None
    return kind(cli, {}, "asl", "_ASL_COMPLETE").complete().splitlines()


def values(lines: list[str]) -> list[str]:
    return [line.partition("\t")[0] for line in lines]


@pytest.mark.usefixtures("words")
def test_commands_of_one_and_two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a command are offered one after the other, with their help."""
    assert values(offered(monkeypatch, at="te")) == ["test", "test-state"]
    assert values(offered(monkeypatch, at="sch")) == ["schedules", "schema"]
    assert "pause\tPause a schedule." in offered(monkeypatch, "schedules")
    assert values(offered(monkeypatch, "test", at="in")) == ["init"]
    assert values(offered(monkeypatch, "schedules", "add", at="--ti")) == ["--timezone"]


@pytest.mark.usefixtures("words")
def test_values(monkeypatch: pytest.MonkeyPatch, asl: Asl) -> None:
    """States and agents of a document, languages, codes, errors, and executions of the store."""
    state = ("test-state", "spaced.asl.json", "-s")
    assert offered(monkeypatch, *state) == ["A b\tTask"]
    assert offered(monkeypatch, "test-state", "missing.json", "-s") == []
    assert values(offered(monkeypatch, "run", "spaced.asl.json", "--agent")) == ["Oracle="]
    assert {"codemie", "flujo"} <= {*values(offered(monkeypatch, "convert", "--to"))}
    assert values(offered(monkeypatch, "explain", at="V-ST-03")) == ["V-ST-03"]
    assert "States.Timeout" in values(offered(monkeypatch, "stop", "--error", at="States."))
    stored = ("--store", "runs.db")
    assert asl("run", "pass.asl.json", *stored, "--name", "one").exit_code == 0
    assert offered(monkeypatch, "show", *stored) == ["one\tSUCCEEDED"]
    assert offered(monkeypatch, "fork", "one", *stored, "--at") == ["A\tPass"]
    assert offered(monkeypatch, "show", "--store", "missing.db") == []


SCRIPTS = {
    "bash": """
        source <(asl completion bash)
        offer() { COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _asl_completion asl
          printf '%s\\n' "${COMPREPLY[@]}"; }
        offer asl test-state spaced.asl.json -s ''
        offer asl webhooks l
    """,
    "zsh": """
        compdef() { : }
        _describe() { for each in $completions_with_descriptions; print -r -- "${each%%:*}" }
        eval "$(asl completion zsh)"
        offer() { words=("$@"); CURRENT=$#; _asl_completion }
        offer asl test-state spaced.asl.json -s ''
        offer asl webhooks l
    """,
    "fish": """
        asl completion fish | source
        complete -C "asl test-state spaced.asl.json -s " | string replace -r '\\t.*' ''
        complete -C "asl webhooks l" | string replace -r '\\t.*' ''
    """,
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_script(shell: str, words: Path) -> None:
    """The script offers states and words of commands in its shell; bash gets them quoted."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    command = words / "bin" / "asl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m asl "$@"\n')
    command.chmod(0o755)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [program, *(["-f"] if shell == "zsh" else []), "-c", SCRIPTS[shell]],
        cwd=words,
        env={
            **os.environ,
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(root),
            "HOME": str(words),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split("\n") == ["A\\ b" if shell == "bash" else "A b", "ls", ""], done.stderr


def test_powershell_script(asl: Asl) -> None:
    """It asks the command for values, and removes the variables again."""
    script = asl("completion", "powershell").stdout
    assert "Register-ArgumentCompleter -Native -CommandName asl" in script
    assert '$Env:_ASL_COMPLETE = "powershell_complete"' in script
    assert "Remove-Item Env:COMP_WORDS, Env:COMP_WORD, Env:_ASL_COMPLETE" in script
    assert "%(" not in script
