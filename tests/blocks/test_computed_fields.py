"""A field that may be computed has the same effect as one that is written (Specification 3.9)."""

import json
from typing import Any

import pytest

from asl.conformance.case import Case
from asl.conformance.runner import run_case
from tests.blocks.test_effects import FIELDS, HERE, SANDBOX, WHERE, Field, Way, at, changed, vars_of

Json = Any
WRITTEN = {
    "Tools": ("Validation", SANDBOX),
}
"""What is written out by block: the fields that are read before anything runs, and all in them."""


def scalar(case: Case, document: Way, place: Way) -> bool:
    """Whether a field is one value, and written as such: no text into which values are inserted."""
    value = at(vars_of(case), (*document, *place))
    named = isinstance(place[-1], str) and not place[-1].endswith(".$")
    inserts = isinstance(value, str) and ("{{" in value or "{%" in value)
    return named and isinstance(value, str | bool | int | float) and not inserts


def jsonata(case: Case, document: Way) -> bool:
    return '"QueryLanguage": "JSONata"' in json.dumps(at(vars_of(case), document))


def computed(case: Case, document: Way, place: Way) -> Case:
    """Return a case in which a field is computed and comes to what it was."""
    value = at(vars_of(case), (*document, *place))
    if jsonata(case, document):
        text = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
        return changed(case, document, place, f"{{% $parse('{text}') %}}")
    text = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
    without = changed(case, document, place)
    return changed(
        without, document, (*place[:-1], f"{place[-1]}.$"), f"States.StringToJson('{text}')"
    )


PLACES = {
    field: found
    for field in sorted(FIELDS)
    if not set(WRITTEN.get(field[1], ())) & set(field[2].split("/"))
    and (found := [each for each in WHERE[field] if scalar(*each)])
}


@pytest.mark.parametrize("field", PLACES, ids="-".join)
def test_a_computed_field_is_as_good_as_a_written_one(field: Field) -> None:
    """A case in which it is computed comes to what it expects."""
    for case, document, place in PLACES[field][:3]:
        verdict = run_case(computed(case, document, place), HERE)
        assert verdict.outcome == "passed", (case.id, place, verdict.reasons)
