"""The projects in `examples`: their documents are sound, and their READMEs do what they show."""

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from asl.cli.main import cli
from tests.markdown import blocks, check_console, prose, write_programs
from tests.memories.conftest import free_port, server

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROJECTS = sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "README.md").exists())
LARGEST_SCREENSHOT = 120_000

every_project = pytest.mark.parametrize("name", PROJECTS)


def asl_output(*arguments: str) -> str:
    """Return what a command prints; it must succeed."""
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def documents_with_cases(folder: Path) -> set[str]:
    """Return the paths of the documents that the test cases of a project name."""
    found = set()
    for path in folder.glob("*.asl-test.yaml"):
        suite = YAML(typ="safe").load(path)
        for each in (suite, *suite["cases"]):
            found.add(each.get("document_file"))
    return found - {None}


@every_project
def test_project_is_complete(name: str) -> None:
    """It has agents, test cases of all documents and a small screenshot, and is in the index."""
    folder = EXAMPLES / name
    documents = {path.relative_to(folder).as_posix() for path in folder.rglob("*.asl.json")}
    assert documents
    assert documents <= documents_with_cases(folder)
    assert [*folder.glob("*.agents.yaml")]
    assert 0 < (folder / "screenshot.png").stat().st_size < LARGEST_SCREENSHOT
    assert "](screenshot.png)" in prose(folder / "README.md")
    assert f"]({name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@every_project
def test_project_has_no_findings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its documents, those in other languages included, nor its agents files."""
    monkeypatch.chdir(EXAMPLES / name)
    (agents,) = (str(path) for path in Path().glob("*.agents.yaml"))
    for document in sorted(documents_with_cases(Path())):
        checked = asl_output("check", "--strict", document, agents, "--agents", agents)
        assert "no findings" in checked
    asl_output("fmt", "--check", ".")


@every_project
def test_models_of_readme_can_be_bound(name: str, project: Path) -> None:
    """The agents file with models lacks nothing but the keys of its providers."""
    for block in blocks(project / "README.md"):
        if block.name is not None:
            (project / block.name).write_text(block.text, encoding="utf-8")
            checked = asl_output("check", "--strict", block.name)
            assert {*re.findall(r"\w+-\d\d", checked)} <= {"AGENTS-06"}


@every_project
def test_readme_commands(name: str, project: Path, tmp_path: Path) -> None:
    """Each command prints what the README shows, and converts to the documents that are there."""
    with running_server(name, project, tmp_path):
        for block in blocks(project / "README.md"):
            if block.language == "console":
                check_console(block, f"examples/{name}/README.md:{block.line}")
    for document in project.rglob("*.asl.json"):
        original = EXAMPLES / name / document.relative_to(project)
        assert document.read_bytes() == original.read_bytes()


@pytest.fixture
def project(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a project, as the current folder of its commands."""
    folder = tmp_path / name
    shutil.copytree(
        EXAMPLES / name, folder, ignore=shutil.ignore_patterns("__pycache__", "*.db*", "*.png")
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", write_programs(tmp_path / "bin"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for variable in ("ASL_STORE", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@contextmanager
def running_server(name: str, project: Path, folder: Path) -> Iterator[None]:
    """Run the server that a README starts in another terminal, at a free port."""
    port = free_port()
    match name:
        case "order-saga":
            pytest.importorskip("moto.server")
            program = str(ROOT / "tests" / "aws" / "moto_server.py")
            command, ready, written = [sys.executable, program, str(port)], "Running on", 5000
        case "temporal":
            if find_spec("temporalio") is None:
                pytest.skip("temporalio is not installed")
            from tests.temporal.servers import find_binary

            options = ["--port", str(port), "--headless", "--log-level", "error"]
            command = [find_binary("temporal"), "server", "start-dev", *options]
            ready, written = "Temporal Server:", 7233
        case _:
            yield
            return
    for path in project.iterdir():
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(f":{written}", f":{port}"), encoding="utf-8")
    with server(command, ready, folder):
        yield
