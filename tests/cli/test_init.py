"""`asl init`: what it writes runs as it is."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from asl.cli.init import EXAMPLES
from asl.core.environment import data_folder

from .conftest import Asl


def test_commands_of_init_succeed(tmp_path: Path) -> None:
    """Each line of the output is a command that succeeds."""

    def run(words: str, folder: Path) -> str:
        done = subprocess.run(
            ["sh", "-c", words.replace("asl ", f"{sys.executable} -m asl ", 1)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    enter, *commands = run("asl init 'my first' --name letters", tmp_path).splitlines()
    assert enter == "cd 'my first'"
    printed = [run(words, tmp_path / "my first") for words in commands]
    assert "no findings" in printed[0]
    assert '"verdict":"accepted"' in printed[1]
    assert printed[2].startswith("3 passed")
    run("asl fmt --check letters.asl.json", tmp_path / "my first")
    assert sorted(each.name for each in (tmp_path / "my first").iterdir()) == [
        "letters.agents.yaml",
        "letters.asl-test.yaml",
        "letters.asl.json",
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_commands_of_an_example_succeed(example: str, asl: Asl, folder: Path) -> None:
    """In a folder without other files."""
    commands = asl("init", "--example", example, "--name", "mine").stdout.splitlines()
    for line in commands:
        done = asl(*shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.stderr)
    assert asl("init", "--example", example, "--name", "mine").exit_code == 2


def test_examples_with_an_input_are_offered() -> None:
    """Those that have an input; the others show single things."""
    found = {each.name.split(".")[0] for each in data_folder("examples").glob("*.input.json")}
    assert found == set(EXAMPLES)


def test_init_overwrites_nothing(asl: Asl, folder: Path) -> None:
    """If one file exists, none is written."""
    (folder / "judge.asl.json").write_text("mine")
    done = asl("init")
    assert done.exit_code == 2
    assert "judge.asl.json would be overwritten: choose another --name or folder" in done.stderr
    assert (folder / "judge.asl.json").read_text() == "mine"
    assert not (folder / "judge.agents.yaml").exists()
    assert asl("init", "--name", "../x").exit_code == 2
    assert asl("init", "--name", "-x").exit_code == 2  # the commands would take it for an option
    assert asl("init", "judge.asl.json").exit_code == 2
