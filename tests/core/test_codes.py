"""The catalogue of rules."""

import re

import pytest

from asl.checks.aws import STRICTER
from asl.core.codes import Code, all_codes, lookup
from asl.core.diagnostics import Severity

AREAS = {
    *("TOP", "ST", "VAR", "TXT", "INTR", "RETRY", "CATCH", "TASK", "CHOICE", "MAP", "PAR", "PASS"),
    *("WAIT", "SUC", "FAIL", "APR", "DEB", "CKPT", "INC", "WF", "DUR", "RSN", "GRD", "AUD"),
    *("CACHE", "GEN", "MEM", "CTX", "TOOLS", "FB", "BUD", "STR", "PRG", "IMP", "TPL", "MOD"),
    *("OVR", "CKPG", "JSONATA", "EVT", "RT"),
}


@pytest.mark.parametrize("code", all_codes(), ids=lambda code: code.id)
def test_every_rule_is_explained(code: Code) -> None:
    """Each has a severity, a short title and some sentences."""
    assert re.fullmatch(
        r"(V-[A-Z]+|READ|AGENTS|POLICY|EXEC)-\d\d|(CM|CX|FL|L)-[A-Z]+(-[A-Z]+)*", code.id
    )
    assert Severity(code.severity)
    assert 0 < len(code.title) <= 60
    assert not code.title.endswith(".")
    assert code.explain == code.explain.strip()
    assert len(code.explain) > 60
    assert "  \n" not in code.explain


def test_every_area_is_numbered_without_gaps() -> None:
    """Ids are never reused and none is forgotten."""
    numbers: dict[str, list[int]] = {}
    for code in all_codes():
        if code.id.startswith(("CM-", "CX-", "FL-", "L-")):
            continue  # those of dialects are words
        area, _, number = code.id.rpartition("-")
        numbers.setdefault(area, []).append(int(number))
    assert set(numbers) == {f"V-{area}" for area in AREAS} | {"READ", "AGENTS", "POLICY", "EXEC"}
    numbers.pop("EXEC")  # what is executed by now has no id any more
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_the_catalogue_tells_what_the_aws_profile_makes_an_error() -> None:
    """Whatever is stricter there says so where it is explained."""
    raised = {code.id for code in all_codes() if "error" in (code.severity, code.aws_severity)}
    assert raised >= STRICTER
    assert {code.aws_severity for code in all_codes()} == {None, "error"}


def test_an_unknown_rule_is_a_key_error() -> None:
    """There is no guessing."""
    with pytest.raises(KeyError):
        lookup("V-NOPE-01")
