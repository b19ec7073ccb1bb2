"""Paths select what the specification says; an independent engine agrees on what it can read."""

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Missing
from asl.core.values import compact
from asl.core.work import WorkMeter
from asl.expr.paths import PathUse, compile_path, parse_path, parse_reference_path

pytestmark = pytest.mark.quick

DATA = {
    "a": {"b": [10, 20, 30, 40]},
    "users": [{"name": "Ada", "age": 36}, {"name": "Bob"}, {"name": "Cy", "age": 9}],
    "two words": 1,
    "de-sh": 2,
    "größe": 3,
    "none": None,
    "limit": 10,
}


class Frame:
    """As much of a frame as paths read."""

    variables = {"x": {"y": [1, 2]}, "none": None}
    now = 0.0

    def __init__(self) -> None:
        self.work = WorkMeter()

    def context(self, root: str, at: Any) -> Any:
        return {"Execution": {"Name": "run"}, "State": {"Name": at.state}}[root]


def read(text: str, data: Any = DATA, missing: Missing = Missing.RUNTIME) -> Any:
    return compile_path(parse_path(text), PathUse("InputPath", "S", missing))(data, Frame())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$", DATA),
        ("$.a.b", [10, 20, 30, 40]),
        ("$['a']['b'][1]", 20),
        ('$["a"].b[1]', 20),
        ("$.a.b[-1]", 40),
        ("$.a.b[*]", [10, 20, 30, 40]),
        ("$.a.b[1:3]", [20, 30]),
        ("$.a.b[:2]", [10, 20]),
        ("$.a.b[-2:]", [30, 40]),
        ("$.a.b[::2]", [10, 30]),
        ("$.a.b[::-1]", [40, 30, 20, 10]),
        ("$.a.b[0,2]", [10, 30]),
        ("$.a.b[0, -1, 99]", [10, 40]),
        ("$['de-sh','two words']", [2, 1]),
        ("$.de-sh", 2),
        ("$.größe", 3),
        ("$['two words']", 1),
        ("$.none", None),
        ("$.users[*].age", [36, 9]),
        ("$.users.*.name", ["Ada", "Bob", "Cy"]),
        ("$..age", [36, 9]),
        ("$..b[0]", [10]),
        ("$.a..[0]", [10]),
        ("$.users[?(@.age)].name", ["Ada", "Cy"]),
        ("$.users[?(!@.age)].name", ["Bob"]),
        ("$.users[?(@.age > 10)].name", ["Ada"]),
        ("$.users[?(@.age >= 9 && @.age < 36)].name", ["Cy"]),
        ("$.users[?(@.age == 36 || @.name == 'Bob')].name", ["Ada", "Bob"]),
        ("$.users[?(@.age != 36)].name", ["Bob", "Cy"]),
        ("$.users[?(@.name =~ /^[AB].*/)].name", ["Ada", "Bob"]),
        ("$.users[?(@.name =~ /^a.*/i)].name", ["Ada"]),
        ("$.users[?(@.age < $.limit)].name", ["Cy"]),
        ("$.users[?('Ada' == @.name)].age", [36]),
        ("$.users[?((@.age > 1) && !(@.name == 'Ada'))].name", ["Cy"]),
        ("$.users[?(@.age > '1')]", []),
        ("$.nothing[*]", []),
        ("$.nothing[?(@.x)].y", []),
        ("$.a.b[7:9]", []),
        ("$$.Execution.Name", "run"),
        ("$$.State.Name", "S"),
        ("$x.y[1]", 2),
        ("$x.y[*]", [1, 2]),
        ("$none", None),
    ],
)
def test_path_results(text: str, found: Any) -> None:
    """Every form of path yields its node, or the list of its nodes."""
    assert read(text) == found


@pytest.mark.parametrize(
    "text",
    ["$.z", "$.a.z", "$.a.b[4]", "$.a.b[-5]", "$.a.b.c", "$.limit.x", "$.limit[0]", "$.none.x",
     "$$.Nothing.X", "$$.Execution.Nope", "$nope", "$x.z", "$nope[*]"],
)  # fmt: skip
def test_definite_path_missing_value(text: str) -> None:
    """It raises States.Runtime and names the path, or yields null where the profile says so."""
    with pytest.raises(StateError) as failure:
        read(text)
    assert failure.value.name == "States.Runtime"
    assert text in (failure.value.cause or "")
    assert read(text, missing=Missing.NULL) is None


def test_index_into_string_fails() -> None:
    """JSON strings are no arrays."""
    with pytest.raises(StateError):
        read("$.a[0]", {"a": "text"})


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("a.b", 0),
        ("$.", 2),
        ("$..", 3),
        ("$.a b", 3),
        ("$.a[", 4),
        ("$.a[]", 4),
        ("$['a", 4),
        ("$[?(@.a]", 7),
        ("$[?(1)]", 4),
        ("$.a[0:1:0]", 9),
        ("$.a[x]", 4),
        ("$[?(@.a =~ '(?=x)')]", 18),
        ("$.a]", 3),
    ],
)
def test_path_syntax_error_offset(text: str, offset: int) -> None:
    """The fault names where in the text it was found."""
    with pytest.raises(ExpressionFault) as fault:
        parse_path(text)
    assert fault.value.offset == offset


@pytest.mark.parametrize("text", ["$.a[*]", "$..a", "$.a[0:1]", "$.a[-1]", "$.a[?(@.b)]", "$[0,1]"])
def test_reference_path_refuses_indefinite_paths(text: str) -> None:
    """Everything that may match any number of nodes is refused."""
    with pytest.raises(ExpressionFault):
        parse_reference_path(text)


@given(st.text(max_size=40))
def test_path_parser_raises_only_expression_fault(text: str) -> None:
    """No text makes the parser fail in any other way."""
    try:
        parse_path("$" + text)
    except ExpressionFault as fault:
        assert 0 <= fault.offset <= len(text) + 1


@given(st.text(alphabet="$.@[]'\"?()*:,!&|=<>~/ab01- ", max_size=30))
def test_path_parser_with_path_characters(text: str) -> None:
    """The same with the characters that paths are made of, and the path can be evaluated."""
    try:
        path = parse_path("$" + text)
    except ExpressionFault:
        return
    try:
        compile_path(path, PathUse("InputPath", "S"))(DATA, Frame())
    except StateError as error:
        assert error.name == "States.Runtime"


def test_filter_nesting_limit() -> None:
    """A filter cannot exhaust the stack."""
    with pytest.raises(ExpressionFault):
        parse_path("$[?(" + "!(" * 5000 + "@.a" + ")" * 5000 + ")]")


def test_descendant_step_limit() -> None:
    """`..` on a shared structure that would unfold into billions of nodes ends at its bound."""
    data: Any = []
    for _ in range(60):
        data = [data, data]
    with pytest.raises(StateError) as failure:
        read("$..*", data)
    assert failure.value.name == "States.Runtime"


NAMES = st.sampled_from(["a", "b", "c", "dd"])
TREES = st.recursive(
    st.integers(-3, 3) | st.sampled_from(["x", "y"]) | st.booleans(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(
    st.one_of(
        NAMES.map(lambda name: f".{name}"),
        NAMES.map(lambda name: f"['{name}']"),
        st.integers(0, 2).map(lambda index: f"[{index}]"),
        st.just("[*]"),
        st.tuples(st.integers(0, 2), st.integers(0, 3)).map(lambda s: f"[{s[0]}:{s[1]}]"),
    ),
    min_size=1,
    max_size=4,
)


@given(TREES, STEPS)
def test_path_agrees_with_jsonpath_ng(tree: Any, steps: list[str]) -> None:
    """jsonpath-ng agrees wherever it reads a path as AWS does.

    It lets `[*]` and slices work on a value that is no array, so only arrays are given to them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jsonpath_ng import parse

    text = "$" + "".join(steps)
    path = parse_path(text)
    nodes: list[Any] = [tree]
    for step in steps:
        if step.startswith("[") and "'" not in step and any(type(n) is not list for n in nodes):
            return
        nodes = [match.value for node in nodes for match in parse("$" + step).find(node)]
    try:
        found = compile_path(path, PathUse("InputPath", "S"))(tree, Frame())
    except StateError:
        assert nodes == []
    else:
        assert ([found] if path.definite else found) == nodes


SELECTING = st.lists(
    st.one_of(
        st.sampled_from((".a", "[*]", "..b", "..*", "[-1]", "[0,2]", "[-2:]")),
        st.sampled_from(("['a','b']", "['a','b']['b','a']", "[*]['a','b']")),
        st.sampled_from(("[?(@.a)]", "[?(@.a == 1)]", "[?(!(@.b != 'x'))]", "[?(@.a < $.b)]")),
    ),
    min_size=1,
    max_size=5,
)


@given(TREES, SELECTING, st.sampled_from(Missing))
def test_indefinite_path_never_fails(tree: Any, steps: list[str], missing: Missing) -> None:
    path, use = parse_path("$" + "".join(steps)), PathUse("InputPath", "S", missing)
    try:
        found = compile_path(path, use)(tree, Frame())
    except StateError as failure:
        assert path.definite
        assert failure.name == missing.value
    else:
        assert path.definite or type(found) is list
        assert compact(found)
