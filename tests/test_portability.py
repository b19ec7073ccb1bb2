"""What works without the modules of POSIX, and what says that it needs them.

Windows itself is not tested: these tests take its missing modules away.
"""

import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

import asl
from asl.agents import ProcessAgent
from asl.buckets.local import check_key
from asl.core.environment import require_posix
from asl.core.errors import AslError
from asl.states.map_data import ObjectFault

ROOT = Path(__file__).resolve().parents[1]
WITHOUT = """
import select
import sys

POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in POSIX:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in POSIX:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
del select.poll
"""
RUN = """
import asl
from asl.core.environment import user_name

DOCUMENT = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Ada", "End": True}}}
assert asl.check(DOCUMENT).ok
assert asl.run(DOCUMENT, agents={"Ada": lambda payload: 5}).output == 5
assert asl.run(DOCUMENT, agents={"Ada": {"return": 5, "delay": 9}}, clock="virtual").elapsed == 9
assert user_name()
"""


def test_document_runs_without_the_modules_of_posix() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + RUN], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def not_posix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make features believe that this is another system."""
    monkeypatch.setattr("asl.core.environment.os", type("os", (), {"name": "nt"}))


@pytest.mark.usefixtures("not_posix")
def test_feature_of_posix_says_so() -> None:
    with pytest.raises(AslError, match="a store needs a POSIX system: use WSL or a container"):
        require_posix("a store")


@pytest.mark.usefixtures("not_posix")
def test_program_as_an_agent_is_refused_elsewhere() -> None:
    document = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "P", "End": True}}}
    result = asl.run(document, agents={"P": ProcessAgent(["cat"])})
    assert result.cause is not None
    assert "the program 'cat' needs a POSIX system" in result.cause


@pytest.mark.parametrize(
    ("root", "path", "inside"),
    [
        (r"C:\repo", r"C:\repo\flows\a.json", True),
        (r"C:\repo", r"c:\REPO\a.json", True),
        (r"C:\repo", r"C:\repository\a.json", False),
        (r"C:\repo", r"D:\repo\a.json", False),
        (r"\\host\share\repo", r"\\host\other\a.json", False),
    ],
)
def test_path_of_windows_is_inside_a_folder(root: str, path: str, inside: bool) -> None:
    """As the package compares paths: by `is_relative_to`, which knows drives and letters."""
    assert PureWindowsPath(path).is_relative_to(PureWindowsPath(root)) is inside


@pytest.mark.parametrize("key", [r"..\x", r"a\..\..\x", r"\\host\share\x"])
def test_key_of_a_bucket_has_no_separator_of_windows(key: str) -> None:
    with pytest.raises(ObjectFault):
        check_key("bucket", key)
