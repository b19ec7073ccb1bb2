"""Documents of others: what AWS accepted and refused, and published agent documents.

The collection lies beside the repository; without it these tests are skipped.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asl.checks import check
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import read
from asl.core.profile import AWS, DEFAULT, LENIENT, Profile

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
RECORDED = CORPUS / "aws" / "open.jsonl"
AGENT_DOCUMENTS = CORPUS / "agent-asl"

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="collected documents are not here")

INVALID = {"spec-01-introduction.b01.asl.json", "spec-01-introduction.b08.asl.json"}
"""Published with transitions that lead nowhere."""

SPECIFIED_OTHERWISE = {
    # AWS notices repeated column names when it reads the file; here they are refused at once.
    "test_map_item_reader_csv_headers_decl_duplicate_headers": {"V-MAP-09"},
}
"""Machines that ran on AWS and that the default profile refuses, with the rules."""

LINTER_OPINIONS = 4
"""Test documents of two linters on which we disagree; docs/notes/linter-opinions.md says why."""


def recorded(kind: str) -> Iterator[Any]:
    if RECORDED.exists():
        for line in RECORDED.read_bytes().splitlines():
            case = json.loads(line)
            if case["kind"] == kind and not {"unverified", "api-validation"} & set(case["tags"]):
                yield case


def judged(case: Any, profile: Profile) -> Report:
    text = case.get("definition_text") or json.dumps(case["definition"])
    try:
        document = read(text, format="json")
    except InvalidDocument as invalid:
        return invalid.report
    return check(document, profile, express=case.get("type") == "EXPRESS")


def test_aws_and_we_accept_the_same_documents() -> None:
    """Every document that AWS was asked to create is accepted or refused as it was there."""
    cases = [case for case in recorded("validate") if "third-party" not in case["tags"]]
    wrong = {
        case["id"]: [str(each) for each in report.errors]
        for case in cases
        for report in [judged(case, AWS)]
        if report.ok is not case["expected"]["valid"]
    }
    assert wrong == {}
    assert len(cases) >= 30


@pytest.mark.parametrize("profile", [AWS, DEFAULT, LENIENT], ids=lambda profile: profile.name)
def test_what_ran_on_aws_has_no_errors(profile: Profile) -> None:
    """A machine that AWS executed is a valid document, but for what the language forbids."""
    refused = {}
    for case in recorded("execute"):
        rules = {each.code for each in judged(case, profile).errors}
        if rules:
            refused[case["id"].rpartition("::")[2]] = rules
    assert refused == ({} if profile.aws else SPECIFIED_OTHERWISE)


def test_linters_mostly_agree() -> None:
    """The test documents of two linters, where only known opinions differ."""
    cases = [case for case in recorded("validate") if "third-party" in case["tags"]]
    disagreements = [
        case["id"] for case in cases if judged(case, AWS).ok is not case["expected"]["valid"]
    ]
    assert len(disagreements) == LINTER_OPINIONS, disagreements


@pytest.mark.parametrize("path", sorted(AGENT_DOCUMENTS.glob("*.json")), ids=lambda path: path.name)
def test_published_agent_documents_are_valid(path: Path) -> None:
    """All but the two whose transitions lead nowhere, and those whose imports are not here."""
    document = read(path)
    rules = {each.code for each in check(document).errors}
    missing = {"V-IMP-01"} if "Imports" in document.value else set()
    assert rules == ({"V-ST-03"} if path.name in INVALID else missing)
