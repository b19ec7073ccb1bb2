"""Rules of a Choice that nobody has written, and how they decide."""

from typing import Any

from hypothesis import strategies as st

import asl

_ORDERINGS = ("LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
OPERANDS = {
    "StringEquals": ["x", "y", "", "a*b"],
    "StringMatches": ["x", "x*", "*y", "*x*", "x*x", "*", "x\\**", "**y", "ab*ba"],
    **{f"String{word}": ["x", ""] for word in _ORDERINGS},
    "StringEqualsPath": ["$.r.b"],
    "StringLessThanPath": ["$.r.b"],
    **{f"Is{word}": [True, False] for word in ("Null", "String", "Numeric", "Boolean", "Present")},
}
NUMERIC = {
    **{f"Numeric{word}": [1, 0, -2, 2.5] for word in ("Equals", *_ORDERINGS)},
    "NumericEqualsPath": ["$.r.b"],
    "NumericLessThanPath": ["$.r.b"],
}
BOOLEAN = {"BooleanEquals": [True, False], "BooleanEqualsPath": ["$.r.b"]}


@st.composite
def rules(draw: Any, operands: Any, depth: int = 0) -> dict[str, Any]:
    """Rules on `$.r.a`, `$.r.b` and `$.r.c.d` with some operators."""
    kind = draw(st.sampled_from(["test"] * 3 + ([] if depth > 2 else ["And", "Or", "Not"])))
    if kind == "Not":
        return {"Not": draw(rules(operands, depth + 1))}
    if kind != "test":
        return {kind: draw(st.lists(rules(operands, depth + 1), min_size=1, max_size=3))}
    operator = draw(st.sampled_from([*operands]))
    path = draw(st.sampled_from(["$.r.a", "$.r.a", "$.r.b", "$.r.c.d"]))
    return {"Variable": path, operator: draw(st.sampled_from(operands[operator]))}


def values(scalars: list[Any]) -> st.SearchStrategy[Any]:
    """What such rules may be asked about."""
    plain = st.sampled_from(["x", "y", "", "xyx", "x*y", "aba", None, *scalars])
    return plain | st.lists(plain, max_size=2) | st.just({"x": 1})


def decided(said: Any, data: Any) -> bool:
    """Whether a Choice with this rule takes it."""
    language = "JSONata" if "Condition" in said else "JSONPath"
    choice = {"Type": "Choice", "Choices": [{**said, "Next": "Yes"}], "Default": "No"}
    states = {"If": choice, "Yes": {"Type": "Succeed"}, "No": {"Type": "Succeed"}}
    result = asl.run({"QueryLanguage": language, "StartAt": "If", "States": states}, data)
    assert result.ok, result.cause
    return result.visited[-1] == "Yes"
