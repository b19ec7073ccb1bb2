"""The files in `deploy`: their commands and settings are those of the program."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from asl.cli.main import COMMANDS, cli

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir()) if DEPLOY.is_dir() else []

if not DEPLOY.is_dir():
    pytest.skip("a source distribution has no deploy", allow_module_level=True)


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text())
    return loaded


def commands() -> Iterator[list[str]]:
    """Yield the words after `asl` of all commands."""
    docker = (DEPLOY / "Dockerfile").read_text()
    yield [
        each.strip(' "')
        for each in re.findall(r"^CMD \[(.*)\]", docker, re.MULTILINE)[0].split(",")
    ]
    for service in compose()["services"].values():
        if "command" in service:
            yield service["command"]
    for unit in UNITS:
        for line in re.findall(r"/opt/asl/bin/asl ([^;\n']+)", unit.read_text()):
            yield shlex.split(line)


@pytest.mark.parametrize("words", [*commands()], ids=lambda words: words[0])
def test_commands_are_known(words: list[str]) -> None:
    """Each has a known command, known options and valid values."""
    assert words[0] in COMMANDS
    with click.Context(cli, **cli.context_settings) as context:
        command = cli.get_command(context, words[0])
        assert command is not None
        command.make_context(words[0], words[1:], parent=context)


def test_the_image_runs_without_privileges() -> None:
    """It has a user of its own, a probe, a volume, and takes SIGTERM."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    (user,) = (line.split()[1] for line in lines if line.startswith("USER"))
    assert user.split(":")[0] not in ("0", "root")
    starts = {line.split()[0] for line in lines if line and line[0].isalpha()}
    assert {"HEALTHCHECK", "VOLUME", "STOPSIGNAL", "ENTRYPOINT"} <= starts
    for name in ("serve", "worker"):
        service = compose()["services"][name]
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
        assert int(service["stop_grace_period"].removesuffix("s")) > 30


def test_settings_are_valid() -> None:
    """Those that the containers mount."""
    pytest.importorskip("pydantic")
    from asl.cli.project import find_project

    project = find_project(str(DEPLOY / "etc"))
    assert project.options_of("serve")["grace"] == 30
    assert project.options_of("worker")["concurrency"] == 100


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_valid(unit: Path, tmp_path: Path) -> None:
    """systemd accepts them; services are well contained."""
    for each in UNITS:
        text = each.read_text().replace("/opt/asl/bin/asl", "/bin/true")
        (tmp_path / each.name).write_text(text)
    path = str(tmp_path / unit.name)
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    if unit.name.startswith(("asl-serve", "asl-worker")):
        words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", path]
        assert subprocess.run(words, capture_output=True).returncode == 0
