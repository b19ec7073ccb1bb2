"""The tables `serve` and `worker` of a project: defaults of the options of both commands."""

from pathlib import Path
from typing import Any

import click
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")

from asl.cli.project import find_project
from asl.cli.serve import serve_command
from asl.cli.service_settings import SECTIONS, _Target
from asl.cli.worker import worker_command
from asl.core.errors import AslError

from .conftest import Asl

COMMANDS = {"serve": serve_command, "worker": worker_command}
ELSEWHERE = {
    *("agent_files", "bucket_pairs", "request_links", "store_file"),  # settings of the project
    *("allow_code", "mock_cases"),  # of one document
    *("dialect", "options", "resource", "pairs", "files", "root", "values"),  # how it is read
    *("until_idle", "only"),  # of one process
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_setting(command: str) -> None:
    """A setting is named like its option, and sets its parameter."""
    parameters = {each.name: each for each in COMMANDS[command].params}
    found = {}
    for name, field in SECTIONS[command].model_fields.items():
        targets = [each.parameter for each in field.metadata if isinstance(each, _Target)]
        found[(targets or [""])[0] or name] = name
    assert found.keys() == parameters.keys() - ELSEWHERE
    for parameter, name in found.items():
        if isinstance(parameters[parameter], click.Option):
            assert f"--{name.replace('_', '-')}" in parameters[parameter].opts


def settings(folder: Path, text: str, command: str = "serve") -> dict[str, Any]:
    (folder / "asl.toml").write_text(text)
    return find_project(str(folder)).options_of(command)


def test_values_are_those_of_the_options(folder: Path) -> None:
    """Tables become pairs; paths are relative to the file."""
    text = """
    store = "runs.db"
    [serve]
    port = 8090
    users = "etc/users.toml"
    documents = ["flows"]
    proxy = ["10.0.0.0/8"]
    project = { one = "one.db" }
    memory = ["redis://host/1"]
    watch = true
    """
    inner = folder / "inner"
    inner.mkdir()
    (inner / "asl.toml").write_text(text)
    found = find_project("inner").options_of("serve")
    assert found == {
        "store_file": "inner/runs.db",
        "port": 8090,
        "users_file": "inner/etc/users.toml",
        "documents": ["inner/flows"],
        "proxies": ["10.0.0.0/8"],
        "project_pairs": ["one=inner/one.db"],
        "memory_places": ["redis://host/1"],
        "watch": True,
    }
    assert find_project("inner").options_of("ls") == {"store_file": "inner/runs.db"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\nport = 70000", "serve.port: Input should be less than or equal to 65535"),
        ("[serve]\nport = '80'", "serve.port: Input should be a valid integer"),
        ("[serve]\nprot = 80", "serve.prot: Extra inputs are not permitted"),
        ("[serve]\nproxy = ['a', 7]", "serve.proxy.1: Input should be a valid string"),
        ("[serve]\nlog_format = 'xml'\nport = 'x'", "(and 1 more)"),
        ("[serve]\nhost = ''", "serve.host: String should have at least 1 character"),
        ('[serve]\nhost = "\\u001b[31m"', "serve.host: String should match pattern"),
        ("serve = 7", "'serve' must be a table"),
    ],
)
def test_wrong_settings(folder: Path, text: str, message: str) -> None:
    """The message names the file and the setting."""
    with pytest.raises(AslError) as refusal:
        settings(folder, text)
    assert str(refusal.value).startswith("asl.toml: ")
    assert message in str(refusal.value)


def test_commands_use_their_tables(asl: Asl, folder: Path) -> None:
    """A wrong table of another command disturbs none."""
    (folder / "asl.toml").write_text("[serve]\nport = 70000\n[worker]\nquiet = true\n")
    assert asl("serve").exit_code == 2
    assert "serve.port" in asl("serve").stderr
    done = asl("worker", "--until-idle", "--store", "runs.db")
    assert (done.exit_code, done.stderr) == (0, "")
    assert asl("check", "pass.asl.json").exit_code == 0
