"""`module:function` and `file.py:function`: where they are found, and what cannot be imported."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asl.core.errors import AslError
from asl.core.python_imports import MissingModule, check_import, import_object

Write = Callable[[dict[str, str]], Path]

DEPENDENCIES = (
    *("apprise", "boto3", "click", "fsspec", "genai_prices", "httpx2", "jsonata", "jsonschema"),
    *("mcp", "opentelemetry", "orjson", "pyarrow", "pydantic", "pydantic_ai", "re2", "redis"),
    *("rich", "ruamel", "wasmtime"),
)
"""The modules of what the package depends on or may use."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return written


def test_file_form_imports_sibling(write: Write) -> None:
    folder = write(
        {
            "functions/ship-order/app.py": "import rates\ndef handler(e, c=None):\n return rates.X",
            "functions/ship-order/rates.py": "X = 7",
        }
    )
    assert import_object("functions/ship-order/app.py:handler", [folder])({}) == 7


def test_files_of_one_name_in_two_folders_are_apart(write: Write) -> None:
    files = {}
    for name in ("a", "b"):
        files[f"{name}/app.py"] = (
            "from helpers import who\ndef f(e):\n import late\n return who, late.X"
        )
        files[f"{name}/helpers.py"] = f"who = {name!r}"
        files[f"{name}/late.py"] = f"X = {name!r}"
    folder = write(files)
    functions = [import_object(f"{name}/app.py:f", [folder]) for name in ("a", "b")]
    assert [function({}) for function in functions] == [("a", "a"), ("b", "b")]


def test_modules_of_one_name_beside_two_agents_files_are_apart(write: Write) -> None:
    folder = write(
        {"a/same_name.py": "def f(p):\n return 'a'", "b/same_name.py": "def f(p):\n return 'b'"}
    )
    assert [import_object("same_name:f", [folder / each])({}) for each in "ab"] == ["a", "b"]


def test_packages_and_relative_imports_of_a_folder(write: Write) -> None:
    folder = write(
        {
            "fn/app.py": "import lib.deep.x\nimport lib.deep as d\nfrom lib import y\n"
            "def f(e):\n return [lib.deep.x.X, d.x.X, y.Y]",
            "fn/lib/__init__.py": "",
            "fn/lib/y.py": "from settings import S\nfrom . import deep\nY = S",
            "fn/lib/deep/__init__.py": "from . import x",
            "fn/lib/deep/x.py": "X = 1",
            "fn/settings.py": "S = 2",
        }
    )  # fmt: skip
    assert import_object("fn/app.py:f", [folder])({}) == [1, 1, 2]
    assert "lib" not in sys.modules
    assert "settings" not in sys.modules


def test_installed_module_wins_over_file_of_its_name(write: Write) -> None:
    folder = write(
        {
            "reviewer.py": "import orjson as a, json as b\ndef f(p): return a.__file__, b.__file__",
            "orjson.py": "raise SystemExit('imported')",
            "json.py": "raise SystemExit('imported')",
        }
    )
    import json

    import orjson

    assert import_object("reviewer:f", [folder])({}) == (orjson.__file__, json.__file__)
    assert import_object("orjson:dumps", [folder]) is orjson.dumps


def test_library_cannot_import_file_of_a_folder(write: Write) -> None:
    folder = write({"asker.py": "import hidden_one\ndef f(p):\n return 1", "hidden_one.py": ""})
    import_object("asker:f", [folder])
    with pytest.raises(ModuleNotFoundError):
        __import__("hidden_one")
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("app.handler", "did you mean 'app:handler'"),
        ("functions/app.handler", "did you mean 'functions/app.py:handler'"),
        ("nowhere.py:f", "there is no file"),
        ("fn/app.py:handlr", "did you mean 'handler'"),
        ("fn/broken.py:f", "SyntaxError"),
        ("fn/a.b.py:f", "rename the file"),
        ("no_such_module_here:f", "there is no module 'no_such_module_here'"),
        ("fn.nothing:f", "there is no module 'fn.nothing'"),
    ],
)
def test_check_and_import_say_the_same(name: str, said: str, write: Write) -> None:
    folder = write(
        {
            "fn/app.py": "def handler(event, context): ...",
            "fn/broken.py": "def f(:",
            "fn/a.b.py": "def f(p): ...",
        }
    )
    for use in (check_import, import_object):
        with pytest.raises(AslError, match=said):
            use(name, [folder])


def test_check_runs_no_code(write: Write) -> None:
    folder = write(
        {
            "pkg/__init__.py": "raise SystemExit",
            "pkg/m.py": "raise SystemExit\ndef f(p): ...",
            "star.py": "from os.path import *",
            "later.py": "if True:\n    f = g = None\nelse:\n    from x import h",
        }
    )
    for name in ("pkg.m:f", "pkg/m.py:f", "star:join", "later:g", "later:h"):
        check_import(name, [folder])
    with pytest.raises(MissingModule):
        check_import("pkg.other:f", [folder])


@pytest.mark.parametrize(
    "command", [["-m", "asl"], ["-masl"], ["-c", "import asl.__main__ as m; m.main()"]]
)
def test_command_imports_nothing_from_current_folder(command: list[str], write: Write) -> None:
    """A document that binds no agents runs no file of the folder in which it is run."""
    trap = "open('TRAP', 'w').close()\n"
    document = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
    folder = write({"d.asl.json": document} | {f"{name}.py": trap for name in DEPENDENCIES})
    if command[0] == "-c":
        command = ["-P", *command]  # as the installed script: its own folder is first on the path
    for words in (["run", "d.asl.json"], ["check", "d.asl.json"], ["graph", "d.asl.json"]):
        done = subprocess.run(
            [sys.executable, *command, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not (folder / "TRAP").exists()


def test_named_agent_does_not_open_the_folder_to_libraries(write: Write) -> None:
    """An agent of the folder is imported; files named like libraries are not."""
    trap = "open('TRAP', 'w').close()\n"
    document = '{"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "R", "End": true}}}'
    folder = write(
        {"d.asl.json": document, "mine.py": "import aside_of_mine\ndef f(p):\n return {'ok': 1}"}
        | {"aside_of_mine.py": ""}
        | {f"{name}.py": trap for name in DEPENDENCIES}
    )
    done = subprocess.run(
        [sys.executable, "-m", "asl", "run", "d.asl.json", "--agent", "R=mine:f"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"ok":1}\n'
    assert not (folder / "TRAP").exists()
