"""Paths: `$.a.b[0]`, `$$.Execution.Id`, `$name.field`, wildcards, slices, unions and filters.

A path is parsed once into a tuple of steps and compiled into a closure. A *definite* path names at
most one node and is compiled to direct look-ups; an *indefinite* one yields the array of all nodes
it matches and never fails (Specification 3.2, 3.3).
"""

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Missing
from asl.core.values import Json, compact, is_number, json_equal, measure
from asl.expr.frame import Evaluate, Frame, identity

__all__ = ["Path", "Use", "compile_path", "not_found", "parse_path", "parse_reference_path"]

MAX_NODES = 1_000_000
"""Nodes that one evaluation may hold: the bound on `$..*..*`."""
MAX_LENGTH = 10_000
MAX_FILTER_DEPTH = 20
SYNTAX = "V-ST-09"

# --------------------------------------------------------------------------------------------
# The parsed form. A plain string names a member, a plain integer an array element.


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`[*]` or `.*`: every member of an object, every element of an array."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`[start:stop:step]`, with Python's meaning of negative and absent bounds."""

    bounds: slice


@dataclass(frozen=True, slots=True)
class Union:
    """`[0,2]` or `['a','b']`: the listed members that exist, in the order listed."""

    members: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(...)]`: the elements for which the test holds."""

    test: "Test"


@dataclass(frozen=True, slots=True)
class Descend:
    """`..`: the node and everything below it, in document order."""


Segment: TypeAlias = str | int | Wildcard | Slice | Union | Filter | Descend
Test: TypeAlias = Callable[[Json, Json], bool]
"""A compiled filter: `(candidate, root) -> holds`."""


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path. `root` is `$` (data), `$$` (context object) or a variable's name."""

    text: str
    root: str
    segments: tuple[Segment, ...]
    definite: bool

    @property
    def reference(self) -> bool:
        """Whether this is a reference path: it names exactly one node (Specification 3.2)."""
        return self.definite and not any(type(s) is int and s < 0 for s in self.segments)

    @property
    def keys(self) -> tuple[str | int, ...]:
        """The steps of a definite path."""
        return tuple(s for s in self.segments if isinstance(s, str | int))

    @property
    def variable(self) -> str | None:
        """The variable that the path reads, None for data and the context object."""
        return None if self.root in ("$", "$$") else self.root


# --------------------------------------------------------------------------------------------
# Parsing

_NAME = r"""[^\s.\[\]()'"*,:?@!=<>&|{}^\\`$]+"""
_PLAIN = re.compile(rf"(\$\$|\$[^\W\d]\w*|\$)((?:\.{_NAME}|\[\d{{1,9}}\])*)\Z")
_STEP = re.compile(rf"\.({_NAME})|\[(\d+)\]")
_ROOT = re.compile(r"\$\$|\$[^\W\d]\w*|\$")
_MEMBER = re.compile(_NAME)
_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_COMPARISON = re.compile(r"==|!=|<=|>=|=~|<|>")
_WORDS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Parse a path of any kind; raises ExpressionFault with the offset of the fault."""
    plain = _PLAIN.match(text)
    if plain and len(text) <= MAX_LENGTH:
        steps = tuple(name if name else int(index) for name, index in _STEP.findall(plain.group(2)))
        return Path(text, _root(plain.group(1)), steps, definite=True)
    return _Parser(text).path()


def parse_reference_path(text: str) -> Path:
    """Parse a path that names exactly one node; raises ExpressionFault otherwise."""
    path = parse_path(text)
    if not path.reference:
        raise ExpressionFault(
            f"{text!r} may match any number of nodes, a reference path names one",
            0,
            "V-ST-05",
            hint="only .name, ['name'] and [n] may follow the root",
        )
    return path


def _root(text: str) -> str:
    return text if text in ("$", "$$") else text[1:]


class _Parser:
    """A recursive-descent parser over one text; `at` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def path(self) -> Path:
        if len(self.text) > MAX_LENGTH:
            self.fail(f"a path may have at most {MAX_LENGTH} characters")
        root = self.root()
        segments = tuple(self.segments())
        if self.at < len(self.text):
            self.fail(f"unexpected {self.text[self.at]!r} in a path", self.hint())
        definite = all(type(s) is str or type(s) is int for s in segments)
        return Path(self.text, root, segments, definite)

    def hint(self) -> str | None:
        if self.text[self.at].isspace():
            return "write ['two words'] for a name with blanks"
        return None

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise ExpressionFault(message, self.at, SYNTAX, hint=hint)

    def root(self) -> str:
        found = _ROOT.match(self.text, self.at)
        if found is None:
            self.fail("a path begins with $", f"write '$.{self.text}'" if self.text else None)
        self.at = found.end()
        return _root(found.group())

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        self.skip()
        if not self.take(token):
            self.fail(f"expected {token!r} in a path")

    def match(self, pattern: "re.Pattern[str]") -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def segments(self) -> Iterator[Segment]:
        while True:
            if self.take(".."):
                yield Descend()
                if self.text.startswith("[", self.at):
                    continue
                yield self.member()
            elif self.take("."):
                yield self.member()
            elif self.take("["):
                yield self.bracket()
            else:
                return

    def member(self) -> Segment:
        if self.take("*"):
            return Wildcard()
        name = self.match(_MEMBER)
        if name is None:
            self.fail("expected a name after '.' in a path")
        return name

    def bracket(self) -> Segment:
        self.skip()
        if self.take("*"):
            self.expect("]")
            return Wildcard()
        if self.take("?"):
            self.skip()
            test = self.disjunction()
            self.expect("]")
            return Filter(test)
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self.names()
        return self.indices()

    def names(self) -> Segment:
        names = [self.quoted()]
        self.skip()
        while self.take(","):
            self.skip()
            names.append(self.quoted())
            self.skip()
        self.expect("]")
        return names[0] if len(names) == 1 else Union(tuple(names))

    def indices(self) -> Segment:
        first = self.integer()
        self.skip()
        if self.take(":"):
            stop = self.integer()
            self.skip()
            step = self.integer() if self.take(":") else None
            if step == 0:
                self.fail("the step of a slice is not 0")
            self.expect("]")
            return Slice(slice(first, stop, step))
        if first is None:
            self.fail("expected an index, a quoted name, '*', ':' or '?' after '['")
        members = [first]
        while self.take(","):
            index = self.integer()
            if index is None:
                self.fail("expected an index after ','")
            members.append(index)
            self.skip()
        self.expect("]")
        return first if len(members) == 1 else Union(tuple(members))

    def integer(self) -> int | None:
        self.skip()
        digits = self.match(_INTEGER)
        return None if digits is None else int(digits)

    def quoted(self) -> str:
        quote = self.text[self.at : self.at + 1]
        if quote not in ("'", '"') or not quote:
            self.fail("expected a quoted name")
        self.at += 1
        characters: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == quote:
                self.at += 1
                return "".join(characters)
            # AWS keeps a backslash that escapes neither the quote nor itself (recorded).
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in (quote, "\\"):
                self.at += 1
                character = self.text[self.at]
            characters.append(character)
            self.at += 1
        return self.fail(f"the {quote} is never closed")

    # Filters: `||` binds weaker than `&&`, that weaker than `!` and comparisons.

    def disjunction(self) -> Test:
        tests = [self.conjunction()]
        while self.operator("||"):
            tests.append(self.conjunction())
        return tests[0] if len(tests) == 1 else _any_of(tests)

    def conjunction(self) -> Test:
        tests = [self.negation()]
        while self.operator("&&"):
            tests.append(self.negation())
        return tests[0] if len(tests) == 1 else _all_of(tests)

    def operator(self, token: str) -> bool:
        self.skip()
        return self.take(token)

    def negation(self) -> Test:
        self.skip()
        self.depth += 1
        if self.depth > MAX_FILTER_DEPTH:
            self.fail(f"a filter may nest at most {MAX_FILTER_DEPTH} deep")
        if self.take("!"):
            negated = self.negation()
            test: Test = lambda node, root: not negated(node, root)  # noqa: E731
        elif self.take("("):
            test = self.disjunction()
            self.expect(")")
        else:
            test = self.comparison()
        self.depth -= 1
        return test

    def comparison(self) -> Test:
        start = self.at
        left = self.operand()
        self.skip()
        sign = self.match(_COMPARISON)
        if sign is None:
            if not isinstance(left, _Query):
                self.at = start
                self.fail("a literal alone is no test")
            return left.exists
        self.skip()
        if sign == "=~":
            return _matches(left, self.pattern())
        return _compared(left, _RELATIONS[sign], self.operand())

    def operand(self) -> "_Query | _Literal":
        self.skip()
        if self.text[self.at : self.at + 1] in ("@", "$"):
            from_root = self.text[self.at] == "$"
            self.at += 1
            return _Query(from_root, tuple(self.segments()))
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return _Literal(self.quoted())
        number = self.match(_NUMBER)
        if number is not None:
            return _Literal(float(number) if set(number) & set(".eE") else int(number))
        for word, value in _WORDS.items():
            if self.take(word):
                return _Literal(value)
        return self.fail("expected @, $, a string, a number, true, false or null in a filter")

    def pattern(self) -> "Callable[[str], bool]":
        if self.take("/"):
            end = self.text.find("/", self.at)
            while end > 0 and self.text[end - 1] == "\\":
                end = self.text.find("/", end + 1)
            if end < 0:
                self.fail("the / is never closed")
            source = self.text[self.at : end].replace("\\/", "/")
            self.at = end + 1
            flags = self.match(re.compile("[imsx]*")) or ""
            source = f"(?{flags}){source}" if flags else source
        else:
            source = self.quoted()
        return _linear_regex(source, self.fail)


def _linear_regex(source: str, fail: Callable[[str], NoReturn]) -> Callable[[str], bool]:
    # Documents may come from strangers: RE2 matches in linear time, the standard library does not.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(source, options)
    except re2.error:
        fail(f"{source!r} is not a regular expression (look-around and back-references have none)")
    return lambda text: compiled.fullmatch(text) is not None


# --------------------------------------------------------------------------------------------
# Filters

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Json

    def read(self, node: Json, root: Json) -> Json:
        return self.value


@dataclass(frozen=True, slots=True)
class _Query:
    """A path below the candidate (`@`) or the whole data (`$`)."""

    from_root: bool
    segments: tuple[Segment, ...]

    def nodes(self, node: Json, root: Json) -> list[Json]:
        return _select(self.segments, root if self.from_root else node, root)

    def read(self, node: Json, root: Json) -> Json:
        found = self.nodes(node, root)
        return found[0] if len(found) == 1 else (found or _ABSENT)

    def exists(self, node: Json, root: Json) -> bool:
        return bool(self.nodes(node, root))


def _any_of(tests: list[Test]) -> Test:
    return lambda node, root: any(test(node, root) for test in tests)


def _all_of(tests: list[Test]) -> Test:
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


_RELATIONS: dict[str, Callable[[Json, Json], bool]] = {
    "==": _same,
    "!=": lambda left, right: not _same(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _compared(
    left: _Query | _Literal, holds: Callable[[Json, Json], bool], right: _Query | _Literal
) -> Test:
    return lambda node, root: holds(left.read(node, root), right.read(node, root))


def _matches(left: _Query | _Literal, matches: Callable[[str], bool]) -> Test:
    def test(node: Json, root: Json) -> bool:
        value = left.read(node, root)
        return type(value) is str and matches(value)

    return test


# --------------------------------------------------------------------------------------------
# Selecting the nodes of an indefinite path


def _select(segments: tuple[Segment, ...], start: Json, root: Json) -> list[Json]:
    nodes = [start]
    for segment in segments:
        nodes = _step(segment, nodes, root)
        if len(nodes) > MAX_NODES:
            raise StateError("States.Runtime", f"a path matched more than {MAX_NODES} nodes")
        if not nodes:
            break
    return nodes


def _step(segment: Segment, nodes: list[Json], root: Json) -> list[Json]:
    match segment:
        case str():
            return [n[segment] for n in nodes if type(n) is dict and segment in n]
        case int():
            return [n[segment] for n in nodes if type(n) is list and -len(n) <= segment < len(n)]
        case Wildcard():
            return [child for n in nodes for child in _children(n)]
        case Slice(bounds):
            return [child for n in nodes if type(n) is list for child in n[bounds]]
        case Union(members):
            return [child for n in nodes for m in members for child in _step(m, [n], root)]
        case Filter(test):
            return [child for n in nodes for child in _candidates(n) if test(child, root)]
        case Descend():
            return list(_descendants(nodes))


def _children(node: Json) -> list[Json]:
    if type(node) is dict:
        return list(node.values())
    return node if type(node) is list else []


def _candidates(node: Json) -> list[Json]:
    # A filter behind a single object tests that object, as AWS's path engine does.
    return [node] if type(node) is dict else _children(node)


def _descendants(nodes: list[Json]) -> Iterator[Json]:
    stack = nodes[::-1]
    count = 0
    while stack:
        node = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise StateError("States.Runtime", f"a path walked over more than {MAX_NODES} nodes")
        yield node
        stack.extend(reversed(_children(node)))


# --------------------------------------------------------------------------------------------
# Compiling


@dataclass(frozen=True, slots=True)
class Use:
    """Where a path stands: the field that holds it, its state, and what missing means there."""

    field: str
    state: str
    missing: Missing = Missing.RUNTIME
    effect: bool = False
    """The state reaches the world, so it can be retried and may hand out a task token."""


def compile_path(path: Path, use: Use) -> Evaluate:
    """Compile *path*; the closure raises StateError as `use.missing` says when nothing is found."""
    if path.root == "$$":
        return _from_context(path, use)
    if path.variable is not None:
        return _from_variable(path, use)
    if not path.definite:
        segments = path.segments
        return lambda data, frame: _select(segments, data, data)
    return _definite(path, use)


def _definite(path: Path, use: Use) -> Evaluate:
    """Direct look-ups for the paths that nearly all documents consist of.

    A string key works on objects only, so the look-up itself is the type check; an index would
    also work on a string and needs the general walk.
    """
    keys = path.keys
    if not keys:
        return identity
    if any(type(key) is int for key in keys) or len(keys) > 3:
        return lambda data, frame: _walk(path, keys, data, data, frame, use)
    if len(keys) == 1:
        (only,) = keys

        def one(data: Json, frame: Frame) -> Json:
            try:
                return data[only]
            except (KeyError, TypeError):
                return not_found(path, data, use)

        return one
    if len(keys) == 2:
        first, second = keys

        def two(data: Json, frame: Frame) -> Json:
            try:
                return data[first][second]
            except (KeyError, TypeError):
                return not_found(path, data, use)

        return two
    first, second, third = keys

    def three(data: Json, frame: Frame) -> Json:
        try:
            return data[first][second][third]
        except (KeyError, TypeError):
            return not_found(path, data, use)

    return three


def _walk(
    path: Path, keys: tuple[str | int, ...], start: Json, data: Json, frame: Frame, use: Use
) -> Json:
    node: Any = start
    for key in keys:
        fits = type(node) is (dict if type(key) is str else list)
        if not fits:
            return not_found(path, data, use)
        try:
            node = node[key]
        except (KeyError, IndexError):
            return not_found(path, data, use)
    return node


def _from_context(path: Path, use: Use) -> Evaluate:
    if path.definite and path.segments and type(path.segments[0]) is str:
        root, rest = path.segments[0], path.keys[1:]

        def member(data: Json, frame: Frame) -> Json:
            try:
                node = frame.context(root, use)
            except KeyError:
                return not_found(path, data, use)
            return _walk(path, rest, node, data, frame, use) if rest else node

        return member
    return lambda data, frame: (
        _select(path.segments, _context(frame, use), data)
        if not path.definite
        else _walk(path, path.keys, _context(frame, use), data, frame, use)
    )


CONTEXT_ROOTS = ("Execution", "State", "StateMachine", "Map")
"""The members of `$$` as a whole; the task token shows only when it is asked for by name."""


def _context(frame: Frame, use: Use) -> Json:
    """Return the whole context object: every member that exists at this moment."""
    whole = {}
    for root in CONTEXT_ROOTS:
        try:
            whole[root] = frame.context(root, use)
        except KeyError:
            continue
    return whole


def _from_variable(path: Path, use: Use) -> Evaluate:
    name, keys, segments = path.root, path.keys, path.segments
    if not path.definite:

        def nodes(data: Json, frame: Frame) -> Json:
            if name not in frame.variables:
                return not_found(path, data, use)
            return _select(segments, frame.variables[name], frame.variables[name])

        return nodes

    def value(data: Json, frame: Frame) -> Json:
        try:
            node = frame.variables[name]
        except KeyError:
            return not_found(path, data, use)
        return _walk(path, keys, node, data, frame, use) if keys else node

    return value


# --------------------------------------------------------------------------------------------
# Nothing found


def not_found(path: Path, data: Json, use: Use) -> Json:
    """Do what a missing value means at this place: null, or a StateError (Specification 3.3)."""
    if use.missing is Missing.NULL:
        return None
    if use.field.endswith(".$") or use.field in ("ErrorPath", "CausePath"):
        cause = (
            f"The JSONPath '{path.text}' specified for the field '{use.field}' could not be found "
            f"in the input '{excerpt(data)}'"
        )
    elif use.field in ("InputPath", "OutputPath", "Variable") or use.field.endswith("Path"):
        cause = f"Invalid path '{path.text}' : {_gap(path, data)}"
    else:
        cause = f"The path '{path.text}' in '{use.field}' finds nothing"
    raise StateError(use.missing.value, cause)


def _gap(path: Path, data: Json) -> str:
    """Name the first step that is missing, the way AWS's path engine words it."""
    node, way = data, "$"
    for position, key in enumerate(path.segments):
        way += f"['{key}']" if type(key) is str else f"[{key}]"
        present = (type(node) is dict and key in node) or (
            type(node) is list and type(key) is int and -len(node) <= key < len(node)
        )
        if not present:
            last = position == len(path.segments) - 1
            return f"No results for path: {way}" if last else f"Missing property in path {way}"
        node = node[key]
    return f"No results for path: {path.text}"


def excerpt(data: Json, limit: int = 8192) -> str:
    """Return *data* as compact JSON for an error message, or its kind when it is large."""
    return compact(data) if measure(data, limit) <= limit else "(more than can be shown here)"
