"""What documents, agents and people write never controls the terminal that shows it."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from asl.cli.main import cli
from asl.core.printable import is_printable, printable, printable_json

HOSTILE = "ok\x1b[2J\x1b]0;x\x07\r\n\x9b1mforged  Approve?\u202egnp\u2066\u200b\x7f\x85\u2028end"
"""Control sequences of both kinds, line breaks, changes of direction, invisible characters."""


DIALECTS = ("asl", "amazon", "codemie", "contenox", "flujo")


def document(kind: str) -> dict[str, Any]:
    """Return a workflow whose names, prompts, errors and outputs are hostile."""
    name = f"Name {HOSTILE}"
    states: dict[str, Any] = {
        "approval": {
            "Type": "Approval",
            "Prompt": f"Publish {HOSTILE} {{{{ $.title }}}}?",
            "Options": [f"yes {HOSTILE}", "no"],
            "Editable": {"Fields": ["$.title"], "ResultPath": "$.edited"},
            "ResultPath": "$.review",
            "End": True,
        },
        "failure": {"Type": "Fail", "Error": f"Err {HOSTILE}", "Cause": f"cause {HOSTILE}"},
        "output": {"Type": "Pass", "Result": {HOSTILE: HOSTILE}, "End": True},
        "agent": {"Type": "Task", "Agent": "Writer", "Comment": HOSTILE, "End": True},
        "token": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {
                "QueueUrl": HOSTILE,
                "MessageBody": {"t.$": "$$.Task.Token", "text": HOSTILE},
            },
            "End": True,
        },
    }
    return {"Comment": HOSTILE, "StartAt": name, "States": {name: states[kind]}}


def safe(text: str) -> None:
    """Expect that no character of a text controls a terminal, and that no line is forged."""
    assert [each for each in text if not (each.isprintable() or each in "\n\t")] == []
    assert not any(line.startswith("forged") for line in text.splitlines())


@pytest.fixture
def asl(tmp_path: Path) -> Any:
    """Call `asl` with a store of its own and expect safe output on both streams."""

    def call(*words: str) -> Any:
        done = CliRunner().invoke(cli, words, env={"ASL_STORE": str(tmp_path / "runs.db")})
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code in (0, 1, 2, 3, 4), done.output
        safe(done.stdout)
        safe(done.stderr)
        return done

    return call


@pytest.fixture
def started(asl: Any, tmp_path: Path) -> Any:
    """Run a hostile document in the store, twice named."""

    def start(kind: str, *more: str) -> Any:
        path = tmp_path / f"{kind}.asl.json"
        path.write_text(json.dumps(document(kind)))
        agents = tmp_path / "agents.json"
        answer = {"text": HOSTILE, "reports": [{"message": HOSTILE, "percentage": 3}]}
        agents.write_text(json.dumps({"Writer": {"return": answer}}))
        data = json.dumps({"title": HOSTILE, HOSTILE: HOSTILE})
        words = ("--store", str(tmp_path / "runs.db"), "--agents", str(agents), "-i", data)
        return asl("run", str(path), *words, "--name", kind, *more)

    return start


@pytest.mark.parametrize("kind", ["approval", "failure", "output", "agent", "token"])
@pytest.mark.parametrize("more", [(), ("--trace",), ("--json",), ("--events",), ("--history", "-")])
def test_run_shows_no_control_characters(kind: str, more: tuple[str, ...], started: Any) -> None:
    """In any form of output."""
    started(kind, *more)


@pytest.mark.parametrize("kind", ["approval", "failure", "output", "agent", "token"])
def test_commands_on_a_store_show_no_control_characters(
    kind: str, started: Any, asl: Any, tmp_path: Path
) -> None:
    """Inbox, history and lists, then the approval and what follows from it."""
    started(kind)
    path = str(tmp_path / f"{kind}.asl.json")
    for words in (
        *(("inbox",), ("inbox", "--json"), ("show", kind), ("show", kind, "--json")),
        *(("show", kind, "--events"), ("ls",), ("ls", "--json"), ("logs", kind)),
        *(("logs", kind, "--json"), ("costs", kind), ("checkpoints", kind), ("doctor",)),
        *(("approve", kind, "--option", "maybe"), ("approve", kind, "--request", HOSTILE)),
        *(("approve", kind, "--comment", HOSTILE, "--as", f"ann {HOSTILE}"), ("resume", kind)),
        *(("show", kind), ("logs", kind), ("redrive", kind), ("ls",), ("inbox",)),
        ("resume", "--due", "--agents", path),
    ):
        asl(*words)


@pytest.mark.parametrize("kind", ["approval", "failure", "output", "agent", "token"])
def test_commands_on_documents_show_no_control_characters(
    kind: str, started: Any, asl: Any, tmp_path: Path
) -> None:
    """Checks, annotations, plans, differences and drawings."""
    path = tmp_path / f"{kind}.asl.json"
    path.write_text(json.dumps(document(kind)))
    broken = document(kind)
    (_, state), *_ = broken["States"].items()
    state[f"Field {HOSTILE}"] = f"$.a{HOSTILE}"
    state["Next"] = HOSTILE
    bad = tmp_path / "bad.asl.json"
    bad.write_text(json.dumps(broken, ensure_ascii=False))
    for words in (
        *(("plan", str(path)), ("check", str(path)), ("check", str(bad))),
        *(("check", str(bad), "--format", each) for each in ("github", "json", "sarif")),
        *(("diff", str(path), str(bad)), ("diff", str(path), str(bad), "--json")),
        *(("graph", str(path), "--format", each) for each in ("mermaid", "dot", "svg")),
        *(("convert", str(path), "--to", each) for each in DIALECTS),
        ("expand", str(path)),
        *(("convert", str(bad), "--to", "amazon"), ("run", str(bad)), ("explain", HOSTILE)),
        ("test", str(path)),
    ):
        asl(*words)


def test_console_notifier_quotes_a_prompt_of_several_lines(started: Any) -> None:
    """A prompt cannot pass for the options or the id of another request."""
    shown = started("approval", "--notify", "console").stderr
    assert "> Publish" in shown


def test_mermaid_escapes_directives_in_a_name(asl: Any, tmp_path: Path) -> None:
    """Mermaid reads `%%{init: ...}%%` and `#lt;` anywhere, also within quotes."""
    name = '%%{init: {"securityLevel": "loose"}}%% #lt;img src=x onerror=1#gt;'
    path = tmp_path / "name.asl.json"
    path.write_text(json.dumps({"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}))
    drawn = asl("graph", str(path)).stdout
    assert "%%{" not in drawn
    assert "#lt;" not in drawn


@pytest.mark.parametrize(
    ("form", "raw"),
    [("svg", "<script>"), ("svg", "<img"), ("dot", "script")],
)
def test_drawings_quote_markup_in_a_name(asl: Any, tmp_path: Path, form: str, raw: str) -> None:
    """No element of SVG and no statement of DOT begins in the name of a state."""
    name = '</text><script>alert(1)</script>&<img src=x onerror=1>"]; x -> y; ["'
    path = tmp_path / "name.asl.json"
    path.write_text(json.dumps({"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}))
    drawn = asl("graph", str(path), "--format", form).stdout
    if form == "svg":
        ElementTree.fromstring(drawn)
        assert raw not in drawn
    else:
        unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", drawn)
        assert "x -> y" not in unquoted
        assert raw not in unquoted


@given(st.text())
def test_printable_replaces_control_characters(text: str) -> None:
    """One line, or lines; text that is printable stays as it is."""
    shown = printable(text)
    assert is_printable(shown)
    assert (shown == text) is is_printable(text)
    assert printable(shown) == shown
    assert len(printable(text, lines=True)) == len(text)


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_printable_json_keeps_the_value(value: Any) -> None:
    """Escapes change how a JSON text looks, not what it means."""
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(printable_json(text)) == value


@pytest.mark.parametrize("blank", ["\u00a0", "\u2009", "\u3000"])
def test_printable_keeps_blanks(blank: str) -> None:
    """A blank that does not break, or a wide one, controls nothing."""
    assert printable(f"a{blank}b") == f"a{blank}b"


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_expand_prints_escapes_of_the_same_value(ending: str, asl: Any, tmp_path: Path) -> None:
    """What is printed is JSON of the same document, on a pipe and on a terminal."""
    path = tmp_path / f"it.asl.{ending}"
    path.write_text(json.dumps(document("output")))
    assert json.loads(asl("expand", str(path)).stdout) == document("output")


def test_convert_writes_yaml_with_escapes_of_the_same_value(asl: Any, tmp_path: Path) -> None:
    """A text of several lines with a change of direction is no block: those have no escapes."""
    value = document("agent")
    (state,) = value["States"].values()
    state["Comment"] = state["Agent"] = "one\ntwo \u202e three\n"
    path = tmp_path / "it.asl.json"
    path.write_text(json.dumps(value))
    made = tmp_path / "made.yaml"
    asl("convert", str(path), "--to", "codemie", "-o", str(made))
    assert is_printable(made.read_text().replace("\n", ""))
    back = asl("convert", str(made), "--to", "asl").stdout
    assert "\\u202e" in back


def test_junit_report_shows_no_control_characters(asl: Any, tmp_path: Path) -> None:
    """Nor does the text: titles, and what differs."""
    case = {"id": "a", "title": HOSTILE, "expect": {"status": "SUCCEEDED", "output": HOSTILE}}
    suite = {"suite": HOSTILE, "document": document("failure"), "cases": [case]}
    path = tmp_path / "it.asl-test.json"
    path.write_text(json.dumps(suite))
    for form in ("text", "json", "junit"):
        assert asl("test", str(path), "--format", form).exit_code == 1
    ElementTree.fromstring(asl("test", str(path), "--format", "junit").stdout)


@pytest.mark.parametrize("setting", ["profile", "store", "request_link"])
def test_settings_with_control_characters_are_refused(
    setting: str, asl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Help shows the settings of a project as defaults."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asl.toml").write_text(f'{setting} = "\\u001b[2J\\u202e"')
    for words in (("check", "--help"), ("ls",)):
        done = asl(*words)
        assert done.exit_code == 2
        assert f"asl.toml: {setting!r} contains control characters" in done.stderr


def test_usage_errors_show_no_control_characters(asl: Any) -> None:
    """A file of that name may have been made by somebody else."""
    assert asl("import", f"{HOSTILE}.jsonl").exit_code == 2
