"""The filters of Jayway JsonPath 2.0.0: `[?(@.price < 10 && @.title)]`.

The engine splits a filter at `&&` and `||`, also within quotes, and ignores parentheses. Anything
but a path, a string in single quotes or a `/pattern/` is text: `1`, `true` and `word` are texts
compared with numbers, booleans and strings.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import NamedTuple, NoReturn, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.java import json_text
from asl.core.lazy import lazy_pattern
from asl.core.values import Json, is_number, measure
from asl.expr.paths.jayway.failures import MULTIPLE, PathInvalid, no_array, segments_text
from asl.expr.paths.segments import ComputedSegment, PathEvaluation, Pick, Segment, Test
from asl.expr.paths.selection import Matches, all_of, any_of, linear_regex

__all__ = ["ABSENT", "JAVA_BLANKS", "ParseDefinite", "Read", "compile_read", "parse_filter"]

Read: TypeAlias = Callable[[Json, PathEvaluation], Json]
"""`(candidate, evaluation) -> value or ABSENT`; raises PathInvalid."""
ABSENT: Json = object()
"""A path has no value."""


def compile_read(
    segments: tuple[Segment, ...], from_root: bool = False, *, require: bool = False
) -> Read:
    """Compile a definite path.

    Args:
        segments: Names, indices, computed indices, and several names at the end.
        from_root: Whether it starts at the root document instead of the candidate.
        require: Whether all of several names must exist.
    """
    if not segments and not from_root:
        return lambda candidate, evaluation: candidate
    if len(segments) == 1 and type(segments[0]) is str and not from_root:
        name = segments[0]

        def member(candidate: Json, evaluation: PathEvaluation) -> Json:
            return candidate.get(name, ABSENT) if type(candidate) is dict else ABSENT

        return member

    def node(candidate: Json, evaluation: PathEvaluation) -> Json:
        evaluation.meter.spend(len(segments))
        value = evaluation.root if from_root else candidate
        for position in range(len(segments)):
            value = _step(segments, position, value, require)
            if value is ABSENT:
                break
        return value

    return node


def _step(segments: tuple[Segment, ...], at: int, value: Json, require: bool) -> Json:
    match segments[at]:
        case str(name):
            if type(value) is dict and name in value:
                return value[name]
        case Pick(members):
            if type(value) is dict:
                if at < len(segments) - 1:
                    raise PathInvalid(MULTIPLE + "$" + segments_text(segments[: at + 1]))
                if not (require and any(name not in value for name in members)):
                    return {name: value[name] for name in members if name in value}
        case int() | ComputedSegment() as segment:
            if value is not None and type(value) is not list:
                raise PathInvalid(no_array(segments[at:], value))
            if value is not None:
                index = segment if isinstance(segment, int) else len(value) + segment.offset
                return value[index] if 0 <= index < len(value) else ABSENT
    return ABSENT


JAVA_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` removes."""
ParseDefinite: TypeAlias = Callable[[str, int], tuple[Segment, ...]]
"""Parses a path of a filter, which has an offset in the path around it."""

_CUTS = lazy_pattern(r"(?<=&&|\|\|)|(?=&&|\|\|)")
_OPERATORS = ("==", ">=", "<=", "!=", "<", ">", "=~")
"""In the order in which the engine searches for them, at any place."""
_NUMBER = lazy_pattern(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_DEPTHS = {"(": 1, ")": -1}
_BRACKETS = {"[": 1, "]": -1}
_LONE_EQUALS = lazy_pattern(r"=(?![=~])")


def parse_filter(fragment: str, offset: int, parse_definite: ParseDefinite) -> Test:
    """Parse a filter.

    Args:
        fragment: The text from `[` to `]`.
        offset: The offset of the filter, for errors.
        parse_definite: Parses the paths within.

    Raises:
        ExpressionFault: The filter is malformed.
    """
    return _Parser(offset, parse_definite).filter(_bounded(fragment, offset))


def _bounded(fragment: str, offset: int) -> str:
    """Cut a fragment at the end of its parentheses, and remove them."""
    depth, brackets, quoted, previous = 0, 0, False, " "
    start = fragment.rindex("[", 0, fragment.index("?"))
    for at, character in enumerate(fragment[start:], start):
        if character == "'" and previous != "\\":
            quoted = not quoted
        elif not quoted and character in _DEPTHS:
            depth += _DEPTHS[character]
        elif not quoted and character in _BRACKETS:
            brackets += _BRACKETS[character]
            if character == "]" and depth == 0:
                if brackets:
                    break
                return _unwrapped(fragment[start + 1 : at].strip(JAVA_BLANKS), offset)
        previous = character
    return _fail("the parentheses or quotes of a filter are not balanced", offset)


def _unwrapped(text: str, offset: int) -> str:
    inside = text.removeprefix("?").strip(JAVA_BLANKS)
    if not (inside.startswith("(") and inside.endswith(")")):
        _fail("a filter is written [?(...)]", offset)
    return inside[1:-1].strip(JAVA_BLANKS)


def _fail(message: str, offset: int, hint: str | None = None) -> NoReturn:
    raise ExpressionFault(message, offset, "V-ST-09", hint)


class _Text(NamedTuple):
    value: str


class _Pattern(NamedTuple):
    matches: Matches


class _Query(NamedTuple):
    read: Read
    exists: Read
    source: tuple[bool, tuple[Segment, ...]]
    """Whether it starts at the root, and its segments."""

    def is_same_node(self, other: "_Operand") -> bool:
        """Return whether another operand is the same node: then even containers are equal."""
        if any(isinstance(each, Pick) for each in self.source[1]):
            return False  # each read creates a new object
        return isinstance(other, _Query) and self.source == other.source


_Operand: TypeAlias = _Text | _Pattern | _Query


class _Parser:
    def __init__(self, offset: int, parse_definite: ParseDefinite) -> None:
        self.offset = offset
        self.parse_definite = parse_definite

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        _fail(message, self.offset, hint)

    def filter(self, text: str) -> Test:
        parts = [part.strip(JAVA_BLANKS) for part in _CUTS.split(text)]
        parts = parts[1:] if parts and not parts[0] else parts
        if len(parts) % 2 == 0 or any(part not in ("&&", "||") for part in parts[1::2]):
            self.fail("a condition is missing next to && or || in a filter")
        groups: list[list[Test]] = [[self.criterion(parts[0])]]
        for operator, part in zip(parts[1::2], parts[2::2], strict=True):
            if operator == "||":
                groups.append([])
            groups[-1].append(self.criterion(part))
        # The engine evaluates the last condition first, which matters if one fails.
        return any_of([all_of(group[::-1]) for group in reversed(groups)])

    def criterion(self, text: str) -> Test:
        text = text.lstrip("[?( ").rstrip(") ")
        operator = next((each for each in _OPERATORS if each in text), "")
        left, _, right = text.partition(operator) if operator else (text, "", "")
        left, right = left.strip(JAVA_BLANKS), right.strip(JAVA_BLANKS)
        negated = left.startswith("!@")
        one, other = self.operand(left.removeprefix("!") if negated else left), self.operand(right)
        if operator:
            return _compared(one, operator, other)
        if not isinstance(one, _Query):
            self.fail(f"expected a comparison or @ in a filter, found {text!r}")
        self.refuse_assignment(left)
        return partial(_exists, one.exists, not negated)

    def refuse_assignment(self, path: str) -> None:
        """Refuse `@.a='x'`, which the engine reads as a member named `a='x'`."""
        if _LONE_EQUALS.search(path):
            self.fail("a filter compares with '==', not with '='", "write == instead of =")

    def operand(self, text: str) -> _Operand:
        if text.startswith(("$", "@")):
            segments = self.parse_definite(text, self.offset)
            from_root = text.startswith("$")
            read, exists = compile_read(segments, from_root), compile_read(segments, require=True)
            return _Query(read, exists, (from_root, segments))
        if text.startswith("!@"):
            self.fail("only a test for a member can be negated, as in [?(!@.member)]")
        if text.startswith("'") and text.endswith("'"):
            return _Text(text[1:-1]) if len(text) > 1 else self.fail("a quote is never closed")
        if text.startswith("/") and text.endswith(("/", "/i")):
            return self.pattern(text)
        return _Text(text)

    def pattern(self, text: str) -> _Pattern:
        end = text.rindex("/")
        if end == 0:
            self.fail("the / is never closed")
        flags = "i" if text.endswith("i") else ""
        return _Pattern(linear_regex(text[1:end], self.fail, flags))


# --------------------------------------------------------------------------------------------
# Tests


def _exists(read: Read, wanted: bool, candidate: Json, evaluation: PathEvaluation) -> bool:
    evaluation.meter.spend()
    value = read(candidate, evaluation)
    return (value is not ABSENT and value is not None) is wanted


_HOLDS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    ">": lambda order: order < 0,
    ">=": lambda order: order <= 0,
    "<": lambda order: order > 0,
    "<=": lambda order: order >= 0,
}
"""Whether an operator holds by the order of its right side to its left."""


def _compared(left: _Operand, operator: str, right: _Operand) -> Test:
    if operator == "=~":
        return partial(_matched, left, right)
    holds, ordered = _HOLDS[operator], operator not in ("==", "!=")
    read_left, read_right = _reader(left), _reader(right)
    same = isinstance(left, _Query) and left.is_same_node(right)

    def test(candidate: Json, evaluation: PathEvaluation) -> bool:
        evaluation.meter.spend()
        one = read_left(candidate, evaluation)
        if one is ABSENT:
            return False  # the right side is not read, even if it would fail
        other = read_right(candidate, evaluation)
        if other is ABSENT:
            return False
        if ordered and (one is None) is not (other is None):
            return False
        order = 0 if same else _order(other, one)
        return order is not None and holds(order)

    return test


def _reader(operand: _Operand) -> Read:
    if isinstance(operand, _Query):
        return operand.read
    value: Json = operand.value if isinstance(operand, _Text) else operand
    return lambda candidate, evaluation: value


def _matched(left: _Operand, right: _Operand, candidate: Json, evaluation: PathEvaluation) -> bool:
    evaluation.meter.spend()
    pattern, operand = (left, right) if isinstance(left, _Pattern) else (right, left)
    value: Json = None
    for each in (left, right):
        if not isinstance(each, _Pattern):
            value = _reader(each)(candidate, evaluation)
            if value is ABSENT:
                return False
    if not isinstance(pattern, _Pattern):
        raise PathInvalid("a filter with =~ needs a pattern such as /a.*/")
    if isinstance(operand, _Pattern) or value is None:
        return False
    return pattern.matches(_printed(value, evaluation), evaluation.meter.spend)


def _printed(value: Json, evaluation: PathEvaluation) -> str:
    if type(value) is str:
        evaluation.meter.spend(len(value) // 64)
        return value
    evaluation.meter.spend_bytes(measure(value, evaluation.meter.bytes))
    return json_text(value)


def _is_null(value: Json) -> bool:
    return value is None or value == "null"


def _order(expected: Json, actual: Json) -> int | None:
    """Compare as the engine does: below 0, 0, above 0, or None for values without an order."""
    if _is_null(expected):
        return 0 if _is_null(actual) else -1
    if _is_null(actual):
        return 1
    if type(expected) is str:
        if type(actual) is str:
            return _sign(_code_units(expected.replace("\\'", "'")), _code_units(actual))
        if is_number(actual):
            return _sign(_number(expected), _exact(actual))
        if type(actual) is bool:
            return _sign(expected.lower() == "true", actual)
    elif is_number(expected) and is_number(actual):
        return _sign(_exact(expected), _exact(actual))
    elif type(expected) is bool and type(actual) is bool:
        return _sign(expected, actual)
    return None


def _sign(one: Json, other: Json) -> int:
    return int(one > other) - int(one < other)


def _code_units(text: str) -> bytes | str:
    return text if text.isascii() else text.encode("utf-16-be", "surrogatepass")


def _exact(value: int | float) -> int | Decimal:
    return value if type(value) is int else Decimal(repr(value))


def _number(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise PathInvalid(f"a filter compares a number with {text!r}, which is none")
    return Decimal(text)
