"""The law of conversions (`tests.dialects.law`), for documents of every language in every other.

`python -m tests.dialects.test_law 12 3` lists what violates it, for one document of so many and so
many random ones of each language.
"""

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

import asl
from asl.core.codes import all_codes
from asl.dialects import load
from tests.dialects import law
from tests.dialects.behaviour import Run, observe, scripted
from tests.dialects.corpora import PRESENT
from tests.dialects.generated import GENERATED
from tests.dialects.law import (
    Difference,
    Places,
    allows,
    convert_and_back,
    unreported,
    violation,
    way,
)
from tests.dialects.law_cases import SCRIPTS, Case, cases, generated
from tests.dialects.payloads import same_payload

QUICK, FULL = (12, 5), (2, 40)
"""One document of so many of the corpora and the cases, and the number of random ones."""
PAIRS = [(one, other) for one in GENERATED for other in GENERATED if one != other]
LEFT: dict[tuple[str, str], int] = {}
"""Number of documents of the quick sample that violate the law; these numbers only fall."""
LEFT_FULL: dict[tuple[str, str], int] = {}
"""The same for the large sample."""


class Violation(NamedTuple):
    """A document that violates the law."""

    name: str
    language: str
    difference: Difference | str


def violations(source: str, target: str, each: int, count: int) -> Iterator[Violation]:
    """Yield a violation for each document that has any, on the way there or back."""
    for case in cases(source, each, count):
        try:
            found = _violation(case, target)
        except asl.InvalidDocument as refusal:
            yield Violation(case.name, target, str(refusal))
        except asl.AslError:
            continue  # it needs what only its own case has
        else:
            if found is not None:
                yield Violation(case.name, *found)


def _violation(case: Case, target: str) -> tuple[str, Difference] | None:
    is_text = "codemie" in (case.document.dialect, target) and not isinstance(case.input, dict)
    ways = convert_and_back(case.document, target, reading=case.reading)
    return violation(ways, {"text": case.input} if is_text else case.input, SCRIPTS)


# --------------------------------------------------------------------------------------------
# Conversions


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion_changes_only_what_its_report_names(source: str, target: str) -> None:
    """Of a sample, the same one at all times."""
    found = [*violations(source, target, *QUICK)]
    assert len(found) <= LEFT.get((source, target), 0), found


@pytest.mark.full
@pytest.mark.skipif(not PRESENT, reason="the documents are not at hand")
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_conversion_of_more_documents_changes_only_what_its_report_names(
    source: str, target: str
) -> None:
    """Of a large sample."""
    found = [*violations(source, target, *FULL)]
    assert len(found) <= LEFT_FULL.get((source, target), 0), found


@pytest.mark.parametrize("source", [*GENERATED])
def test_most_random_documents_call_agents_and_miss_no_value(source: str) -> None:
    assert sum(generated(source, seed).works() for seed in range(20)) > 13


@pytest.mark.parametrize("source", [each for each in GENERATED if each != "amazon"])
def test_every_error_of_aws_in_a_written_document_is_a_loss(source: str) -> None:
    for case in cases(source, 12, 5):
        try:
            conversion = asl.convert(case.document, "amazon")
        except asl.AslError:
            continue  # a module or a template
        places = [
            place for each in conversion.losses if each.code == "L-AWS" for place in each.all_places
        ]
        for refused in asl.check(conversion.document, profile="aws").errors:
            assert any(refused.message in each.message for each in places), case.name


# --------------------------------------------------------------------------------------------
# The law itself

DOCUMENT: dict[str, Any] = {
    "StartAt": "Draft",
    "States": {
        "Draft": {
            "Type": "Task",
            "Agent": "Writer",
            "Parameters": {"task": "Write", "about.$": "$.kind"},
            "ResultPath": "$.draft",
            "Retry": [{"ErrorEquals": ["Agent.Down"], "MaxAttempts": 2}],
            "Next": "Which",
        },
        "Which": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.draft", "StringEquals": "yes", "Next": "Publish"}],
            "Default": "Reject",
        },
        "Publish": {"Type": "Task", "Agent": "Publisher", "ResultPath": "$.link", "End": True},
        "Reject": {"Type": "Fail", "Error": "Rejected"},
    },
}
Spoil = Callable[[dict[str, Any]], None]


def _swap_targets(states: dict[str, Any]) -> None:
    states["Which"]["Choices"][0]["Next"] = "Reject"
    states["Which"]["Default"] = "Publish"


def _skip_state(states: dict[str, Any]) -> None:
    states["Publish"] = {"Type": "Succeed"}


def _leave_out_parameter(states: dict[str, Any]) -> None:
    del states["Draft"]["Parameters"]["about.$"]


def _move_result(states: dict[str, Any]) -> None:
    states["Publish"]["ResultPath"] = "$.url"


def _rename_error(states: dict[str, Any]) -> None:
    states["Reject"]["Error"] = "Refused"


def _add_pause(states: dict[str, Any]) -> None:
    states["Draft"]["Next"] = "Pause"
    states["Pause"] = {"Type": "Wait", "Seconds": 5, "Next": "Which"}


def _leave_out_retrier(states: dict[str, Any]) -> None:
    del states["Draft"]["Retry"]


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (_swap_targets, "status"),
        (_skip_state, "path"),
        (_leave_out_parameter, "payload"),
        (_move_result, "output"),
        (_rename_error, "error"),
        (_add_pause, "time"),
        (_leave_out_retrier, "path"),
    ],
)
def test_broken_conversion_violates_the_law(spoil: Spoil, kind: str) -> None:
    """Each is the conversion to Amazon with one defect that the report does not name."""
    converted = way(asl.load(DOCUMENT), "amazon")
    inputs = {"kind": "a"}
    assert violation([converted], inputs, SCRIPTS) is None
    value = deepcopy(converted.conversion.document)
    spoil(value["States"])
    broken = converted._replace(there=load(value, dialect="amazon"))
    found = {
        each.kind
        for seed in range(8)
        for script in (scripted(seed, ["yes", "no"], failing=0.3),)
        for each in unreported(
            observe(broken.document, inputs, script), observe(broken.there, inputs, script), broken
        )
    }
    assert kind in found


@pytest.mark.parametrize(("source", "target"), [each for each in PAIRS if each[1] != "asl"])
def test_conversion_without_its_report_violates_the_law(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for conversions to the state language, which lose nothing."""
    monkeypatch.setattr(law, "each_loss", lambda losses: iter(()))
    assert any(violations(source, target, 12, 10))


def test_changes_of_codes_are_in_a_closed_vocabulary() -> None:
    """It has neither path nor status."""
    known = {"payload", "value", "output", "input", "error", "time"}
    for code in all_codes():
        assert known.issuperset(code.changes), code.id


TWO: dict[str, Any] = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Agent": "a", "ResultPath": "$.x", "Next": "B"},
        "B": {"Type": "Task", "Agent": "b", "ResultPath": "$.y", "End": True},
    },
}
ENTERED = {"A": (2, 0), "B": (6, 1)}
SEEN = Run("SUCCEEDED", None, "a", ["a", "b", "a"], [{}] * 3, 0, ENTERED)


def _allows(
    found: Difference,
    pointer: str,
    code: str = "L-FIELD",
    severity: asl.Severity = asl.Severity.ERROR,
    run: Run = SEEN,
) -> bool:
    loss = asl.Diagnostic(code, severity, "", pointer)
    return allows(loss, found, run, run, Places(asl.load(TWO)))


def test_error_allows_nothing_before_its_state_is_entered() -> None:
    assert not _allows(Difference("payload", 0), "/States/B")
    assert _allows(Difference("payload", 1), "/States/B")
    assert _allows(Difference("path", 1), "/States/B")
    without_b = Run("SUCCEEDED", None, "a", ["a"], [{}], 0, {"A": (2, 0)})
    assert not _allows(Difference("status"), "/States/B", run=without_b)


def test_error_in_a_handler_allows_nothing_without_a_failure() -> None:
    assert not _allows(Difference("path", 2), "/States/A/Catch/0")
    failed = Run("SUCCEEDED", None, "a", ["a"] * 3, [{}] * 3, 0, ENTERED, {"failed": [(9, 2)]})
    assert not _allows(Difference("path", 1), "/States/A/Catch/0", run=failed)
    assert _allows(Difference("path", 2), "/States/A/Catch/0", run=failed)


def test_error_in_parameters_allows_another_payload_only() -> None:
    assert _allows(Difference("payload", 1), "/States/B/Parameters/task")
    assert not _allows(Difference("payload", 2), "/States/B/Parameters/task")
    assert not _allows(Difference("output"), "/States/B/Parameters/task")


def test_warning_allows_what_its_code_lists() -> None:
    warning = asl.Severity.WARNING
    assert _allows(Difference("payload", 1), "/States/B", "L-PARAMETERS", warning)
    assert not _allows(Difference("payload", 2), "/States/B", "L-PARAMETERS", warning)
    assert not _allows(Difference("output", key="y"), "/States/B", "L-PARAMETERS", warning)
    assert _allows(Difference("output", key="y"), "/States/B", "L-DEEP", warning)
    assert not _allows(Difference("output", key="x"), "/States/B", "L-DEEP", warning)


@pytest.mark.parametrize("code", [each.id for each in all_codes() if each.changes])
@pytest.mark.parametrize("kind", ["path", "status"])
def test_no_warning_allows_another_path_or_status(code: str, kind: Any) -> None:
    assert not _allows(Difference(kind, 0), "/States/A", code, asl.Severity.WARNING)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("i1", "Work on i1", True),
        ("i1", 'Work on ["i1","i2"]', False),
        ("i1", "Work on i12", False),
        ({"text": "tea", "n": 7}, "text: tea\nn: 7", True),
        ({"text": "tea", "n": 7}, "text: tea", False),
        ({"user": {"name": "Ann"}}, 'user: {"name": "Ann"}', True),
        (["i1", "i2"], "i1, i2", False),
        ({"text": "tea"}, "tea", True),
    ],
)
def test_payloads_are_compared_by_values(one: object, other: object, same: bool) -> None:
    """A text that shows a list does not hold its items."""
    assert same_payload(one, other) is same


if __name__ == "__main__":
    for pair in PAIRS:
        listed = [*violations(*pair, *map(int, sys.argv[1:3]))]
        print(pair, len(listed), *(f"\n  {found}" for found in listed), flush=True)
