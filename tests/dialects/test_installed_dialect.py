"""A dialect of an installed package can do all that those of the package can."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl.cli.main import cli
from asl.dialects import registry
from asl.expr.jsonata.functions.dialects import dialect_functions

MODULE = '''\
"""Memos: lines that ask an agent, shout, or fail."""

import os

from asl.core.diagnostics import Finding
from asl.core.dialect_parts import DialectFunction
from asl.core.document import parse_source
from asl.core.errors import StateError
from asl.dialects.base import Coverage, Dialect, WriterResult
from asl.dialects.foreign_documents import document
from asl.engine.definitions import AgentDefinition

HERE = os.path.dirname(__file__)


def shout(text, mark):
    if text == "bug":
        raise KeyError(text)
    if text == "":
        raise StateError("Memo.Silent", "there is nothing to shout")
    return text.upper() + mark


def functions():
    return {"shout": DialectFunction("<ss:s>", shout, json=True)}


def read(source, limits, *, jsonpath=False):
    foreign = parse_source(source, limits)
    lines, states, parts, findings = foreign.value["lines"], {}, [], []
    for index, line in enumerate(lines):
        place = f"/lines/{index}"
        step = {"Next": f"Line{index + 1}"} if index + 1 < len(lines) else {"End": True}
        if "ask" in line:
            state = {"Type": "Task", "Agent": line["ask"], **step}
        elif jsonpath:
            call = f"Memo.Shout($.text, '{line['shout']}')"
            state = {"Type": "Pass", "Parameters": {"text.$": call}, **step}
        else:
            call = "{% $memo_shout($states.input.text, '" + line["shout"] + "') %}"
            state = {"Type": "Pass", "Output": {"text": call}, **step}
        if line.get("shout") == "":
            place_of_mark = f"{place}/shout"
            findings.append(Finding("MEMO-MARK", "a shout without a mark", place_of_mark))
        states[f"Line{index}"] = state
        parts.append((state, place))
    value = {} if jsonpath else {"QueryLanguage": "JSONata"}
    value |= {"StartAt": "Line0", "States": states, "Metadata": {"Memo": {"lines": lines}}}
    return document(foreign, value, parts, findings)


def write(document):
    memo = document.value.get("Metadata", {}).get("Memo")
    lines = memo["lines"] if memo else [
        {"ask": state["Agent"]} for state in document.value["States"].values()
    ]
    texts = [f"- {key}: {value!r}" for line in lines for key, value in line.items()]
    return WriterResult({"lines": lines}, "\\n".join(["memo: 1", "lines:", *texts, ""]))


def history_events(metadata):
    def events(name, kind, siblings, data):
        yield "LineStarted", {"line": int(name.removeprefix("Line"))}

    return events


def agents(document):
    lines = document["Metadata"]["Memo"]["lines"]
    return {
        line["ask"]: AgentDefinition(line["ask"], f"/lines/{index}/ask", prompt="You write.")
        for index, line in enumerate(lines) if "ask" in line
    }


MEMO = Dialect(
    "memo",
    "Memo",
    matches_text=lambda text: text.startswith("memo:"),
    matches_value=lambda value: "memo" in value,
    read=read,
    write=write,
    read_options=frozenset(("jsonpath",)),
    coverage=lambda: Coverage(
        {"Task": frozenset(("Type", "Agent", "Next", "End"))}, frozenset(("StartAt", "States"))
    ),
    agents=agents,
    functions=functions,
    history_events=history_events,
    codes=os.path.join(HERE, "codes.toml"),
    error_names=os.path.join(HERE, "errors.toml"),
    json_schema=lambda: {"title": "Memo", "type": "object", "required": ["lines"]},
    file_ending=".memo.yaml",
    named_states=lambda value: ((f"Line{at}", each) for at, each in enumerate(value["lines"])),
)
'''
CODES = '[MEMO-MARK]\nseverity = "warning"\ntitle = "No mark"\nexplain = "A shout ends in one."\n'
ERRORS = '["Memo.Silent"]\ntitle = "Nothing to shout"\nexplain = "The text is empty."\n'
MEMO = "memo: 1\nlines:\n- ask: Writer\n- shout: '!'\n- shout: ''\n"
WRITER = {"Writer": {"return": {"text": "hello"}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder, with an installed package of the dialect."""
    site = tmp_path / "site"
    package, about = site / "memo_language", site / "memo_language-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(MODULE)
    (package / "codes.toml").write_text(CODES)
    (package / "errors.toml").write_text(ERRORS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: memo-language\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[asl.dialects]\nmemo = memo_language:MEMO\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    forget()
    Path("flow.yaml").write_text(MEMO)
    yield tmp_path
    forget()


def forget() -> None:
    """Forget the dialects that are installed."""
    registry._entries.cache_clear()
    registry._load.cache_clear()
    sys.modules.pop("memo_language", None)
    dialect_functions.cache_clear()


def command(*words: str) -> Any:
    return CliRunner().invoke(cli, [*words])


def test_document_is_detected_and_checked(folder: Path) -> None:
    """Its finding has the code of the dialect, and the line of the author."""
    assert asl.detect("flow.yaml") == "memo"
    (found,) = asl.check("flow.yaml")
    assert (found.code, found.severity.name, found.line) == ("MEMO-MARK", "WARNING", 5)
    shown = command("check", "flow.yaml").stdout
    assert "flow.yaml:5:10: warning MEMO-MARK: a shout without a mark" in shown


def test_code_and_error_can_be_explained(folder: Path) -> None:
    assert command("explain", "MEMO-MARK").stdout.startswith("MEMO-MARK: No mark\nwarning\n")
    assert command("explain", "Memo.Silent").stdout.startswith("Memo.Silent: Nothing to shout\n")


@pytest.mark.parametrize("jsonpath", [False, True])
def test_function_runs_in_both_query_languages(jsonpath: bool, folder: Path) -> None:
    document = asl.load("flow.yaml", reading={"jsonpath": jsonpath})
    result = asl.run(document, agents=WRITER)
    assert result.output == {"text": "HELLO!"}
    failed = asl.run(document, agents={"Writer": {"return": {"text": ""}}})
    assert failed.error == "Memo.Silent"


def test_error_of_the_dialect_is_suggested_for_a_similar_name(folder: Path) -> None:
    document = asl.convert("flow.yaml", "asl").document
    handler = [{"ErrorEquals": ["Memo.Silnt"], "Next": "Line1"}]
    document["States"]["Line0"]["Catch"] = handler
    (found,) = (each for each in asl.check(document) if each.code == "V-CATCH-05")
    assert found.hint == "did you mean 'Memo.Silent'?"


def test_history_has_the_events_of_the_dialect(folder: Path) -> None:
    result = asl.run("flow.yaml", agents=WRITER)
    started = [each.details for each in result.events if each.type == "LineStarted"]
    assert [each["line"] for each in started] == [0, 1, 2]


def test_agents_of_the_document_are_known(folder: Path) -> None:
    drafted = command("init", "new", "--from", "flow.yaml")
    assert drafted.exit_code == 0
    assert "You write." in Path("new/flow.agents.yaml").read_text()


def test_document_is_converted_in_both_directions(folder: Path) -> None:
    there = asl.convert("flow.yaml", "asl")
    assert there.faithful
    result = asl.run(there.document, agents=WRITER)
    assert (result.output, len(result.events) > 0) == ({"text": "HELLO!"}, True)
    assert asl.load(there.document).value == there.document
    assert asl.convert(there.document, "memo").text == MEMO.replace("ask: Writer", "ask: 'Writer'")
    native = {"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "Writer", "End": True}}}
    assert asl.convert(native, "memo").document == {"lines": [{"ask": "Writer"}]}
    Path("native.asl.json").write_text(json.dumps(native))
    assert command("convert", "native.asl.json", "--to", "memo", "-o", "out/").exit_code == 0
    assert Path("out/native.memo.yaml").exists()


def test_conversion_is_explained_state_by_state(folder: Path) -> None:
    Path("asks.yaml").write_text("memo: 1\nlines:\n- ask: Writer\n")
    shown = json.loads(command("convert", "asks.yaml", "--to", "asl", "--explain", "--json").stdout)
    (line,) = shown["states"]
    assert (line["source"], line["target"]["Agent"]) == ({"ask": "Writer"}, "Writer")


def test_schema_is_printed(folder: Path) -> None:
    assert json.loads(command("schema", "memo").stdout)["title"] == "Memo"
    assert "memo" in command("schema", "--list").stdout.split()


def test_exception_of_a_function_is_an_error_that_names_it(folder: Path) -> None:
    """It is a fault of the package, not a failure of the workflow."""
    with pytest.raises(asl.AslError, match=r"the function \$memo_shout failed: KeyError: 'bug'"):
        asl.run("flow.yaml", agents={"Writer": {"return": {"text": "bug"}}})


@pytest.mark.parametrize("text", ["[MEMO-MARK", "[MEMO-MARK]\ncolour = 1\n"])
def test_file_of_codes_that_cannot_be_used_is_named(text: str, folder: Path) -> None:
    Path("site/memo_language/codes.toml").write_text(text)
    with pytest.raises(asl.AslError, match=r"memo_language/codes.toml' cannot be used"):
        asl.check("flow.yaml")
