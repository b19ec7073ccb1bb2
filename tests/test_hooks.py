"""The hooks that a repository of documents takes from this one."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from asl.cli.main import cli

HOOKS = YAML(typ="safe").load((Path(__file__).parents[1] / ".pre-commit-hooks.yaml").read_text())


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_a_command_on_documents(
    hook: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command exists with its options, and it passes a sound document."""
    sound = tmp_path / "sound.asl.json"
    sound.write_text('{\n  "StartAt": "A",\n  "States": { "A": { "Type": "Succeed" } }\n}\n')
    program, *words = hook["entry"].split()
    assert program == "asl"
    assert cli.main([*words, str(sound)], prog_name="asl", standalone_mode=False) in (0, None)
    assert re.search(hook["files"], "flows/review.asl.yaml")
    assert not re.search(hook["files"], "flows/review.asl-test.yaml")
