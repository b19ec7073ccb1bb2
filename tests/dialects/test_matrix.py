"""The matrix of conversions: what the page says of every pair is what happens."""

from typing import Any

import pytest

import asl
from asl.core.codes import all_codes
from tests.dialects.behaviour import scripted
from tests.dialects.features import FEATURES
from tests.dialects.law import convert_and_back, each_loss, violation
from tests.matrix_page import PAGE, WRITTEN, converted, matrix_page

INPUT = {"kind": "a", "n": 7, "list": ["p", "q"]}
ANSWERS: list[Any] = [
    "yes",
    "no",
    7,
    {"kind": "a", "n": 7, "list": ["x", "y"]},
    {"kind": "b", "n": 1},
]

CELLS = [
    (source, feature, target)
    for source in FEATURES
    for feature in FEATURES[source]
    for target in WRITTEN
    if source != target
]

LEFT = {
    ("asl", "side by side", "flujo"),
    ("amazon", "side by side", "flujo"),
    ("flujo", "a text is put together", "amazon"),
}
"""Cells that still violate the law; it only shrinks."""


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.matrix_page` rewrites it."""
    assert PAGE.read_text(encoding="utf-8") == matrix_page()


@pytest.mark.parametrize(("source", "feature", "target"), CELLS)
def test_conversion_changes_only_what_its_report_names(
    source: str, feature: str, target: str
) -> None:
    """There, and back again."""
    ways = convert_and_back(asl.load(FEATURES[source][feature], dialect=source), target, source)
    scripts = [scripted(seed, ANSWERS) for seed in range(3)]
    if (source, feature, target) not in LEFT:
        assert violation(ways, INPUT, scripts) is None, ways[0].conversion.text


@pytest.mark.parametrize("source", [each for each in FEATURES if each != "amazon"])
def test_every_error_of_aws_in_a_written_document_is_a_loss(source: str) -> None:
    for feature in FEATURES[source]:
        conversion = converted(source, feature, "amazon")
        reported = [each.message for each in each_loss(conversion.losses) if each.code == "L-AWS"]
        for refused in asl.check(conversion.document, profile="aws").errors:
            assert any(refused.message in each for each in reported), feature


def test_every_loss_has_a_hint() -> None:
    """Of its own, or for all of its code."""
    for source, feature, target in CELLS:
        for loss in converted(source, feature, target).losses:
            assert loss.hint, loss


def test_codes_of_losses_have_hints() -> None:
    assert {each.id for each in all_codes() if each.changes and not each.hint} == set()
