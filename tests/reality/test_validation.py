"""Recorded answers of AWS to documents: verdict, diagnostic code, place and words.

The recordings lie beside the repository; without them these tests are skipped.
"""

import json
from typing import Any

import pytest

from asl import variable_references
from asl.checks import check
from asl.checks.aws import unreadable
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import read
from asl.core.profile import AWS
from asl.core.render.formats import render_aws

from .aws import everything, needs_recordings

pytestmark = needs_recordings

Json = Any


def recorded() -> list[Any]:
    """Return the documents that AWS itself judged."""
    doubtful = {"third-party", "unverified", "api-validation"}
    return [
        pytest.param(case, id=case["id"].rpartition("::")[2])
        for case in everything()
        if case["kind"] == "validate" and not doubtful & {*case["tags"]}
    ]


def judged(case: Json) -> Report:
    text = case.get("definition_text") or json.dumps(case["definition"])
    try:
        document = read(text, format="json")
    except InvalidDocument as invalid:
        return unreadable(invalid.report)
    return check(document, AWS, express=case.get("type") == "EXPRESS")


@pytest.mark.parametrize("case", recorded())
def test_a_recorded_verdict_is_ours(case: Json) -> None:
    """A document is accepted or refused as it was; what AWS reported we report in its words."""
    report, expected = judged(case), case["expected"]
    assert report.ok is expected["valid"], report.errors
    answer = json.loads(render_aws(report))
    if "diagnostics" in expected:
        assert answer["diagnostics"] == expected["diagnostics"]
    if "message" in expected:
        # The message of a refused creation names all of them in one text.
        errors = [each for each in answer["diagnostics"] if each["severity"] == "ERROR"]
        assert ", ".join(map(created, errors)) == expected["message"]
    if "variable_references" in expected:
        assert variable_references(case["definition"]) == expected["variable_references"]


def created(diagnostic: Json) -> str:
    return f"{diagnostic['code']}: {diagnostic['message']} at {diagnostic['location']}"
