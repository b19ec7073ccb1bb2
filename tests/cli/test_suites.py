"""`asl test`."""

import errno
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import asl as front_door
from tests.bundled import bundled

from .conftest import Asl

SUITE = """
suite: Mine
cases:
  - id: mine/right
    title: It passes
    tags: [quick]
    document: &pass {StartAt: A, States: {A: {Type: Pass, End: true}}}
    input: 1
    expect: {output: 1}
  - id: mine/wrong
    title: It does not
    document: *pass
    input: 1
    expect: {output: 2}
"""


@pytest.fixture
def suite(folder: Path) -> Path:
    path = folder / "mine.asl-test.yaml"
    path.write_text(SUITE)
    return path


def test_failed_case_exits_with_1(asl: Asl, suite: Path) -> None:
    """The report names the case, its place and the difference."""
    done = asl("test", suite.name)
    assert done.exit_code == 1
    assert "failed mine/wrong: It does not" in done.stdout
    assert "mine.asl-test.yaml:10" in done.stdout
    assert "1 passed, 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "summary"),
    [
        (("-k", "RIGHT"), 0, "1 passed in"),
        (("-k", "does not"), 1, "0 passed, 1 failed in"),
        (("--tag", "quick"), 0, "1 passed in"),
        (("-k", "right", "-v"), 0, "passed mine/right: It passes"),
    ],
)
def test_k_and_tag_select_cases(
    words: tuple[str, ...], code: int, summary: str, asl: Asl, suite: Path
) -> None:
    """-k looks at id and title, --tag at tags."""
    done = asl("test", suite.name, *words)
    assert done.exit_code == code
    assert summary in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope.yaml",), "cannot read 'nope.yaml'"),
        (("mine.asl-test.yaml", "-k", "zzz"), "no case is selected of 2 cases"),
        (("mine.asl-test.yaml", "mine.asl-test.yaml"), "is already used at"),
        (("mine.asl-test.yaml", "--implementation", "./no-such-program"), "no-such-program"),
        (("mine.asl-test.yaml", "--implementation", "'"), "--implementation"),
        (("mine.asl-test.yaml", "--implementation", ""), "the command is empty"),
        (("mine.asl-test.yaml", "--output", "no/such/file"), "cannot write"),
        (("bad.yaml",), "bad.yaml:"),
        (("torn.yaml",), "torn.yaml:1:"),
    ],
)
def test_wrong_usage_of_test_exits_with_2(
    words: tuple[str, ...], message: str, asl: Asl, suite: Path, folder: Path
) -> None:
    """Suites that cannot be read or selected are no failing cases."""
    (folder / "bad.yaml").write_text("cases: [{id: 1}]")
    (folder / "torn.yaml").write_text("cases: [")
    done = asl("test", *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_format_json_and_junit(asl: Asl, suite: Path, folder: Path) -> None:
    """JSON and JUnit XML hold every case; --output writes a file."""
    report = json.loads(asl("test", suite.name, "--format", "json").stdout)
    assert (report["passed"], report["failed"]) == (1, 1)
    done = asl("test", suite.name, "--format", "junit", "--output", "report.xml")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "the report is in report.xml" in done.stderr
    root = ElementTree.fromstring((folder / "report.xml").read_text())
    assert len(root.findall(".//testcase")) == 2


def test_implementation_and_jobs_options(
    asl: Asl, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--implementation starts a command that speaks the protocol; --jobs starts several."""
    monkeypatch.setenv("PYTHONPATH", str(Path(front_door.__file__).parents[1]))
    command = f"{sys.executable} -m asl.conformance.local"
    done = asl("test", suite.name, "--implementation", command, "--jobs", "2")
    assert "1 passed, 1 failed" in done.stdout


def test_default_is_the_conformance_suite(asl: Asl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path the cases that come with asl are run, here a tenth of the core's."""
    monkeypatch.setattr("asl.cli.test.load_suite", lambda: bundled("core", each=10))
    done = asl("test", "-k", "path")
    assert "passed" in done.stdout


def test_no_command_damages_a_file_if_the_disk_is_full(
    asl: Asl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents, reports, drawings and histories: the former content remains."""

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    document, old = folder / "pass.asl.json", folder / "old.svg"
    written = json.dumps(json.loads(document.read_text()), indent=7)
    document.write_text(written)
    old.write_text("precious")
    before = sorted(folder.iterdir())
    suite = folder / "s.asl-test.yaml"
    case = "{id: a, expect: {status: SUCCEEDED}}"
    suite.write_text(f"suite: s\ndocument_file: pass.asl.json\ncases: [{case}]\n")
    for words in (
        ("fmt", document),
        ("graph", document, "-o", old),
        ("convert", document, "--to", "amazon", "-o", old),
        ("run", document, "--history", old),
        ("run", document, "--record", old),
        ("test", suite, "--output", old),
    ):
        ran = asl(*words)
        assert (ran.exit_code, "no space left on device" in ran.stderr) == (2, True), words
    assert (document.read_text(), old.read_text()) == (written, "precious")
    assert sorted(folder.iterdir()) == sorted([*before, suite])
