"""Reading cases: defaults, documents, and faults with their places."""

from pathlib import Path
from textwrap import dedent

import pytest

from asl.conformance import InvalidSuite, load_suite
from asl.core.diagnostics import InvalidDocument
from asl.core.errors import DocumentNotFound

pytestmark = pytest.mark.quick

PASS = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'


def written(folder: Path, text: str, name: str = "some.asl-test.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text), encoding="utf-8")
    return file


def fault(path: Path) -> str:
    with pytest.raises(InvalidSuite) as caught:
        load_suite(path)
    return str(caught.value)


def test_a_file_may_hold_a_single_case(tmp_path: Path) -> None:
    """Without `cases` the file itself is the case, with the defaults of the format."""
    file = written(tmp_path, f"{{id: one, document: {PASS}, expect: {{status: SUCCEEDED}}}}")
    (case,) = load_suite(file)
    assert (case.id, case.input, case.profile, case.dialect) == ("one", {}, "default", "asl")
    assert (case.file, case.line) == (str(file), 1)


def test_the_dialect_of_a_foreign_document_is_detected(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("steps:\n  - {kind: step, name: a}\n", encoding="utf-8")
    for document in ("document_file: flow.yaml", "document: {steps: [{kind: step, name: a}]}"):
        (case,) = load_suite(written(tmp_path, f"{{id: one, {document}, expect: {{valid: true}}}}"))
        assert case.dialect == "flujo"


def test_json_is_a_suite_format_too(tmp_path: Path) -> None:
    """A suite may be written in JSON."""
    text = f'{{"id": "one", "document": {PASS}, "expect": {{"output": {{}}}}}}'
    assert load_suite(written(tmp_path, text, "one.json"))[0].id == "one"


def test_a_suite_gives_defaults_that_a_case_replaces(tmp_path: Path) -> None:
    """What a case says itself wins as a whole, whatever kind of document the suite gives."""
    file = written(
        tmp_path,
        f"""
        suite: Defaults
        spec: "1"
        document: {PASS}
        agents: {{a: {{return: 1}}}}
        cases:
          - {{id: one, expect: {{valid: true}}}}
          - {{id: two, spec: "2", agents: {{b: {{return: 2}}}}, document_text: x,
             expect: {{valid: false}}}}
        """,
    )
    one, two = load_suite(file)
    assert (one.spec, list(one.agents), one.suite) == ("1", ["a"], "Defaults")
    assert (two.spec, list(two.agents), two.document) == ("2", ["b"], None)
    assert two.document_text == "x"
    assert (one.line, two.line) == (7, 8)


def test_a_document_file_is_relative_to_the_case(tmp_path: Path) -> None:
    """The document of `document_file` is read as text."""
    written(tmp_path, PASS, "flows/a.asl.json")
    file = written(
        tmp_path, "{id: one, document_file: a.asl.json, expect: {valid: true}}", "flows/a.yaml"
    )
    assert load_suite(file)[0].document_text == PASS


@pytest.mark.parametrize(
    ("expect", "facts"),
    [
        ("{valid: true}", ["valid"]),
        ("{diagnostics: []}", ["diagnostics"]),
        ("{diagnostics: [], diagnostics_exact: true}", ["diagnostics"]),
        ("{output: 1}", ["output", "status"]),
        ("{cost: 1, events: [], events_exact: true}", ["events", "status", "usage"]),
    ],
)
def test_only_what_is_judged_is_observed(tmp_path: Path, expect: str, facts: list[str]) -> None:
    """A request lists the facts that the case is about."""
    case = f"{{id: one, document: {PASS}, expect: {expect}}}"
    assert load_suite(written(tmp_path, case))[0].observe == facts


@pytest.mark.parametrize(
    ("case", "line", "text"),
    [
        ("document: {}", 3, "the field 'expect' is missing"),
        ("document: {}\n    expect: {}", 5, "/cases/0/expect"),
        ("document: {}\n    expect: {status: DONE}", 5, "'DONE' is not one of"),
        ("document: {}\n    expext: {}", 3, "the field 'expect' is missing"),
        (
            "document: {}\n    expext: {}\n    expect: {valid: true}",
            5,
            "there is no field 'expext' here (did you mean 'expect'?)",
        ),
        ("expect: {valid: true}", 3, "exactly one of document, document_file, document_text"),
        ("document: {}\n    document_text: ''\n    expect: {valid: true}", 3, "exactly one of"),
        (
            "document: {}\n    answers: {A: {return: 1, hang: true}}\n    expect: {valid: true}",
            5,
            "a script has exactly one",
        ),
        ("document: {}\n    clock: noon\n    expect: {valid: true}", 3, "clock: "),
        (
            "document: {}\n    mocks: {A: {retrun: 1}}\n    expect: {valid: true}",
            5,
            "a script has exactly one",
        ),
        ("document_file: no.json\n    expect: {valid: true}", 3, "document_file: cannot read"),
        ('document_file: "\\0"\n    expect: {valid: true}', 3, "document_file: cannot read"),
        ("document: {}\n    expect: {output: 1, events_exact: true}", 5, "events"),
        ("document: {}\n    expect: {valid: true, diagnostics_exact: true}", 5, "diagnostics"),
    ],
)
def test_a_fault_says_file_and_line(tmp_path: Path, case: str, line: int, text: str) -> None:
    """What is wrong with a case is said with the place where it stands."""
    file = tmp_path / "bad.asl-test.yaml"
    file.write_text(f"suite: Bad\ncases:\n  - id: one\n    {case}\n", encoding="utf-8")
    message = fault(file)
    assert message.startswith(f"{file}:{line}:")
    assert text in message


def test_two_cases_with_one_id_are_refused(tmp_path: Path) -> None:
    """The message names both places."""
    for name in ("a", "b"):
        text = f"{{id: one, document: {PASS}, expect: {{valid: true}}}}"
        written(tmp_path, text, f"{name}.asl-test.yaml")
    message = fault(tmp_path)
    assert "a.asl-test.yaml:1" in message
    assert "b.asl-test.yaml:1" in message


def test_text_that_is_no_yaml_is_refused_with_its_place(tmp_path: Path) -> None:
    """A suite that cannot be read reports as a document does."""
    with pytest.raises(InvalidDocument, match=r"bad\.yaml:1:\d+: error READ-01"):
        load_suite(written(tmp_path, "{", "bad.yaml"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """A path without a file is a misuse."""
    with pytest.raises(DocumentNotFound):
        load_suite(tmp_path / "none.yaml")


def test_a_folder_gives_its_suites_by_name(tmp_path: Path) -> None:
    """Where there are *.asl-test files only these are suites; documents and schemas never are."""
    text = "{{id: {}, document: {}, expect: {{valid: true}}}}"
    written(tmp_path, PASS, "x.asl.json")
    written(tmp_path, "{}", "case.schema.json")
    written(tmp_path, text.format("plain", PASS), "deep/plain.yaml")
    assert [case.id for case in load_suite(tmp_path)] == ["plain"]
    written(tmp_path, text.format("own", PASS), "deep/own.asl-test.yml")
    assert [case.id for case in load_suite(tmp_path)] == ["own"]


def test_a_folder_without_suites_is_refused(tmp_path: Path) -> None:
    """An empty run would look like success."""
    assert "no YAML or JSON file" in fault(tmp_path)
