"""The tests of a filter: `[?(@.age > 9 && !(@.name == 'Ada'))]`."""

import operator
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from asl.core.regex import linear
from asl.core.values import Json, is_number, json_equal
from asl.expr.paths.segments import Segment, Test
from asl.expr.paths.select import select

__all__ = [
    "RELATIONS",
    "Literal",
    "Operand",
    "Query",
    "all_of",
    "any_of",
    "compared",
    "linear_regex",
    "matched",
]

_ABSENT = object()


class Literal(NamedTuple):
    """A value that is written in the filter."""

    value: Json

    def read(self, node: Json, root: Json) -> Json:
        return self.value


class Query(NamedTuple):
    """A path below the candidate (`@`) or the whole data (`$`)."""

    from_root: bool
    segments: tuple[Segment, ...]

    def nodes(self, node: Json, root: Json) -> list[Json]:
        return select(self.segments, root if self.from_root else node, root)

    def read(self, node: Json, root: Json) -> Json:
        found = self.nodes(node, root)
        return found[0] if len(found) == 1 else (found or _ABSENT)

    def exists(self, node: Json, root: Json) -> bool:
        return bool(self.nodes(node, root))

    def holds(self, node: Json, root: Json) -> bool:
        return any(found is not None for found in self.nodes(node, root))


Operand = Query | Literal


def any_of(tests: list[Test]) -> Test:
    """Return `||` of some tests."""
    return lambda node, root: any(test(node, root) for test in tests)


def all_of(tests: list[Test]) -> Test:
    """Return `&&` of some tests."""
    return lambda node, root: all(test(node, root) for test in tests)


def _ordered(compare: Callable[[Json, Json], bool]) -> Callable[[Json, Json], bool]:
    def holds(left: Json, right: Json) -> bool:
        comparable = (is_number(left) and is_number(right)) or (
            type(left) is str and type(right) is str
        )
        return comparable and compare(left, right)

    return holds


def _same(left: Json, right: Json) -> bool:
    return left is not _ABSENT and right is not _ABSENT and json_equal(left, right)


RELATIONS: dict[str, Callable[[Json, Json], bool]] = {
    "==": _same,
    "!=": lambda left, right: not _same(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def compared(left: Operand, holds: Callable[[Json, Json], bool], right: Operand) -> Test:
    """Return the test whether a relation of `RELATIONS` holds between two operands."""
    return lambda node, root: holds(left.read(node, root), right.read(node, root))


def matched(left: Operand, matches: Callable[[str], bool]) -> Test:
    """Return the test whether an operand is a text that an expression matches."""

    def test(node: Json, root: Json) -> bool:
        value = left.read(node, root)
        return type(value) is str and matches(value)

    return test


def linear_regex(source: str, fail: Callable[[str], NoReturn]) -> Callable[[str], bool]:
    """Compile a regular expression of a document; *fail* is told why it is none."""
    try:
        compiled = linear(source)
    except ValueError:
        fail(f"{source!r} is not a regular expression (look-around and back-references have none)")
    return lambda text: compiled.fullmatch(text) is not None
