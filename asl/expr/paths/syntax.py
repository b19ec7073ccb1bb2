"""Parse paths; errors have the offset in the text."""

import re
from collections.abc import Iterator
from functools import lru_cache
from math import isinf
from typing import NoReturn

from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.expr.paths.amazon import parse_amazon_path
from asl.expr.paths.segments import Descend, Filter, Path, Segment, Slice, Test, Union, Wildcard
from asl.expr.paths.selection import (
    RELATIONS,
    FilterLiteral,
    FilterOperand,
    FilterQuery,
    Matches,
    all_of,
    any_of,
    compare,
    linear_regex,
    match_text,
)

__all__ = ["parse_path", "parse_reference_path"]

MAX_LENGTH = 10_000
MAX_FILTER_DEPTH = 20
SYNTAX = "V-ST-09"
FUNCTION = "call an intrinsic function under a key that ends in '.$', as in Parameters"

_NAME = r"""[^\s.\[\]()'"*,:?@!=<>&|{}^\\`$]+"""
_PLAIN = lazy_pattern(rf"(\$\$|\$[^\W\d]\w*|\$)((?:\.{_NAME}|\[[0-9]{{1,9}}\])*)\Z")
_STEP = lazy_pattern(rf"\.({_NAME})|\[([0-9]+)\]")
_ROOT = lazy_pattern(r"\$\$|\$[^\W\d]\w*|\$")
_MEMBER = lazy_pattern(_NAME)
_BARE = lazy_pattern(r"[^\W\d][\w.:/-]*")
_COMPUTED = lazy_pattern(r"\(\s*@\.(?:length|size\(\))\s*-\s*([0-9]+)\s*\)\s*\]")
_INTEGER = lazy_pattern(r"-?[0-9]{1,18}")
_NUMBER = lazy_pattern(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_COMPARISON = lazy_pattern(r"==|!=|<=|>=|=~|<|>")
_WORDS = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=4096)
def parse_path(text: str, aws: bool = False) -> Path:
    """Parse a path of any kind.

    Args:
        text: The path.
        aws: Whether to parse as AWS does, instead of by RFC 9535 with a few additions.

    Raises:
        ExpressionFault: The text is no path; with the offset of the error.
    """
    plain = _PLAIN.match(text)
    if plain and len(text) <= MAX_LENGTH:
        steps = tuple(name if name else int(index) for name, index in _STEP.findall(plain.group(2)))
        return Path(text, _root(plain.group(1)), steps, definite=True)
    return parse_amazon_path(text) if aws and len(text) <= MAX_LENGTH else _Parser(text).path()


def parse_reference_path(text: str, aws: bool = False) -> Path:
    """Parse a path that names exactly one node.

    Raises:
        ExpressionFault: V-ST-09 for a malformed path, V-ST-05 for one to several nodes.
    """
    path = parse_path(text, aws)
    if not path.reference:
        raise ExpressionFault(
            f"{text!r} may match any number of nodes; a reference path names one",
            0,
            "V-ST-05",
            hint="use only .name, ['name'] and [n] after the root",
        )
    return path


def parse_result_path(text: str, rule: str = "V-ST-05", aws: bool = False) -> Path:
    """Parse a path for a result.

    Args:
        text: The path.
        rule: Code of the error for another root than `$`.
        aws: Whether to parse as AWS does.

    Raises:
        ExpressionFault: As `parse_reference_path` does, or with *rule*.
    """
    path = parse_reference_path(text, aws)
    if path.root != "$":
        raise ExpressionFault(
            f"a result goes into the data, so its path begins with '$.', not {text!r}",
            0,
            rule,
            "use 'Assign' for a variable" if path.variable else None,
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
        if self.text[self.at :].isspace():
            return "remove the blanks at the end"
        if self.text[self.at].isspace():
            return "write ['two words'] for a name with blanks"
        if self.text[self.at] == "(":
            return "paths have no functions; use States.ArrayLength(...) to count elements"
        return None

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise ExpressionFault(message, self.at, SYNTAX, hint=hint)

    def root(self) -> str:
        found = _ROOT.match(self.text, self.at)
        if found is None:
            called = self.text.startswith("States.") and "(" in self.text
            hint = FUNCTION if called else f"write '$.{self.text}'" if self.text else None
            self.fail("a path begins with $", hint)
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
            elif self.take("."):  # AWS's documentation writes `$.abc.['def ghi']`
                yield self.bracket() if self.take("[") else self.member()
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
                self.fail("the step of a slice must not be 0")
            self.expect("]")
            return Slice(slice(first, stop, step))
        if first is None:
            computed = _COMPUTED.match(self.text, self.at)
            hint = f"write [-{computed[1]}]" if computed else None
            self.fail("expected an index, a quoted name, '*', ':' or '?' after '['", hint)
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
            # A backslash that escapes neither the quote nor itself is literal (AWS, recorded).
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
        return any_of(tests)

    def conjunction(self) -> Test:
        tests = [self.negation()]
        while self.operator("&&"):
            tests.append(self.negation())
        return all_of(tests)

    def operator(self, token: str) -> bool:
        self.skip()
        return self.take(token)

    def negation(self) -> Test:
        self.skip()
        self.depth += 1
        if self.depth > MAX_FILTER_DEPTH:
            self.fail(f"a filter may be nested at most {MAX_FILTER_DEPTH} levels deep")
        if self.take("!"):
            negated = self.negation()
            test: Test = lambda node, evaluation: not negated(node, evaluation)  # noqa: E731
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
            if not isinstance(left, FilterQuery):
                self.at = start
                self.fail("a literal alone is not a test")
            if self.text.startswith("=", self.at):
                self.fail("a filter compares with '==', not with '='", "write == instead of =")
            return left.exists
        self.skip()
        if sign == "=~":
            return match_text(left, self.pattern())
        return compare(left, RELATIONS[sign], self.operand())

    def operand(self) -> FilterOperand:
        self.skip()
        if self.text[self.at : self.at + 1] in ("@", "$"):
            from_root = self.text[self.at] == "$"
            self.at += 1
            return FilterQuery(from_root, tuple(self.segments()))
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return FilterLiteral(self.quoted())
        number = self.match(_NUMBER)
        if number is not None:
            inexact = float(number)
            if isinf(inexact):
                self.fail("the number is too large")
            return FilterLiteral(inexact if set(number) & set(".eE") else int(number))
        for word, value in _WORDS.items():
            if self.take(word):
                return FilterLiteral(value)
        bare = _BARE.match(self.text, self.at)
        hint = f"write '{bare.group()}' for a text" if bare else None
        return self.fail("expected @, $, a string, a number, true, false or null in a filter", hint)

    def pattern(self) -> Matches:
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
        return linear_regex(source, self.fail)
