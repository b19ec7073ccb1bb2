"""The hooks that a repository of documents takes from this one."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from asl.cli.main import cli

HOOKS = YAML(typ="safe").load((Path(__file__).parents[1] / ".pre-commit-hooks.yaml").read_text())


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
