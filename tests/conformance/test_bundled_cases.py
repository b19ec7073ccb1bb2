"""Laws for the cases that ship with the library.

That they have the form of the schema is seen to where they are read.
"""

import json
import re
from collections import Counter

import pytest
from jsonschema import Draft202012Validator

from asl.conformance import Case, run_suite
from asl.core.environment import data_folder
from tests.bundled import bundled as read_bundled

FOLDER = data_folder("conformance")
SCHEMA = json.loads((FOLDER / "case.schema.json").read_text(encoding="utf-8"))


def test_the_case_schema_is_a_schema() -> None:
    """case.schema.json is valid JSON Schema 2020-12."""
    Draft202012Validator.check_schema(SCHEMA)


def test_ids_are_unique(bundled: list[Case]) -> None:
    """No two cases share an id, whatever their files."""
    assert [id for id, count in Counter(case.id for case in bundled).items() if count > 1] == []


def test_every_case_cites_a_section(bundled: list[Case]) -> None:
    """Each case names sections of a specification or an entry of its register."""
    section, rule = r"\d+(\.\d+)*", r"C-\d+|[VR]-[A-Z]+-\d+|READ-\d+|EXEC-\d+"
    cites = re.compile(rf"((codemie|contenox|flujo) )?{section}(, {section})*|{rule}")
    assert [case.id for case in bundled if not cites.fullmatch(case.spec)] == []


def test_every_case_states_a_fact(bundled: list[Case]) -> None:
    """Each case has a title of its own that says more than a word."""
    assert [case.id for case in bundled if len(case.title.split()) < 3] == []


def test_every_suite_has_a_title(bundled: list[Case]) -> None:
    """Reports group the bundled cases by suite."""
    assert all(case.suite for case in bundled)


@pytest.mark.quick
def test_our_interpreter_passes_a_sample() -> None:
    """Every second case of every eighth file holds."""
    report = run_suite(read_bundled(each=8)[::2])
    assert [(each.case.id, each.reasons) for each in (*report.failed, *report.skipped)] == []


def test_our_interpreter_passes(bundled: list[Case]) -> None:
    """No bundled case fails or is skipped on this interpreter."""
    report = run_suite(bundled)
    assert [(each.case.id, each.reasons) for each in (*report.failed, *report.skipped)] == []
