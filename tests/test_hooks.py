"""The hooks and the GitHub action that a repository of documents takes from this one."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from asl.cli.main import cli
from asl.dialects.registry import has_marks
from asl.sources.repository import find_files
from tests.dialects.features import FEATURES

ROOT = Path(__file__).parents[1]
HOOKS = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION = YAML(typ="safe").load((ROOT / ".github/actions/check/action.yml").read_text())


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hook_runs_a_command_on_documents(
    hook: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command exists with its options, and it passes a sound document."""
    monkeypatch.chdir(tmp_path)
    sound = tmp_path / "sound.asl.json"
    sound.write_text('{\n  "StartAt": "A",\n  "States": { "A": { "Type": "Succeed" } }\n}\n')
    program, *words = hook["entry"].split()
    assert program == "asl"
    files = [str(sound)] if hook.get("pass_filenames", True) else []
    assert cli.main([*words, *files], prog_name="asl", standalone_mode=False) in (0, None)
    assert re.search(hook["files"], "flows/review.asl.yaml")


def test_check_hook_looks_at_the_whole_repository() -> None:
    """A definition is checked as its template uses it, whichever of them has changed."""
    (hook,) = [each for each in HOOKS if each["id"] == "asl-check"]
    assert hook["pass_filenames"] is False
    for file in ("template.yaml", "infra/main.tf", "cdk.out/S.template.json"):
        assert re.search(hook["files"], file)


OTHERS = {
    "azure-pipelines.yml": "name: build\nsteps:\n- script: make\n  displayName: Build\n",
    "cloudbuild.yaml": "steps:\n- name: builder\n  args: [build]\nimages: [a]\n",
    "drone.yml": "kind: pipeline\nname: default\nsteps:\n- name: build\n  image: go\n",
    "action.yml": "name: a\nruns:\n  steps:\n  - uses: actions/checkout@v4\n",
    "playbook.yaml": "- hosts: all\n  tasks:\n  - name: a\n  handlers: []\n",
    "tasks.json": '{"version": "2.0.0", "tasks": [{"label": "build", "type": "shell"}]}',
}
"""Files of other tools with the words of a dialect."""


def test_check_hook_finds_documents_of_dialects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their content, and no files of other tools."""
    monkeypatch.chdir(tmp_path)
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    for dialect in ("codemie", "contenox", "flujo"):
        for file, form in (("a.json", {}), ("b.json", {"indent": 1})):
            document = FEATURES[dialect]["one agent after another"]
            (tmp_path / f"{dialect}-{file}").write_text(json.dumps(document, **form))
    check = ["check", ".", "--format", "sarif"]
    cli.main(check, prog_name="asl", standalone_mode=False)
    assert {*find_files(".", has_marks)[1]} == {
        f"./{dialect}-{file}.json" for dialect in ("codemie", "contenox", "flujo") for file in "ab"
    }
    assert '"level": "error"' not in capsys.readouterr().out


TEMPLATE = """\
Resources:
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties:
      Definition: {StartAt: A, States: {A: {Type: Pass, End: true%s}}}
"""
WARNED, WRONG = ", Comments: x", ", Next: B"


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """The temporary folder of a runner, with the command that the action installs."""
    program = tmp_path / "runner" / "asl" / "bin" / "asl"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m asl "$@"\n')
    program.chmod(0o755)
    return tmp_path / "runner"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("inputs", "member", "code", "annotations"),
    [
        ({}, "", 0, []),
        ({}, WARNED, 3, ["error"]),
        ({}, WRONG, 3, ["error", "error"]),
        ({"strict": "false"}, WARNED, 0, ["warning"]),
        ({"strict": "false"}, WRONG, 3, ["error", "error"]),
        ({"paths": "other folder\n"}, WRONG, 0, []),
        ({"options": "--profile=aws\n--var=A=b"}, WARNED, 3, ["error"]),
        ({"options": "--unknown"}, "", 2, []),
    ],
)
def test_action_finds_templates_and_annotates_them(
    runner: Path,
    tmp_path: Path,
    inputs: dict[str, str],
    member: str,
    code: int,
    annotations: list[str],
) -> None:
    """Its shell step runs as the runner of GitHub runs it."""
    project = tmp_path / "project"
    for folder, text in (("infra", TEMPLATE % member), ("other folder", TEMPLATE % "")):
        (project / folder).mkdir(parents=True)
        (project / folder / "template.yaml").write_text(text)
    given = {name: each["default"] for name, each in ACTION["inputs"].items()} | inputs
    step = ACTION["runs"]["steps"][-1]
    variables = {
        name: re.sub(r"\$\{\{ inputs\.(\S+) \}\}", lambda found: given[found[1]], value)
        for name, value in step["env"].items()
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=project,
        env={**os.environ, **variables, "RUNNER_TEMP": str(runner)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    found = re.findall(r"^::(\w+) file=infra/template\.yaml,line=5,", done.stdout, re.MULTILINE)
    assert found == annotations, done.stdout


def test_action_installs_the_repository_that_contains_it() -> None:
    step = ACTION["runs"]["steps"][1]
    (place,) = re.findall(r'"\$GITHUB_ACTION_PATH/([./]+)"', step["run"])
    assert (ROOT / ".github/actions/check" / place).resolve() == ROOT
