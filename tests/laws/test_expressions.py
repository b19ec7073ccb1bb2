"""What holds for every JSONata expression and every template."""

import copy
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

import asl
from asl.core.values import json_equal, measure
from asl.expr.query_protocol import query_source
from tests.laws.expressions import sources, templates

Json = Any

data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["2030-01-02T03:04:05Z", "[1, 2]", "{", "YQ=="]),
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c d", "e.$"]), part, max_size=4)
    ),
    max_leaves=12,
)
plain = st.text(max_size=6).filter(lambda text: not text.startswith("{%"))
literals = st.recursive(
    st.none() | st.booleans() | st.integers() | plain,
    lambda part: (
        st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=4), part, max_size=4)
    ),
    max_leaves=12,
)


def run(output: Json, given: Json, x: Json = None) -> Any:
    """Give what a Pass makes of its input; `$x` is assigned."""
    document = {
        "QueryLanguage": "JSONata",
        "StartAt": "Before",
        "States": {
            "Before": {"Type": "Pass", "Assign": {"x": x}, "Next": "Here"},
            "Here": {"Type": "Pass", "Output": output, "End": True},
        },
    }
    return asl.run(document, given, clock="virtual", name="law")


def evaluated(output: Json, given: Json) -> Any:
    """Run a template, unless it is refused for the reasons that the checks have."""
    try:
        result = run(output, given)
    except asl.InvalidDocument as refused:
        codes = {diagnostic.code for diagnostic in refused.report.errors}
        assert codes <= {"V-JSONATA-01", "V-JSONATA-03", "V-JSONATA-04", "V-VAR-01"}, codes
        event("refused")
        assume(False)
    event(result.error or result.status)
    return result


@given(literals, data)
def test_a_template_without_expressions_is_itself(template: Json, given: Json) -> None:
    """Only strings between the delimiters are evaluated; all else comes out as it was written."""
    assert json_equal(run(template, given).output, template)


@given(data)
def test_data_passes_through_unharmed(given: Json) -> None:
    """What an expression only names, it does not change: in the input and in a variable."""
    result = run({"input": "{% $states.input %}", "both": ["{% [$x] %}"]}, given, "{% 1 %}")
    assert json_equal(result.output["input"], given)
    assert result.output["both"] == [[1]]


@given(templates, data)
def test_a_template_gives_json_or_the_named_error(template: Json, given: Json) -> None:
    """Whatever is evaluated on whatever data: JSON of bounded size, or one error, by its name."""
    result = evaluated(template, given)
    if result.ok:
        assert measure(result.output, 2**24) <= 2**24
    else:
        assert result.error == "States.QueryEvaluationError"
        assert result.cause.startswith("An error occurred while executing the state 'Here' ")


@given(sources, data)
def test_evaluation_leaves_its_input_alone(source: str, given: Json) -> None:
    """An expression gives new values and never changes the ones that it reads."""
    before = copy.deepcopy(given)
    document = {
        "QueryLanguage": "JSONata",
        "StartAt": "First",
        "States": {
            "First": {"Type": "Pass", "Assign": {"x": "{% $states.input %}"}, "Next": "Try"},
            "Try": {
                "Type": "Parallel",
                "Branches": [
                    {
                        "StartAt": "Here",
                        "States": {
                            "Here": {"Type": "Pass", "Output": f"{{% {source} %}}", "End": True}
                        },
                    }
                ],
                "Catch": [{"ErrorEquals": ["States.ALL"], "Output": 0, "Next": "After"}],
                "Next": "After",
            },
            "After": {"Type": "Pass", "Output": "{% $x %}", "End": True},
        },
    }
    try:
        result = asl.run(document, given, clock="virtual")
    except asl.InvalidDocument:
        assume(False)
    assert result.ok, result.cause
    assert json_equal(result.output, before)
    assert json_equal(given, before)
    assert json_equal(result.execution.input, before)


@given(sources, data)
def test_evaluation_is_repeatable(source: str, given: Json) -> None:
    """The same execution evaluates an expression to the same value, random ones included."""
    template = f"{{% {source} %}}"
    one = evaluated(template, given)
    other = run(template, given)
    assert (one.status, one.error, one.cause) == (other.status, other.error, other.cause)
    assert json_equal(one.output, other.output)


@given(st.text("{%} a", max_size=8))
def test_the_delimiters_are_at_the_very_ends(text: str) -> None:
    """A string is an expression if it begins and ends with the delimiters, and they are two."""
    delimited = text.startswith("{%") and text.endswith("%}") and len(text) >= 4
    assert (query_source(text) is not None) == delimited
