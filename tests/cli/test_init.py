"""`asl init`: what it writes runs as it is."""

import subprocess
import sys
from pathlib import Path

from .conftest import Asl


def test_what_is_written_runs_by_the_commands_that_are_printed(tmp_path: Path) -> None:
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
    assert sorted(each.name for each in (tmp_path / "my first").iterdir()) == [
        "letters.agents.yaml",
        "letters.asl-test.yaml",
        "letters.asl.json",
    ]


def test_nothing_is_overwritten(asl: Asl, folder: Path) -> None:
    """A file that is there stays, and no other is written."""
    (folder / "judge.asl.json").write_text("mine")
    done = asl("init")
    assert done.exit_code == 2
    assert "judge.asl.json would be overwritten: choose another --name" in done.stderr
    assert (folder / "judge.asl.json").read_text() == "mine"
    assert not (folder / "judge.agents.yaml").exists()
    assert asl("init", "--name", "../x").exit_code == 2
    assert asl("init", "--name", "-x").exit_code == 2  # the commands would take it for an option
    assert asl("init", "judge.asl.json").exit_code == 2
