"""The paths of the `aws` profile are those of Jayway JsonPath 2.0.0, as recorded and as it runs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault
from asl.core.work import WorkMeter
from asl.expr.paths import jayway, parse_path

from .oracle import Oracle, available, recorded

DIFFERENT = {
    "$.shop.books[?].id": "a filter without a condition is refused, the engine fails when it runs",
    "$..$": "a second $ is refused, the engine steps over it",
    "$a": "what follows the dollar sign is the name of a variable",
    "$a.b": "what follows the dollar sign is the name of a variable",
    "@.a": "a path begins with $",
    "a": "a path begins with $",
    "a.b": "a path begins with $",
}
"""Paths that AWS does not hand to the engine, or that are refused on purpose."""


def answer(path: str, document: Any) -> dict[str, Any]:
    """Return what our engine makes of a path, in the form of the oracle's answers."""
    try:
        parsed = parse_path(path, aws=True)
    except ExpressionFault:
        return {"refused": True}
    try:
        found = jayway.compile_segments(parsed.segments)(document, WorkMeter())
    except jayway.PathNotFound as failure:
        return {"failure": "PathNotFoundException", "message": str(failure)}
    except jayway.PathInvalid as failure:
        return {"failure": "other", "message": str(failure)}
    return {"definite": parsed.definite, "value": found[0] if parsed.definite else found}


def expected(row: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded answer in the same form."""
    if "refused" in row:
        return {"refused": True}
    if "failure" in row:
        known = row["failure"] == "PathNotFoundException"
        kind = "PathNotFoundException" if known else "other"
        return {"failure": kind, "message": row["message"]}
    return {"definite": row["definite"], "value": row["value"]}


def agrees(ours: dict[str, Any], theirs: dict[str, Any], failure: str | None) -> bool:
    """Whether two answers are the same; messages matter where the engine words them itself."""
    if "failure" not in theirs:
        return json.dumps(ours) == json.dumps(theirs)
    if ours.get("failure") != theirs["failure"]:
        return False
    if failure not in ("PathNotFoundException", "InvalidPathException"):
        return True
    said, wanted = (each["message"].partition("Current context is")[0] for each in (ours, theirs))
    return bool(said == wanted)


def test_jayway_answers_cover_syntax() -> None:
    rows = list(recorded())
    assert len(rows) >= 600
    assert sum("refused" in row for row in rows) >= 50
    assert sum("failure" in row for row in rows) >= 50


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["path"]) for row in recorded() if row["path"] not in DIFFERENT]
)
def test_jayway_recorded_answer(row: dict[str, Any]) -> None:
    ours, theirs = answer(row["path"], row["document"]), expected(row)
    assert agrees(ours, theirs, row.get("failure")), (ours, row)


NAMES = st.sampled_from(("a", "b", "c"))
SCALARS = st.sampled_from((0, 1, -1, 2.5, "a", "1", "null", "true", "", True, False, None))
TREES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=12,
)
INDEX = st.integers(-3, 3).map(str)
OPERAND = st.one_of(
    *(st.sampled_from(each) for each in (
        ("@", "@.a", "@.b", "@.a.b", "@.a[0]", "@['a']", "@['a','b']", "@[(@.length-1)]", "$.a"),
        ("1", "'1'", "a", "'a'", "null", "true", "false", "-1", "2.5", "x", "''", "'", "/a.*/i"),
    )),
)  # fmt: skip
CRITERION = st.one_of(
    st.tuples(
        OPERAND, st.sampled_from(("==", "!=", "<", "<=", ">", ">=", "=~", " == ")), OPERAND
    ).map("".join),
    st.sampled_from(("@.a", "!@.a", "@.b", "@", "@.a[0]", "!@.b.a", "$.a", "@.*", "@..a", "(@.a)")),
)
JOINED = st.lists(st.tuples(CRITERION, st.sampled_from((" && ", "||", "&&"))), max_size=2).flatmap(
    lambda parts: CRITERION.map(lambda last: "".join(a + b for a, b in parts) + last)
)
STEP = st.one_of(
    st.sampled_from((".a", ".b", "['a']", "[*]", ".*", "..a", "..*", "..[0]", "..", ".", ".a b")),
    st.sampled_from(("['a','b']", "['b', 'c']", "[(@.length-1)]", "[0,1]", "[1:]", "[:-1]", "[]")),
    INDEX.map("[{}]".format),
    st.tuples(INDEX, INDEX).map(lambda bounds: "[{}:{}]".format(*bounds)),
    JOINED.map("[?({})]".format),
    JOINED.map("..[?({})]".format),
    st.text(alphabet="ab.[]()*?@'\"0:,- $", max_size=6),
)
PATHS = st.lists(STEP, max_size=4).map(lambda steps: "$" + "".join(steps))


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    if not available():
        pytest.skip("no JRE with libjsonpath-java")
    with Oracle() as ask:
        yield ask


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(PATHS, TREES)
def test_jayway_engine_agrees(oracle: Oracle, path: str, document: Any) -> None:
    if is_different(path, document):
        return
    row = oracle(path, document)
    ours, theirs = answer(path, document), expected(row)
    assert agrees(ours, theirs, row.get("failure")), (ours, row)


def is_different(path: str, document: Any) -> bool:
    """Whether an answer differs on purpose.

    Variables and a second root are AWS's, and null is no document of the engine. Two patterns match
    each other's texts there. And it compares containers by identity, which depends on how a
    document came to be; here that is only so for the same path on both sides.
    """
    if document is None or path[1:2] not in (".", "[") or "$" in path[1:].replace("$.a", ""):
        return True
    container = type(document) is dict and isinstance(document.get("a"), dict | list)
    return "[?]" in path or "/i=~/" in path or ("$.a" in path and container)
