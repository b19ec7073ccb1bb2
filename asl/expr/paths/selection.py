"""Select the nodes of a path of RFC 9535 in document order, and compile its filters.

A filter is a test such as `[?(@.age > 9 && !(@.name == 'Ada'))]`.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, NoReturn, TypeAlias

from asl.core.errors import StateError
from asl.core.regex import fullmatch, linear
from asl.core.values import Json, is_number, json_equal
from asl.core.work import Spend, WorkExceeded, WorkMeter
from asl.expr.paths.segments import (
    Descend,
    Filter,
    PathEvaluation,
    Segment,
    Slice,
    Test,
    Union,
    Wildcard,
)

__all__ = [
    "RELATIONS",
    "FilterLiteral",
    "FilterOperand",
    "FilterQuery",
    "Matches",
    "Relation",
    "all_of",
    "any_of",
    "children",
    "compare",
    "linear_regex",
    "match_text",
    "nodes_of",
    "select",
    "too_much_work",
]


def select(
    segments: tuple[Segment, ...], start: Json, root: Json, meter: WorkMeter | None = None
) -> list[Json]:
    """Return the nodes of segments.

    Args:
        segments: The segments of a path.
        start: The node where the path starts.
        root: The document that `$` names within filters.
        meter: A meter shared with other evaluations.

    Raises:
        StateError: "States.Runtime" for a path that takes too many steps.
    """
    try:
        return nodes_of(segments, start, PathEvaluation(root, meter))
    except WorkExceeded as exceeded:
        raise too_much_work(exceeded) from None


def too_much_work(exceeded: WorkExceeded) -> StateError:
    """Return the error of a path whose evaluation exceeds a limit."""
    return StateError("States.Runtime", f"A path cannot be evaluated: {exceeded}")


def nodes_of(segments: tuple[Segment, ...], start: Json, evaluation: PathEvaluation) -> list[Json]:
    """Return the nodes of segments within an evaluation; raises WorkExceeded."""
    nodes = [start]
    for segment in segments:
        nodes = _step(segment, nodes, evaluation)
        if not nodes:
            break
    return nodes


def _step(segment: Segment, nodes: list[Json], evaluation: PathEvaluation) -> list[Json]:
    evaluation.meter.spend(len(nodes))
    match segment:
        case str():
            return [n[segment] for n in nodes if type(n) is dict and segment in n]
        case int():
            return [n[segment] for n in nodes if type(n) is list and -len(n) <= segment < len(n)]
        case Wildcard():
            if len(nodes) == 1:
                return children(nodes[0], evaluation)
            return [child for n in nodes for child in children(n, evaluation)]
        case Slice(bounds):
            arrays = [n for n in nodes if type(n) is list]
            evaluation.meter.spend(sum(len(range(len(n))[bounds]) for n in arrays))
            return [child for n in arrays for child in n[bounds]]
        case Union(members):
            evaluation.meter.spend(len(nodes) * len(members))
            return [child for n in nodes for m in members for child in _step(m, [n], evaluation)]
        case Filter(test):
            return [c for n in nodes for c in children(n, evaluation) if test(c, evaluation)]
        case Descend():
            return list(_descendants(nodes, evaluation))
        case _:
            raise AssertionError(segment)  # a segment of AWS


def children(node: Json, evaluation: PathEvaluation) -> list[Json]:
    """Count and return the children of a node."""
    if type(node) is dict:
        evaluation.meter.spend(len(node))
        return list(node.values())
    if type(node) is list:
        evaluation.meter.spend(len(node))
        return node
    return []


def _descendants(nodes: list[Json], evaluation: PathEvaluation) -> Iterator[Json]:
    stack = nodes[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node, evaluation)))


_NOTHING = object()
Relation: TypeAlias = Callable[[Json, Json, PathEvaluation], bool]
Matches: TypeAlias = Callable[[str, Spend], bool]
"""Whether a text matches; the work may be counted."""


class FilterLiteral(NamedTuple):
    """A literal value of a filter."""

    value: Json

    def read(self, node: Json, evaluation: PathEvaluation) -> Json:
        return self.value


class FilterQuery(NamedTuple):
    """A path below the candidate (`@`) or the whole data (`$`)."""

    from_root: bool
    segments: tuple[Segment, ...]

    def nodes(self, node: Json, evaluation: PathEvaluation) -> list[Json]:
        """Return the nodes of the query; those from the root are cached for an evaluation."""
        evaluation.meter.spend()
        if not self.from_root:
            return nodes_of(self.segments, node, evaluation)
        found = evaluation.found.get(id(self))
        if found is None:
            found = nodes_of(self.segments, evaluation.root, evaluation)
            evaluation.found[id(self)] = found
        return found

    def read(self, node: Json, evaluation: PathEvaluation) -> Json:
        """Return the one node, the array of several, or nothing."""
        found = self.nodes(node, evaluation)
        return found[0] if len(found) == 1 else (found or _NOTHING)

    def exists(self, node: Json, evaluation: PathEvaluation) -> bool:
        """Return whether the query has a node."""
        return bool(self.nodes(node, evaluation))


FilterOperand = FilterQuery | FilterLiteral


def any_of(tests: list[Test]) -> Test:
    """Return `||` of some tests."""
    if len(tests) == 1:
        return tests[0]
    return lambda node, evaluation: any(test(node, evaluation) for test in tests)


def all_of(tests: list[Test]) -> Test:
    """Return `&&` of some tests."""
    if len(tests) == 1:
        return tests[0]
    return lambda node, evaluation: all(test(node, evaluation) for test in tests)


def _ordered(holds_for: Callable[[Json, Json], bool], or_equal: bool) -> Relation:
    def holds(left: Json, right: Json, evaluation: PathEvaluation) -> bool:
        comparable = (is_number(left) and is_number(right)) or (
            type(left) is str and type(right) is str
        )
        if comparable:
            return holds_for(left, right)
        return or_equal and _same(left, right, evaluation)

    return holds


def _same(left: Json, right: Json, evaluation: PathEvaluation) -> bool:
    if left is _NOTHING or right is _NOTHING:
        return left is right
    if (type(left) is dict or type(left) is list) and type(left) is type(right):
        if len(left) != len(right):
            return False
        _count(left, evaluation)
    return json_equal(left, right)


def _count(value: Json, evaluation: PathEvaluation) -> None:
    """Count the parts of a value before it is compared."""
    todo = [value]
    while todo:
        part = todo.pop()
        if type(part) is dict or type(part) is list:
            evaluation.meter.spend(1 + len(part))
            todo.extend(part.values() if type(part) is dict else part)


RELATIONS: dict[str, Relation] = {
    "==": _same,
    "!=": lambda left, right, evaluation: not _same(left, right, evaluation),
    "<": _ordered(operator.lt, or_equal=False),
    "<=": _ordered(operator.le, or_equal=True),
    ">": _ordered(operator.gt, or_equal=False),
    ">=": _ordered(operator.ge, or_equal=True),
}


def compare(left: FilterOperand, holds: Relation, right: FilterOperand) -> Test:
    """Return the test of a relation of `RELATIONS` between two operands."""
    return lambda node, evaluation: holds(
        left.read(node, evaluation), right.read(node, evaluation), evaluation
    )


def match_text(left: FilterOperand, matches: Matches) -> Test:
    """Return the test of an operand by a regular expression."""

    def test(node: Json, evaluation: PathEvaluation) -> bool:
        value = left.read(node, evaluation)
        if type(value) is not str:
            return False
        evaluation.meter.spend(len(value) // 64)
        return matches(value, evaluation.meter.spend)

    return test


def linear_regex(source: str, fail: Callable[[str], NoReturn], flags: str = "") -> Matches:
    """Compile a regular expression; *fail* gets the reason if it is invalid."""
    try:
        compiled = linear(source, flags)
    except ValueError:
        fail(
            f"{source!r} is not a regular expression; look-around and back-references are not "
            "supported"
        )
    return partial(fullmatch, compiled)
