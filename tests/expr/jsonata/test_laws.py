"""Laws on random queries and data."""

import json
from copy import deepcopy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.core.values import Json, copy_foreign, json_equal
from asl.core.work import WorkLimits
from asl.expr.jsonata import UNDEFINED, QueryFault, parse
from asl.expr.jsonata.query import Query
from asl.expr.jsonata.scopes import QueryLimits
from tests.expr.jsonata.frames import still

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, 1.5]), st.sampled_from(["", "a", "b", "1"])
)


def documents(scalars: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=8,
    )


PLAIN = documents(SCALARS)
"""Data that the library reads as the language says: without null and without booleans."""
ANY = documents(SCALARS | st.none() | st.booleans())

LEAVES = st.sampled_from(["$d", "$e", "a", "b", "$", "1", "2", "'a'", "''", "[]", "[1, 2]"])
BOTH = ["+", "-", "*", "=", "!=", "<", ">", "and", "or", "&"]
ONE = ["$count", "$exists", "$not", "$string", "$sum", "$keys", "$type", "$reverse", "$boolean"]


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Queries made of smaller ones."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(BOTH), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'a': {}, 'b': {}}}".format, inner, inner),
        st.builds("{}({})".format, st.sampled_from(ONE), inner),
        st.builds("$append({}, {})".format, inner, inner),
        st.builds("({}).{}".format, inner, NAMES),
        st.builds("({}).({})".format, inner, inner),
        st.builds("({})[{}]".format, inner, st.integers(-2, 2)),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({}).{}[]".format, inner, NAMES),
        st.builds("({}).*".format, inner),
        st.builds("($x := {}; [$x, $x])".format, inner),
        st.builds("$map({}, function($v) {{ {} }})".format, inner, inner),
        st.builds("$filter({}, function($v) {{ {} }})".format, inner, inner),
    )


RICHER = [
    st.builds("({})^({})".format, LEAVES, LEAVES),
    st.builds("({}){{'k' & $: $}}".format, LEAVES),
    st.builds("({} % {} in {})".format, LEAVES, LEAVES, LEAVES),
    st.builds("({} ~> |$|{{'z': 1}}|)".format, LEAVES),
    st.builds("({}).**".format, LEAVES),
    st.builds("$merge([{}, {{'m': {}}}])".format, LEAVES, LEAVES),
    st.builds("$sort($append({}, {}))".format, LEAVES, LEAVES),
    st.builds("$distinct([{}, ({}).a])".format, LEAVES, LEAVES),
    st.builds("$lookup({}, 'a')".format, LEAVES),
    st.builds("$single([[({}).a[]]])".format, LEAVES),
    st.sampled_from(["$uuid()", "$random()", "$match('abc', /b/)", "$sum", "null", "true"]),
]
QUERIES = st.recursive(LEAVES, combined, max_leaves=6)
RICH_QUERIES = st.recursive(st.one_of(LEAVES, *RICHER), combined, max_leaves=6)


def outcome(query: Query, bindings: dict[str, Json]) -> tuple[str, Json]:
    try:
        return "value", query(bindings, still())
    except QueryFault as fault:
        return "fault", fault.code


@given(RICH_QUERIES, ANY, ANY)
def test_query_changes_no_input_and_returns_json(source: str, d: Json, e: Json) -> None:
    """Whatever a query does, its bindings stay as they were and what comes out is plain JSON."""
    bindings = {"d": d, "e": e}
    before = deepcopy(bindings)
    kind, value = outcome(parse(source), bindings)
    assert json_equal(bindings, before)
    assert json.dumps(bindings) == json.dumps(before)
    if kind == "value" and value is not UNDEFINED:
        assert json_equal(copy_foreign(value), value)


@given(RICH_QUERIES, ANY, ANY)
def test_query_is_deterministic(source: str, d: Json, e: Json) -> None:
    """Evaluations repeat, chance included, since it comes from the frame."""
    bindings = {"d": d, "e": e}
    query, again = parse(source), parse(source)
    first = outcome(query, bindings)
    assert outcome(query, bindings) == first
    assert outcome(again, bindings) == first


@given(RICH_QUERIES, ANY, ANY, st.integers(1, 60))
def test_fewer_steps_same_result_or_limit_fault(source: str, d: Json, e: Json, steps: int) -> None:
    """With fewer steps the outcome is the same, or the fault that says so."""
    bindings = {"d": d, "e": e}
    tight = outcome(parse(source, QueryLimits(WorkLimits(steps=steps))), bindings)
    assert tight in (outcome(parse(source), bindings), ("fault", "D1012"))


@given(QUERIES, PLAIN, PLAIN)
def test_evaluator_agrees_with_library(source: str, d: Json, e: Json) -> None:
    """On data without null and booleans jsonata-python, an engine by others, finds the same."""
    jsonata = pytest.importorskip("jsonata")
    query = parse(source)
    bindings = {"d": d, "e": e}
    ours = outcome(query, bindings)
    assume(ours not in (("fault", "D1014"), ("fault", "D1016")))
    try:
        theirs = jsonata.Jsonata(source).evaluate(None, deepcopy(bindings))
    except jsonata.JException as fault:
        assert ours == ("fault", fault.error)
        return
    kind, value = ours
    assert kind == "value"
    assert json_equal(None if value is UNDEFINED else value, json.loads(json.dumps(theirs)))


@given(st.text(alphabet="$ab1.[](){}'\"`/*+-=<>:;,?|~^@#%&\\ \n!_", max_size=30))
def test_query_parser_raises_only_expression_fault(text: str) -> None:
    """A text is a query, or a fault with a place; nothing else is raised."""
    try:
        query = parse(text)
    except ExpressionFault as fault:
        assert 0 <= fault.offset <= len(text)
        assert fault.code == "V-JSONATA-01"
    else:
        outcome(query, {})
