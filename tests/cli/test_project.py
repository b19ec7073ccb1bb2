"""Settings of a project: `asl.toml` and `[tool.asl]` of `pyproject.toml`."""

import json
from pathlib import Path

import pytest

from .conftest import Asl

SETTINGS = """
profile = "aws"
agents = ["agents.yaml"]
store = "runs.db"

[variables]
Delay = 5
Unused = "x"

[buckets]
data = "files"
"""


def wait() -> str:
    return '{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": ${Delay}, "End": true}}}'


@pytest.mark.parametrize(
    ("name", "head"), [("asl.toml", ""), ("pyproject.toml", '[project]\nname = "x"\n[tool.asl]')]
)
def test_settings_are_defaults_of_options(name: str, head: str, asl: Asl, folder: Path) -> None:
    """They apply in the folder of the file and below; options override them."""
    text = SETTINGS if not head else SETTINGS.replace("\n[", "\n[tool.asl.")
    (folder / name).write_text(head + text)
    (folder / "flow.json").write_text(wait())
    (folder / "files").mkdir()
    assert asl("check", "flow.json").stdout == "flow.json: no findings\n"
    done = asl("run", "hello.asl.json", "--input", '{"name": "Ann"}')
    assert "V-TASK-01" in done.stderr  # AWS knows no agents
    done = asl("run", "hello.asl.json", "--input", '{"name": "Ann"}', "--profile", "default")
    assert json.loads(done.stdout)["greeting"] == {"text": "hello"}
    assert (folder / "runs.db").exists()
    assert "SUCCEEDED" in asl("ls").stdout
    done = asl("run", "flow.json", "--virtual-time", "--json")
    assert json.loads(done.stdout)["elapsed"] == 5
    assert asl("check", "flow.json", "--var", "Delay=-1").exit_code == 3


def test_settings_of_a_parent_folder(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are relative to the file; folders above the repository are not searched."""
    (folder / "asl.toml").write_text('agents = ["agents.yaml"]')
    inner = folder / "flows"
    inner.mkdir()
    monkeypatch.chdir(inner)
    words = ("run", "../hello.asl.json", "--input", '{"name": "Ann"}')
    assert json.loads(asl(*words).stdout)["greeting"] == {"text": "hello"}
    (inner / ".git").mkdir()
    assert asl(*words).exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profil = 'aws'", "asl.toml: there is no setting 'profil' (did you mean 'profile'?)"),
        ("agents = 'agents.yaml'", "asl.toml: 'agents' must be an array of files"),
        ("agents = [1]", "asl.toml: 'agents' must be an array of files"),
        ("buckets = {a = 1}", "asl.toml: 'buckets' must be a table of folders or URLs"),
        ("profile =", "asl.toml is not TOML: "),
    ],
)
def test_invalid_settings_exit_with_2(text: str, message: str, asl: Asl, folder: Path) -> None:
    """The message names the file and the setting."""
    (folder / "asl.toml").write_text(text)
    done = asl("check", "pass.asl.json")
    assert (done.exit_code, message in done.stderr) == (2, True)


def test_unknown_profile_of_a_project_exits_with_2(asl: Asl, folder: Path) -> None:
    """A name that there is not is refused as that of the option."""
    (folder / "asl.toml").write_text("profile = 'amazon'")
    done = asl("check", "pass.asl.json")
    assert (done.exit_code, "'amazon' is not one of" in done.stderr) == (2, True)
