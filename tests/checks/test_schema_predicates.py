"""A schema accepts just what the library finds no fault with."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from asl.checks.schema_predicates import compile_schema
from asl.checks.structure import _schema
from asl.conformance import Case
from asl.states import STATE_TYPES

Json = Any
Examples = dict[str, list[Json]]
NAMES = ["asl", *(f"states:{kind}" for kind in sorted(STATE_TYPES))]


def states(value: Json) -> Iterator[Json]:
    """Find machines and states in anything."""
    if isinstance(value, dict):
        if "Type" in value or "States" in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from states(part)


@pytest.fixture(scope="session")
def examples(bundled: list[Case]) -> Examples:
    """The documents and states of this project's cases, good and bad, by their schema."""
    found: Examples = {name: [{}] for name in NAMES}
    for case in bundled:
        documents = [case.document, dict(case.workflows), dict(case.files), [*case.resume]]
        for each in states(documents):
            kind = each.get("Type")
            if kind is None:
                found["asl"].append(each)
            elif type(kind) is str and kind in STATE_TYPES:
                found[f"states:{kind}"].append(each)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_library_agrees_on_the_cases(name: str, examples: Examples) -> None:
    """Documents and states of the cases, good and bad."""
    accepts, library = compile_schema(_schema(name)), Draft202012Validator(_schema(name))
    for each in examples[name]:
        assert accepts(each) == library.is_valid(each), each


ATOMS = st.sampled_from(
    [None, True, False, 0, 1, -1, 99, 100, 101, 0.5, 1.0, 1.5, 1e300, "", "a", "$", "$.a", "$$.b",
     "{% 1 %}", "7d", "50%", "Pass", "Task", "State 1", "é\n", "x" * 200, "100", "never"]
)  # fmt: skip
FIELDS = st.sampled_from(
    ["Type", "Next", "End", "Name", "Variable", "And", "a", "a.$", "", "After"]
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=6,
)


def holders(value: Json) -> list[Json]:
    """Return all objects and arrays in a value, itself included."""
    found, at = [value], 0
    while at < len(found):
        parts = found[at].values() if isinstance(found[at], dict) else found[at]
        found += [part for part in parts if isinstance(part, dict | list)]
        at += 1
    return found


@st.composite
def changed(draw: st.DrawFn, examples: Examples) -> tuple[str, Json]:
    """Draw a schema, and an example for it in which a few things were changed."""
    name = draw(st.sampled_from(NAMES))
    value = copy.deepcopy(draw(st.sampled_from(examples[name])))
    for _ in range(draw(st.integers(1, 3))):
        holder = draw(st.sampled_from(holders(value)))
        if isinstance(holder, list):
            holder.insert(0, draw(VALUES))
            continue
        field = draw(FIELDS if not holder else FIELDS | st.sampled_from(list(holder)))
        if draw(st.booleans()):
            holder.pop(field, None)
        else:
            holder[field] = draw(VALUES)
    return name, value


@given(st.data())
def test_the_library_agrees_on_any_change(examples: Examples, data: st.DataObject) -> None:
    """Whatever is taken away, replaced or added."""
    name, value = data.draw(changed(examples))
    schema = _schema(name)
    assert compile_schema(schema)(value) == Draft202012Validator(schema).is_valid(value)
