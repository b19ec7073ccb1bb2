"""Contenox chains as they are published, and how their engines behave.

The documents lie beside the repository; without them these tests are skipped.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.core.source import DEFAULT_LIMITS
from asl.core.yaml_schema import CORE
from asl.core.yaml_text import loads
from asl.dialects import load
from tests.examples import sampled
from tests.reality.contenox import agents_of, paused, run

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "contenox"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
REFUSED = {
    "e1-invalid-type.json": "CX-UNKNOWN-HANDLER",  # refused by its own engine as well
    "e2-triage-greater-than.json": "CX-UNDEFINED-REF",  # a part of a chain
    "e4-agent-planner.json": "CX-UNDEFINED-REF",  # a failure leads to the end
}
ACCEPTED = [file for file in FILES if file not in REFUSED]

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the documents are not here")


def recorded() -> list[dict[str, Any]]:
    if not FOLDER.exists():
        return []
    text = (FOLDER / "cases.yaml").read_text(encoding="utf-8")
    value, _, faults = loads(text, DEFAULT_LIMITS, CORE)
    assert not faults
    return list(value["cases"])


CASES = recorded()


def test_all_documents_are_listed() -> None:
    """The index names as many documents as lie there."""
    listed = re.findall(r"^\| (e\d\S*\.json) \|", (FOLDER / "INDEX.md").read_text(), re.MULTILINE)
    assert sorted(listed) == FILES
    assert len(FILES) == 55
    assert len(CASES) == 40


@pytest.mark.parametrize("file", sampled(REFUSED, 3))
def test_what_is_wrong_is_refused(file: str) -> None:
    """With a code and a place."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(FOLDER / file)
    assert {each.code for each in refusal.value.report.errors} == {REFUSED[file]}
    assert all(each.line and each.column for each in refusal.value.report)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_the_others_are_accepted_and_detected(file: str) -> None:
    """Nobody has to say which language a chain is written in."""
    document = asl.load(FOLDER / file)
    report = asl.check(document)
    assert document.dialect == "contenox"
    assert report.ok, str(report.errors)
    assert all(each.line and each.column for each in report)
    assert {each.code.split("-")[0] for each in report} <= {"CX"}, str(list(report))


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_a_converted_document_is_small(file: str) -> None:
    """One state for a task, one Choice for its branches, one end, one for failures of rescuers."""
    tasks = json.loads((FOLDER / file).read_text())["tasks"]
    states = asl.load(FOLDER / file).value["States"]
    choosing = sum(len(task.get("transition", {}).get("branches", ())) > 1 for task in tasks)
    assert len(states) <= len(tasks) + choosing + 2


def variables(document: Document) -> dict[str, str]:
    """Something for all that the caller has to give."""
    return dict.fromkeys(re.findall(r"\{\{var:(\w+)", str(document.source.text)), "given")


def agents(document: Document) -> dict[str, Any]:
    """Agents that call a tool twice, and otherwise answer with a number or a keyword."""
    calls: dict[str, int] = {}

    def agent(name: str) -> Any:
        def answering(parameters: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            if "calls" in parameters:
                return ["done"] * len(parameters["calls"])
            if "messages" in parameters and calls[name] < 3:
                return {"tool_calls": [{"id": "1", "name": "fs.read", "arguments": "{}"}]}
            if "conditions" in parameters:
                return parameters["conditions"][0]
            if "labels" in parameters:
                return parameters["labels"][-1]
            return {"Stdout": "log"} if "provider" in parameters else "7"

        return answering

    return {name: agent(name) for name in agents_of(document)}


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_what_is_accepted_runs_to_an_end(file: str) -> None:
    """With agents that answer what the document expects, everything ends."""
    document = asl.load(FOLDER / file)
    given = {"messages": [{"role": "user", "content": "hello"}]}
    result = asl.run(
        document,
        {"input": given, "vars": variables(document)},
        agents=agents(document),
        clock="virtual",
    )
    if file == "e4-vet-bad.json":  # it hands a text to what needs a chat
        given_text = asl.run(document, "hello", agents=agents(document))
        assert (given_text.status, given_text.error) == ("FAILED", "Contenox.InputType")
    elif file == "e2-step-executor-gated-later.json":  # its gate wants another answer
        assert (result.status, result.error) == ("FAILED", "Contenox.RaiseError")
    else:
        assert result.status == "SUCCEEDED", (result.error, result.cause)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_what_was_read_is_written_as_it_was(file: str) -> None:
    """Reading and writing give the chain back, with all its keys."""
    document = asl.load(FOLDER / file)
    conversion = asl.convert(document, to="contenox")
    assert conversion.document == json.loads((FOLDER / file).read_text())
    assert asl.load(conversion.text).value["States"] == document.value["States"]


@pytest.mark.parametrize("case", sampled(CASES, 3), ids=lambda case: case["id"])
def test_a_chain_behaves_as_recorded(case: dict[str, Any]) -> None:
    """Tasks, evaluations, variables and output are those of the case."""
    expect = dict(case["expect"])
    reading = {"profile": case["profile"], "approve": paused(case)}
    try:
        document = load(case["workflow"], dialect="contenox", reading=reading)
    except asl.InvalidDocument as refusal:
        assert expect["status"] == "INVALID", str(refusal)
        return
    assert asl.check(document).ok
    seen = run(document, case)
    part = expect.pop("error_contains", None)
    if part is not None:
        assert part in seen["failure"]
    for key in ("vars", "prompts", "attempts"):
        if key in expect:
            expect_part = expect.pop(key)
            assert {name: seen[key].get(name) for name in expect_part} == expect_part
    assert {key: seen.get(key) for key in expect} == expect
