"""The tests of a filter of RFC 9535: `[?(@.age > 9 && !(@.name == 'Ada'))]`."""

import operator
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn, TypeAlias

from asl.core.regex import fullmatch, linear
from asl.core.values import Json, is_number, json_equal
from asl.core.work import Spend
from asl.expr.paths.segments import PathEvaluation, Segment, Test
from asl.expr.paths.selection import nodes_of

__all__ = [
    "RELATIONS",
    "FilterLiteral",
    "FilterQuery",
    "Matches",
    "Operand",
    "Relation",
    "all_of",
    "any_of",
    "compare",
    "linear_regex",
    "match_text",
]

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


Operand = FilterQuery | FilterLiteral


def any_of(tests: list[Test]) -> Test:
    """Return `||` of some tests."""
    return lambda node, evaluation: any(test(node, evaluation) for test in tests)


def all_of(tests: list[Test]) -> Test:
    """Return `&&` of some tests."""
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


def compare(left: Operand, holds: Relation, right: Operand) -> Test:
    """Return the test of a relation of `RELATIONS` between two operands."""
    return lambda node, evaluation: holds(
        left.read(node, evaluation), right.read(node, evaluation), evaluation
    )


def match_text(left: Operand, matches: Matches) -> Test:
    """Return the test of an operand by a regular expression."""

    def test(node: Json, evaluation: PathEvaluation) -> bool:
        value = left.read(node, evaluation)
        if type(value) is not str:
            return False
        evaluation.meter.spend(len(value) // 64)
        return matches(value, evaluation.meter.spend)

    return test


def linear_regex(source: str, fail: Callable[[str], NoReturn]) -> Matches:
    """Compile a regular expression; *fail* gets the reason if it is invalid."""
    try:
        compiled = linear(source)
    except ValueError:
        fail(f"{source!r} is not a regular expression (look-around and back-references have none)")
    return partial(fullmatch, compiled)
