"""What beginners get wrong, and what they are told to do."""

from pathlib import Path

import pytest

from tests.cli.conftest import Asl

DOCUMENT = (
    '{"StartAt": "Judge", "States": {"Judge": {"Type": "Task", "Agent": "Judge", "End": true}}}'
)
MODULE = "def judge(given):\n    return given\n\ndef nothing():\n    return 1\n"
FILES = {
    "judge.asl.json": DOCUMENT,
    "mine.py": MODULE,
    "agents.yaml": "agents: {Judge: mine:judge}\n",
    "number.yaml": "agents: {Judge: 5}\n",
    "ending.asl.json": '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "End"}}}',
    "lower.asl.json": '{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "end"}}}',
    "listed.asl.json": '{"StartAt": "A", "States": [{"Type": "Pass", "End": true}]}',
    "yes.asl.yaml": "StartAt: A\nStates:\n  A: {Type: Pass, End: yes}\n",
    "no.asl.yaml": "StartAt: A\nStates:\n  A: {Type: Pass, End: 'Off'}\n",
    "deep.asl.yaml": "StartAt: A\nStates:\n  A:\n   Type: Pass\n    End: true\n",
    "level.asl.yaml": "StartAt: A\nStates:\n  A:\n   Type: a: b\n",
    "same.asl.yaml": "StartAt: A\nStates:\n  A:\n   Comment: x\n   Type: a: b\n",
}


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("run agents.yaml", 2, "is an agents file: use it in 'asl run DOC --agents agents.yaml'"),
        ("plan agents.yaml", 2, "is an agents file"),
        ("run judge.asl.json --agents judge.asl.json", 2, "this is a workflow, not an agents file"),
        ("run judge.asl.json --agents number.yaml", 2, "or an object, not of type number"),
        ("run judge.asl.json", 1, "= hint: bind it: --agent Judge=module:function"),
        ("run judge.asl.json --agent Jugde=mine:judge", 1, "= hint: did you mean 'Jugde'?"),
        ("run judge.asl.json --agent Judge=mine.judge", 2, "(did you mean 'mine:judge'?)"),
        ("run judge.asl.json --agent Judge=mine", 2, "--agent Judge: 'mine' is not of the form"),
        ("run judge.asl.json --agent Judge=mine:nothing", 2, "not nothing()\n"),
        ("test judge.asl.json", 2, "'asl test init judge.asl.json' drafts one"),
        ("test agents.yaml", 2, "this is an agents file, and no suite of cases"),
        ("check ending.asl.json", 3, 'a state that ends its machine says "End": true instead'),
        ("check lower.asl.json", 3, 'a state that ends its machine says "End": true instead'),
        (
            "run judge.asl.json --agent Judge=",
            2,
            "'Judge=' does not have the form NAME=module:function",
        ),
        ("run judge.asl.json --pool =5", 2, "'=5' does not have the form NAME=AMOUNT"),
        ("run judge.asl.json --sink all", 2, "'all' does not have the form CHANNEL=WHERE"),
        ("check listed.asl.json", 3, 'write each state under its name: "States": {"First"'),
        ("check yes.asl.yaml", 3, "= hint: write true"),
        ("check no.asl.yaml", 3, "= hint: write false"),
        ("check deep.asl.yaml", 3, "= hint: indent it like its neighbours"),
        ("test-state judge.asl.json", 3, "= hint: the profile 'default' has agents"),
        ("test-state judge.asl.json -s Jugde --profile default", 2, "(did you mean 'Judge'?)"),
        ("test-state judge.asl.json -s Other --profile default", 2, "(there are Judge)"),
        ("convert judge.asl.json --to codemie -o mine.py/out/", 2, "make the folder 'mine.py/out'"),
        ("init mine.py/out", 2, "cannot make the folder 'mine.py/out': not a directory"),
        ("run judge.asl.json --store mine.py/a/b", 2, "make the folder 'mine.py/a'"),
        ("run judge.asl.json --store judge.asl.json/b", 2, "make the folder 'judge.asl.json'"),
        ("run nowhere --record .", 2, "cannot write '.': is a directory"),
        ("run nowhere --history mine.py/x", 2, "'mine.py/x': there is no folder 'mine.py'"),
        ("check - -", 2, "standard input can be read only once"),
        ("diff - -", 2, "standard input can be read only once"),
        ("check judge.asl.json --root mine.py", 2, "'mine.py' is not a folder"),
        ("lock judge.asl.json --root nowhere", 2, "'nowhere' is not a folder"),
        ("help", 2, "'asl --help' lists all"),
        (f"check {'x' * 300}", 2, "cannot read 'xxx"),
        (f"test {'x' * 300}", 2, "cannot read 'xxx"),
        (f"test init {'x' * 300}", 2, "cannot read 'xxx"),
        (f"ls --store {'x' * 300}", 2, "there is no store xxx"),
        (f"init --name {'x' * 300}", 2, "cannot write"),
        ("run judge.asl.json --input \udce9", 2, "is not UTF-8"),
        ("run judge.asl.json --store s.db --name \udce9", 2, "must be printable text"),
    ],
)
def test_wrong_usage_prints_the_fix(
    line: str, code: int, told: str, asl: Asl, folder: Path
) -> None:
    """Each mistake has its exit code."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = asl(*line.split())
    assert done.exit_code == code
    assert told in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["level.asl.yaml", "same.asl.yaml"])
def test_yaml_error_has_no_wrong_hint(name: str, asl: Asl, folder: Path) -> None:
    """A second colon in a line is not a fault of indentation."""
    (folder / name).write_text(FILES[name])
    assert "indent it" not in asl("check", name).stdout


def test_help_lists_options_in_order(asl: Asl) -> None:
    """Those that several commands share, too."""
    text = asl("run", "--help").stdout
    places = [text.index(f"  {each} ") for each in ("--agents", "--bucket", "--sink", "--var")]
    assert places == sorted(places)
