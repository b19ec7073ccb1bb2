"""Laws for the cases that ship with the library."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from asl.conformance import Case, load_suite, run_suite
from asl.conformance.case import find_suites
from asl.core.document import read_value
from asl.core.resources import folder

FOLDER = folder("conformance")
SCHEMA = json.loads((FOLDER / "case.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """The bundled cases; unreadable ones fail the tests, not their collection."""
    return load_suite()


def test_the_case_schema_is_a_schema() -> None:
    """case.schema.json is valid JSON Schema 2020-12."""
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", find_suites(FOLDER), ids=lambda file: file.stem)
def test_a_suite_has_the_form_of_the_schema(file: Path) -> None:
    """Every bundled file is valid against the published schema."""
    errors = Draft202012Validator(SCHEMA).iter_errors(read_value(file).value)
    assert [error.message for error in errors] == []


def test_ids_are_unique(cases: list[Case]) -> None:
    """No two cases share an id, whatever their files."""
    assert [id for id, count in Counter(case.id for case in cases).items() if count > 1] == []


def test_every_case_cites_a_section(cases: list[Case]) -> None:
    """Each case names sections of a specification or an entry of its register."""
    section, rule = r"\d+(\.\d+)*", r"C-\d+|[VR]-[A-Z]+-\d+|READ-\d+|EXEC-\d+"
    cites = re.compile(rf"((codemie|contenox|flujo) )?{section}(, {section})*|{rule}")
    assert [case.id for case in cases if not cites.fullmatch(case.spec)] == []


def test_every_case_states_a_fact(cases: list[Case]) -> None:
    """Each case has a title of its own that says more than a word."""
    assert [case.id for case in cases if len(case.title.split()) < 3] == []


def test_every_suite_has_a_title(cases: list[Case]) -> None:
    """Reports group the bundled cases by suite."""
    assert all(case.suite for case in cases)


def test_our_interpreter_passes(cases: list[Case]) -> None:
    """No bundled case fails or is skipped on this interpreter."""
    report = run_suite(cases)
    assert [(each.case.id, each.reasons) for each in (*report.failed, *report.skipped)] == []
