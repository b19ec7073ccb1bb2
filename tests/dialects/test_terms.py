"""Terms: expressions of both query languages compute the same when they are printed in JSONata."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.dialects.terms import (
    INPUT,
    RESULT,
    Choose,
    Comparison,
    DataPath,
    Exists,
    FunctionCall,
    Items,
    Literal,
    Logic,
    Negation,
    Placement,
    Record,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
    merge,
    placement,
    put,
    replace,
    walk,
)
from asl.dialects.terms.expansion import expand_functions
from asl.dialects.terms.jsonata import print_jsonata, read_field, read_jsonata
from asl.dialects.terms.jsonpath import read_expression, read_path, read_rule, read_template

pytestmark = pytest.mark.quick

PATHS = st.builds(
    lambda root, steps: DataPath(root, tuple(steps)),
    st.sampled_from([INPUT, RESULT, "$v", "item", "index", "context"]),
    st.lists(st.sampled_from(["a", "b c", "and", 0, -1]), max_size=3),
)
CONSTANTS = st.sampled_from([None, True, 0, -2, 1.5, "", "x'\"\\y", [], [1, "z"], {"k": 1}])
LEAVES = st.one_of(PATHS, CONSTANTS.map(Literal))


def _conditions(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.one_of(
        st.builds(Comparison, st.sampled_from(["=", "!=", "<", ">="]), inner, inner, st.none()),
        st.builds(Comparison, st.just("in"), inner, PATHS, st.none()),
        st.builds(Exists, inner),
        st.builds(Negation, inner),
        st.builds(Choose, inner, inner, st.none() | inner),
        st.builds(lambda one, other: merge(one, Record(None, (("m", other),))), PATHS, inner),
        st.builds(lambda parts: Items(tuple(parts)), st.lists(PATHS, min_size=1, max_size=3)),
        st.builds(
            lambda name, one, other: FunctionCall(name, (one, other)),
            st.sampled_from([*"+-*/%", "contains", "append"]),
            PATHS,
            inner,
        ),
    )


TERMS = st.recursive(LEAVES, _conditions, max_leaves=8)


def test_single_value_in_which_another_is_sought_is_an_array_of_one() -> None:
    assert read_jsonata("'a' in 'abc'") == Comparison("in", Literal("a"), Literal(["abc"]))


@given(TERMS)
def test_printed_term_reads_as_itself(term: Term) -> None:
    """JSONata loses nothing of a term, and needs no more parentheses than it has."""
    printed = print_jsonata(term)
    assert printed is not None
    assert read_jsonata(printed) == term


@pytest.mark.parametrize(
    ("expression", "term"),
    [
        ("$states.input.a.b[0]", DataPath(INPUT, ("a", "b", 0))),
        ("$states.context.Map.Item.Value.id", DataPath("item", ("id",))),
        ("$states.errorOutput.Error", DataPath("error", ("Error",))),
        ("$states.context.Execution.Id", DataPath("context", ("Execution", "Id"))),
        ("$v.x", DataPath("$v", ("x",))),
        (
            "'a ' & $states.input.b & ' c'",
            Text((Literal("a "), DataPath(INPUT, ("b",)), Literal(" c"))),
        ),
        ("$string($v)", Text((DataPath("$v"),))),
        (
            "$states.input.(a = 'x' and b > 1)",
            Logic(
                "and",
                (
                    Comparison("=", DataPath(INPUT, ("a",)), Literal("x")),
                    Comparison(">", DataPath(INPUT, ("b",)), Literal(1)),
                ),
            ),
        ),
        (
            "$type($v) = 'number' and $v < 5",
            Comparison("<", DataPath("$v"), Literal(5), "number"),
        ),
        (
            "$merge([$states.input, {'a': $states.result}])",
            Record(DataPath(INPUT), (("a", DataPath(RESULT)),)),
        ),
        ("$states.input.x[y = 1]", Unknown("$states.input.x[y = 1]")),
        ("a.b", Unknown("a.b")),
        ("($x := 1; $x)", Unknown("($x := 1; $x)")),
        ("1 +", Unknown("1 +")),
        ("(" * 9999 + "1" + ")" * 9999, Unknown("(" * 9999 + "1" + ")" * 9999)),
    ],
)
def test_jsonata_expression_is_read(expression: str, term: Term) -> None:
    """A part without a term is Unknown, however deep it nests."""
    assert read_jsonata(expression) == term


def test_field_keeps_what_is_written_out() -> None:
    assert read_field({"a": [1, "{% no"], "b": {}}) == Literal({"a": [1, "{% no"], "b": {}})
    assert read_field({"a": "{% $v %}", "b": 1}) == Record(
        None, (("a", DataPath("$v")), ("b", Literal(1)))
    )
    assert read_field(["{% $v %}"]) == Items((DataPath("$v"),))


def test_meaning_replaces_the_call_of_a_function() -> None:
    meanings = {"own_text": lambda arguments: concatenate(Literal("<"), *arguments, Literal(">"))}
    assert read_jsonata("$own_text($v)", meanings) == Text(
        (Literal("<"), DataPath("$v"), Literal(">"))
    )
    assert read_jsonata("$own_text($v) = 'x'", meanings) == Comparison(
        "=", Text((Literal("<"), DataPath("$v"), Literal(">"))), Literal("x")
    )


# JSONPath ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "term"),
    [
        ({"a.$": "$.b", "c": 1}, Record(None, (("a", DataPath(INPUT, ("b",))), ("c", Literal(1))))),
        ({"a": [{"b.$": "$$.Map.Item.Value"}]}, None),
        ({"a": 1}, Literal({"a": 1})),
    ],
)
def test_payload_template_is_read(template: Any, term: Term | None) -> None:
    inner = Record(None, (("a", Items((Record(None, (("b", DataPath("item")),)),))),))
    assert read_template(template) == (inner if term is None else term)


@pytest.mark.parametrize(
    ("expression", "term"),
    [
        (
            "States.Format('a {} b', $.x)",
            concatenate(Literal("a "), DataPath(INPUT, ("x",)), Literal(" b")),
        ),
        ("States.Format('{}', $.x)", Text((DataPath(INPUT, ("x",)),))),
        ("States.MathAdd($.n, 1)", FunctionCall("+", (DataPath(INPUT, ("n",)), Literal(1)))),
        ("States.ArrayGetItem($.a, 2)", DataPath(INPUT, ("a", 2))),
        ("States.Hash($.a, 'MD5')", Unknown("States.Hash($.a, 'MD5')")),
        ("$.a[*]", Unknown("$.a[*]")),
        ("$v.x", DataPath("$v", ("x",))),
    ],
)
def test_path_or_intrinsic_is_read(expression: str, term: Term) -> None:
    assert read_expression(expression) == term


RULES = st.recursive(
    st.sampled_from(
        [
            *({"Variable": path, "IsPresent": True} for path in ("$.a", "$.b")),
            {"Variable": "$.a", "IsNull": False},
            {"Variable": "$.a", "StringEquals": "x"},
            {"Variable": "$.a", "StringMatches": "x*y"},
            {"Variable": "$.a", "StringLessThanPath": "$.b"},
            {"Variable": "$.b", "NumericGreaterThan": 3},
            {"Variable": "$.b", "NumericLessThanEquals": 3},
            {"Variable": "$.a", "IsString": True},
            {"Variable": "$.b", "IsNumeric": True},
            {"Variable": "$.b", "BooleanEquals": True},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda rule: {"Not": rule}),
        st.tuples(st.sampled_from(["And", "Or"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda said: {said[0]: said[1]}
        ),
    ),
    max_leaves=6,
)
VALUES = ["x", "x\ny", "", 3, 4.5, True, None]


def _decides(choice: dict[str, Any], language: str, data: Any) -> Any:
    states = {
        "C": {"Type": "Choice", "Choices": [{**choice, "Next": "T"}], "Default": "F"},
        "T": {"Type": "Succeed"},
        "F": {"Type": "Fail", "Error": "F"},
    }
    result = asl.run({"QueryLanguage": language, "StartAt": "C", "States": states}, data)
    return result.error or result.status


@given(RULES, st.sampled_from(VALUES), st.sampled_from(VALUES))
def test_choice_rule_decides_as_its_term(rule: Any, a: Any, b: Any) -> None:
    """Where all values are there; a missing one fails a choice rule."""
    printed = print_jsonata(read_rule(rule))
    condition = {"Condition": f"{{% {printed} %}}"}
    data = {"a": a, "b": b}
    assert _decides(condition, "JSONata", data) == _decides(rule, "JSONPath", data)


# Operations -------------------------------------------------------------------------------------


def test_put_grows_the_data_around_a_place() -> None:
    put_once = put(DataPath(INPUT), ("a", "b"), DataPath(RESULT))
    assert put_once == Record(
        DataPath(INPUT), (("a", Record(DataPath(INPUT, ("a",)), (("b", DataPath(RESULT)),))),)
    )
    assert member(put_once, ("a", "b", "c")) == DataPath(RESULT, ("c",))
    assert member(put_once, ("a", "x")) == DataPath(INPUT, ("a", "x"))
    assert placement(put_once) == Placement(("a", "b"), DataPath(RESULT))


def test_placement_of_the_whole_output() -> None:
    assert placement(DataPath(INPUT)) is None
    assert placement(DataPath(RESULT)) == Placement((), DataPath(RESULT))
    two = put(put(DataPath(INPUT), ("a",), Literal(1)), ("b",), Literal(2))
    assert placement(two) == Placement((), two)


def test_replace_resolves_members_and_joins_texts() -> None:
    given_ = concatenate(Literal("a"), DataPath(INPUT, ("x",)))
    found = replace(given_, lambda each: Literal("b") if isinstance(each, DataPath) else None)
    assert found == Literal("ab")
    assert [*walk(given_)] == [given_, Literal("a"), DataPath(INPUT, ("x",))]


def test_missing_member_of_a_literal_is_looked_up() -> None:
    assert member(Literal({"a": 1}), ("b",)) == FunctionCall(
        "lookup", (Literal({"a": 1}), Literal("b"))
    )
    assert member(Literal({"a": [1]}), ("a", 0)) == Literal(1)


def test_input_path_of_null_is_an_empty_object() -> None:
    assert read_path(None) == Literal({})


def test_functions_of_a_dialect_are_expanded() -> None:
    """In every field but the Metadata; what cannot be said is reported, and stays."""
    meanings = {
        "own_get": lambda arguments: member(arguments[0], ("x",)),
        "own_odd": lambda arguments: Unknown("odd"),
    }
    document = {
        "Metadata": "{% $own_get($v) %}",
        "States": {
            "a/b": {"Output": {"x": ["{% $own_get($states.input) & '!' %}", "{% $v %}", "plain"]}},
            "C": {"Output": "{% $own_odd($v) %}"},
        },
    }
    reported: list[tuple[str, str]] = []
    found = expand_functions(document, meanings, lambda *place: reported.append(place))
    assert found["Metadata"] == document["Metadata"]
    assert found["States"] == {
        "a/b": {"Output": {"x": ["{% $states.input.x & '!' %}", "{% $v %}", "plain"]}},
        "C": {"Output": "{% $own_odd($v) %}"},
    }
    assert reported == [("/States/C/Output", "$own_odd($v)")]


def test_replaced_base_of_a_record_takes_its_members() -> None:
    grown = Record(DataPath(INPUT), (("b", Literal(2)),))
    found = replace(grown, lambda each: Literal({"a": 1}) if each == DataPath(INPUT) else None)
    assert found == Record(None, (("a", Literal(1)), ("b", Literal(2))))
