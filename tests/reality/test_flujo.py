"""Flujo blueprints as they are published, and how their engines behave.

The documents lie beside the repository; without them these tests are skipped.
"""

import re
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.core.source import DEFAULT_LIMITS
from asl.core.yaml_schema import CORE, PLATFORM
from asl.core.yaml_text import loads
from tests.examples import sampled
from tests.reality.flujo import agents_of, run

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "flujo"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != "cases.yaml")
REFUSED = {
    "p-bad-uses.yaml": "FL-USES",
    "p-loop-hitl.yaml": "FL-NAME",  # a question without a name
    "p-tree-search.yaml": "FL-TREE",
    "p-unknown-kind.yaml": "FL-KIND",
    "sm-seed-page-example.yaml": "FL-SHAPE",  # a placeholder stands for steps
}
ENDLESS = ("p-ex-template-loop.yaml", "p-loop-state.yaml", "p-map-loop-conditional.yaml")
"""Their loops have no end but the last round."""
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
    listed = re.findall(r"^\| ((?:sm|p)-\S+\.yaml) \|", (FOLDER / "INDEX.md").read_text(), re.M)
    assert sorted(listed) == FILES
    assert len(FILES) == 53
    assert len(CASES) == 48


@pytest.mark.parametrize("file", sampled(REFUSED, 3))
def test_what_is_wrong_is_refused(file: str) -> None:
    """With a code and a place."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.load(FOLDER / file)
    assert {each.code for each in refusal.value.report.errors} == {REFUSED[file]}
    assert all(each.line and each.column for each in refusal.value.report)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_the_others_are_accepted_and_detected(file: str) -> None:
    """Nobody has to say which language a blueprint is written in."""
    document = asl.load(FOLDER / file)
    report = asl.check(document)
    assert document.dialect == "flujo"
    assert report.ok, str(report.errors)
    assert all(each.line and each.column for each in report)
    assert {each.code.split("-")[0] for each in report} <= {"FL"}, str(list(report))


def answer_for(name: str) -> Any:
    """Something that an agent may have said: what it decides, where it does."""
    if "predicate_is_valid" in name:
        return "valid"
    if "exit_when" in name:
        return True
    if "router" in name:
        return ["only"]
    if "async_condition" in name:
        return "branch_a"
    if "clarification" in name:
        return {"action": "finish"}
    if name == "processor":
        return {"status": "done", "result": "fine"}
    steps = [{"step_name": "one"}]
    return {"yaml_text": "x", "prepared_steps_for_mapping": steps, "decomposition": {"steps": []}}


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_what_is_accepted_runs_to_an_end(file: str) -> None:
    """With agents that answer what the blueprint expects, everything ends."""
    document = asl.load(FOLDER / file)
    context = {"items": [1, 2], "scratchpad": {"cohort_definition": "adults"}}
    given: Any = "Go"
    if file == "p-condition-expression.yaml":
        given = {"kind": "code"}
    elif file == "p-bool-branches.yaml":
        given = True
    result = asl.run(
        document,
        {"input": given, "context": context},
        agents={name: lambda _, name=name: answer_for(name) for name in agents_of(document.value)},
        approvals=lambda request: "yes",
        clock="virtual",
    )
    if file in ENDLESS:
        assert (result.status, result.error) == ("FAILED", "Flujo.StepFailed")
    else:
        assert result.status == "SUCCEEDED", (result.error, result.cause)


@pytest.mark.parametrize("file", sampled(ACCEPTED, 3))
def test_what_was_read_is_written_as_it_was(file: str) -> None:
    """Reading and writing give the blueprint back, with all its keys."""
    document = asl.load(FOLDER / file)
    conversion = asl.convert(document, to="flujo")
    text = (FOLDER / file).read_text(encoding="utf-8")
    value, _, faults = loads(text, DEFAULT_LIMITS, PLATFORM)
    assert not faults
    assert conversion.document == value
    assert asl.load(conversion.text).value["States"] == document.value["States"]


@pytest.mark.parametrize("case", sampled(CASES, 3), ids=lambda case: case["id"])
def test_a_blueprint_behaves_as_recorded(case: dict[str, Any]) -> None:
    """States, calls, context and output are those of the case."""
    expect = dict(case["expect"])
    try:
        document = asl.load(
            case["blueprint"].encode(), dialect="flujo", reading=case.get("options", {})
        )
    except asl.InvalidDocument as refusal:
        assert expect["status"] == "INVALID", str(refusal)
        return
    assert asl.check(document).ok
    seen = run(document, case)
    part = expect.pop("error_contains", None)
    if part is not None:
        assert part in seen["failure"]
    for key, value in expect.pop("context", {}).items():
        assert seen["context"][key] == value
    assert {key: seen[key] for key in expect} == expect
