"""An evaluation of a path is bounded by counted steps, whatever the path and the profile."""

from typing import Any

import pytest

from asl.core.errors import ExpressionFault, StateError
from asl.core.work import LIMITS, WorkMeter
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.expr.paths.jayway.syntax import MAX_SEGMENTS
from asl.expr.paths.nodes import locate
from asl.expr.paths.segments import Filter, PathEvaluation
from asl.expr.paths.selection import nodes_of


class Frame:
    """As much of a frame as paths read."""

    variables: dict[str, Any] = {}
    now = 0.0

    def __init__(self) -> None:
        self.work = WorkMeter()


ITEMS = {"items": [{"a": {"a": [{"b": n}]}, "b": n} for n in range(10_000)], "t": "a" * 1_000_000}
CONDITIONS = " || ".join(["@.z == 'q'"] * 500)


def read(path: str, data: Any, aws: bool) -> Any:
    return compile_path(parse_path(path, aws), PathUse("InputPath", "S", aws=aws))(data, Frame())


def nested(levels: int) -> Any:
    """Return a value of few parts that unfolds into two to the power of *levels*."""
    value: Any = []
    for _ in range(levels):
        value = [value, value]
    return value


@pytest.mark.parametrize("aws", [False, True])
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("$..*", nested(60)),
        ("$" + "..*" * 60, ITEMS),
        ("$..*..*..*", ITEMS),
        (f"$.items[?({CONDITIONS})]", ITEMS),
        ("$.items[?($.t =~ /(a*)*b/)]", ITEMS),
        ("$.items[*][" + ",".join(["'a'"] * 2000) + "]", ITEMS),
        ("$..[" + ",".join(["0"] * 4000) + "]", [[0]] * 1000),
    ],
)
def test_path_step_limit_error(path: str, data: Any, aws: bool) -> None:
    with pytest.raises(StateError) as failure:
        read(path, data, aws)
    assert failure.value.name == "States.Runtime"
    assert f"more than {LIMITS.steps} steps" in str(failure.value.cause)


def test_locate_step_limit() -> None:
    with pytest.raises(StateError) as failure:
        locate(parse_path("$..*"), nested(60))
    assert failure.value.name == "States.Runtime"


def steps(path: str, count: int) -> int:
    """Return the steps that a path of the default profile takes over so many items."""
    data = {"items": ITEMS["items"][:count]}
    evaluation = PathEvaluation(data)
    nodes_of(parse_path(path).segments, data, evaluation)
    return LIMITS.steps - evaluation.meter.steps


@pytest.mark.parametrize(
    "path",
    [
        "$.items[?(@.a.a[?(@.b == 1)])]",
        "$.items[?($..a)]",
        "$.items[?(@..a)]",
        "$.items[?(@.b == $.items[0].b)]",
        "$.items[*].a.a[*].b",
        "$.items[1:].b",
    ],
)
def test_path_steps_grow_linearly(path: str) -> None:
    assert steps(path, 2000) < 2.1 * steps(path, 1000)


def test_filter_root_query_is_cached() -> None:
    data = {"items": [1, 2, 3], "limit": 2}
    (_, condition) = parse_path("$.items[?(@ > $.limit)]").segments
    evaluation = PathEvaluation(data)
    assert isinstance(condition, Filter)
    assert [each for each in data["items"] if condition.test(each, evaluation)] == [3]  # type: ignore[attr-defined]
    assert list(evaluation.found.values()) == [[2]]


@pytest.mark.parametrize(
    "path", ["$" + "..*" * MAX_SEGMENTS, "$" + "[*]" * (MAX_SEGMENTS + 1), "$[?(" + "!(" * 9000]
)
def test_aws_path_length_limit(path: str) -> None:
    with pytest.raises(ExpressionFault):
        parse_path(path, aws=True)


def test_long_plain_path() -> None:
    """Their failures are explained, too, without a call for each step."""
    with pytest.raises(StateError) as failure:
        read("$" + ".a" * 4000, {"a": {"a": 1}}, aws=True)
    assert "Property ['a'] not found in path $['a']['a']" in str(failure.value.cause)
