"""CodeMie workflows as they are published, and how their platform behaves.

The documents lie beside the repository; without them these tests are skipped.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.document import Document
from asl.states.machines import nested_machines
from tests.examples import sampled
from tests.reality.codemie import cases, plain, run

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "codemie"
ROW = re.compile(r"\| `([^`]+)` \| (\w+) \| \S+ \| ([^|]+) \|")

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the documents are not here")


def verdicts() -> dict[str, str]:
    """The platform's verdict on every document."""
    if not FOLDER.exists():
        return {}
    found = ROW.findall((FOLDER / "INDEX.md").read_text(encoding="utf-8"))
    return {file: verdict.strip() for file, _, verdict in found}


VERDICTS = verdicts()
ACCEPTED = [file for file, verdict in VERDICTS.items() if verdict == "ok"]
CASES = cases((FOLDER / "cases.yaml").read_text(encoding="utf-8")) if FOLDER.exists() else []


def test_all_documents_are_listed() -> None:
    """The index names as many documents as lie there."""
    assert len(VERDICTS) == 179
    assert len(ACCEPTED) == 76
    assert len(CASES) == 65


@pytest.mark.parametrize("file", sampled(VERDICTS, 3))
def test_the_verdict_is_that_of_the_platform(file: str) -> None:
    """What the platform accepts is accepted, what it refuses is refused, with a place."""
    try:
        report = asl.check(asl.load(FOLDER / file, dialect="codemie"))
    except asl.InvalidDocument as refusal:
        report = refusal.report
    assert report.ok == (VERDICTS[file] == "ok"), str(report.errors)
    assert all(each.line and each.column for each in report)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_the_dialect_is_detected(file: str) -> None:
    """Nobody has to say which language a workflow is written in."""
    assert asl.load(FOLDER / file).dialect == "codemie"


def machines(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    todo: list[Any] = [document.value]
    while todo:
        machine = todo.pop()
        for name, state in machine["States"].items():
            yield name, state
            todo += [inner for _, inner in nested_machines(state)]


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_a_converted_document_is_small(file: str) -> None:
    """A Task and a Choice for a state, a Map, Parallel, Approval where one is needed."""
    document = asl.load(FOLDER / file)
    assert document.composition is not None
    workflow = document.composition.written
    config = workflow.get("execution_config", workflow)
    states = config["states"]
    count = {
        kind: sum(state["Type"] == kind for _, state in machines(document))
        for kind in ("Task", "Pass", "Choice", "Parallel", "Map", "Approval", "Succeed", "Fail")
    }
    choosing = sum("condition" in state["next"] or "switch" in state["next"] for state in states)
    asking = ("interrupt_before", "wait_for_user_confirmation")
    gates = sum(any(state.get(key) for key in asking) for state in states)
    assert count["Task"] + count["Pass"] <= len(states)
    assert count["Choice"] <= choosing
    assert count["Parallel"] <= sum(len(state["next"].get("state_ids", ())) > 1 for state in states)
    assert count["Map"] <= sum("iter_key" in state["next"] for state in states)
    assert count["Approval"] <= gates
    assert count["Fail"] <= min(1, gates)
    assert count["Succeed"] <= 1
    made = Counter(
        (plain(name), "Task" if state["Type"] == "Pass" else state["Type"])
        for name, state in machines(document)
    )
    assert set(made.values()) == {1}


def example(schema: dict[str, Any]) -> Any:
    """A value that fits a schema of the documents."""
    if "enum" in schema:
        return schema["enum"][0]
    made: dict[str, Any] = {
        "string": "text",
        "number": 1,
        "integer": 1,
        "boolean": False,
        "array": [example(schema["items"])] * 2 if "items" in schema else [1, 2],
        "object": {key: example(each) for key, each in schema.get("properties", {}).items()},
    }
    return made[schema.get("type", "string")]


def nested(pointer: str, value: Any) -> Any:
    """What has a value at a JSON Pointer."""
    for step in reversed(pointer.strip("/").split("/")):
        value = [value] if step == "0" else {step: value}
    return value


def agents(document: Document) -> dict[str, Any]:
    """Actors that give what every iteration, condition and schema of the document asks for."""
    text = str(document.source.text)
    keys = {key.strip("\"'") for key in re.findall(r"iter_key:\s*(\S+)", text)}
    flags = set(re.findall(r"expression:\s*[\"']?(\w+) == ", text))
    answer: dict[str, Any] = dict.fromkeys(flags, False)
    for key in keys - {"."}:
        answer |= nested(key, [1, 2])
    tools = document.value["Metadata"]["CodeMie"]["config"].get("tools", [])
    pointers = {tool["id"]: tool.get("tool_result_json_pointer") for tool in tools}
    calls: dict[str, int] = {}

    def agent(name: str) -> Any:
        def answering(parameters: Any, call: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            given = answer if calls[name] <= 3 else {**answer, **dict.fromkeys(flags, True)}
            schema = parameters.get("output_schema") if "history" in parameters else None
            if isinstance(schema, dict):
                given = {**given, **example(schema)}
            return nested(pointers[name], given) if pointers.get(name) else given

        return answering

    names = {state["Agent"] for _, state in machines(document) if state["Type"] == "Task"}
    return {name: agent(name) for name in names}


INPUTS = {
    "tpl_github_pr_transform.yaml": {"pull_request": {"title": "t", "user": {"login": "ann"}}}
}
"""Inputs of workflows whose templates read members of the context."""
ENDLESS = {"test_config_yaml_validation_01.yaml"}
"""A state that leads to itself."""


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_what_is_accepted_runs_to_an_end(file: str) -> None:
    """With actors that answer what the document expects, everything ends."""
    document = asl.load(FOLDER / file)
    result = asl.run(
        document,
        INPUTS.get(file, {}),
        agents=agents(document),
        approvals=lambda request: "continue",
        clock="virtual",
    )
    if file in ENDLESS:
        assert (result.status, result.error) == ("FAILED", "CM.RecursionLimit")
        assert len(result.visited) == 50
    else:
        assert result.status == "SUCCEEDED", (result.error, result.cause)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_a_workflow_comes_back(file: str) -> None:
    """To a document and back, as a text, nothing changes and nothing is lost."""
    document = asl.load(FOLDER / file)
    assert document.composition is not None
    there = asl.convert(document, "asl")
    back = asl.convert(there.text, "codemie")
    assert there.faithful
    assert len(back.losses) == 0
    again = asl.load(back.text, dialect="codemie")
    assert again.composition is not None
    assert again.composition.written == document.composition.written
    assert again.value == document.value


AGENT_DOCUMENTS = sorted((FOLDER.parent / "agent-asl").glob("*.json"))


@pytest.mark.parametrize("file", AGENT_DOCUMENTS, ids=lambda file: file.stem)
def test_an_agent_document_becomes_a_workflow(file: Path) -> None:
    """Whatever it holds, the workflow can be read, and every state is in it or in the report."""
    document = asl.load(file)
    conversion = asl.convert(document, "codemie")
    assert all(each.line and each.column for each in conversion.losses)
    workflow = asl.load(conversion.text, dialect="codemie")
    assert asl.check(workflow).ok
    again = asl.convert(asl.convert(workflow, "asl").text, "codemie")
    assert again.faithful
    assert again.document == conversion.document
    ids = {state["id"] for state in conversion.document["states"]}
    places = (place for each in conversion.losses for place in (each, *each.places))
    reported = " ".join(place.pointer for place in places)
    for name, state in machines(document):
        kept = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") in ids
        plain = state["Type"] in ("Succeed", "Pass", "Choice")  # folded into the state in front
        assert kept or plain or f"/States/{name}" in reported or "/Catch" in reported, name


@pytest.mark.parametrize("case", sampled(CASES, 3), ids=lambda case: case["id"])
def test_a_workflow_behaves_as_recorded(case: dict[str, Any]) -> None:
    """States, inputs, context and result are those of the case."""
    expect = dict(case["expect"])
    try:
        document = asl.load(case["workflow"], dialect="codemie")
    except asl.InvalidDocument as refusal:
        assert expect["status"] == "rejected", str(refusal)
        assert expect["load_error"] in {each.code for each in refusal.report.errors}
        return
    seen = run(document, case)
    if expect["status"] == "failed":
        seen.pop("context", None)
    assert {key: seen.get(key) for key in expect} == expect
