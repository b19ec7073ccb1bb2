"""The grammar of intrinsic calls: text to tree (Specification 5.1).

Offsets count characters from 0, in the text passed to `parse`.
"""

import re
from math import isinf
from typing import NamedTuple, NoReturn, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.expr.intrinsics.table import FUNCTIONS, IntrinsicFunction, function, names

MAX_NESTING = 10
"""Levels of nested calls, including the outermost."""


class LiteralArgument(NamedTuple):
    """A number, true, false or null."""

    value: Json
    offset: int


class TextArgument(NamedTuple):
    r"""A quoted string; `raw` has its escapes: in a format template `\{` is no placeholder.

    The character `raw[i]` is at `offset + 1 + i`.
    """

    value: str
    raw: str
    offset: int


class PathArgument(NamedTuple):
    """A path, context path or variable path, not yet parsed."""

    text: str
    offset: int


class IntrinsicCall(NamedTuple):
    """A call of the existing function `name`, such as `States.Format`; `text` is the whole call."""

    name: str
    arguments: tuple["Argument", ...]
    offset: int
    text: str


def function_of(call: IntrinsicCall) -> IntrinsicFunction:
    """Return the function of a call."""
    found = function(call.name)
    assert found is not None
    return found


Argument: TypeAlias = IntrinsicCall | LiteralArgument | TextArgument | PathArgument

_BLANKS = lazy_pattern(r"[ \t\r\n]*")
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9]*(?:\.[A-Za-z][A-Za-z0-9]*)*")
_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = lazy_pattern(r"'((?:[^'\\]|\\['\\{}])*+)")
_ESCAPE = lazy_pattern(r"\\(.)")
# A path ends at a comma or parenthesis that is neither quoted, in a regular expression nor nested.
_PATH_TOKEN = lazy_pattern(
    r"""'(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+" | =~\s*+/(?:\\/|[^/])*+/
    | (?P<open>['"]) | .""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}
_CLOSERS = {"[": "]", "(": ")"}


def parse(text: str) -> IntrinsicCall:
    """Parse a whole intrinsic call.

    Raises:
        ExpressionFault: V-INTR-01 (unknown function), V-INTR-02 (syntax) or V-INTR-04 (nested too
            deep).
    """
    parser = _Parser(text)
    call = parser.call(1)
    if parser.at < len(text):
        parser.fail(f"unexpected {text[parser.at]!r} after the call")
    return call


class _Parser:
    """Recursive descent over one text; `at` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise ExpressionFault(message, self.at, "V-INTR-02", hint)

    def peek(self) -> str:
        """Return the next character, empty at the end."""
        return self.text[self.at : self.at + 1]

    def skip_blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def take(self, token: str) -> bool:
        """Skip blanks, then the token if it is next; return whether it was."""
        self.skip_blanks()
        taken = self.text.startswith(token, self.at)
        self.at += len(token) if taken else 0
        return taken

    def call(self, depth: int) -> IntrinsicCall:
        start = self.at
        name = self.function_name()
        if depth > MAX_NESTING:
            raise ExpressionFault(
                f"intrinsic calls are nested deeper than {MAX_NESTING} levels",
                start,
                "V-INTR-04",
                "compute a part in an earlier state",
            )
        self.at += 1
        arguments: list[Argument] = []
        if not self.take(")"):
            arguments.append(self.argument(depth))
            while self.take(","):
                arguments.append(self.argument(depth))
            if not self.take(")"):
                self.fail(self.unfinished())
        return IntrinsicCall(name, tuple(arguments), start, self.text[start : self.at])

    def function_name(self) -> str:
        """Read the name up to its parenthesis."""
        found = _NAME.match(self.text, self.at)
        if found is None:
            self.fail("expected an intrinsic function", "write a call such as States.UUID()")
        name = found.group()
        if not self.text.startswith("(", found.end()):
            self.at = found.end()
            self.fail(f"expected '(' after {name}")
        if function(name) is None:
            full = f"States.{name}"
            known = (*FUNCTIONS, *names(name.partition(".")[0]))
            hint = f"write {full!r}" if full in FUNCTIONS else did_you_mean(name, known)
            message = f"there is no intrinsic function {name!r}"
            raise ExpressionFault(message, self.at, "V-INTR-01", hint)
        self.at = found.end()
        return name

    def unfinished(self) -> str:
        if self.at == len(self.text):
            return "the '(' of the call is never closed"
        return f"expected ',' or ')' but found {self.peek()!r}"

    def argument(self, depth: int) -> Argument:
        self.skip_blanks()
        first = self.peek()
        if first == "'":
            return self.string()
        if first == "$":
            return self.path()
        if first == "-" or "0" <= first <= "9":
            return self.number()
        if first == '"':
            self.fail("a string must be in single quotes", "use single quotes")
        start = self.at
        found = _NAME.match(self.text, start)
        if found is None:
            self.fail(f"expected an argument but found {first!r}" if first else self.unfinished())
        if not self.text.startswith("(", found.end()) and found.group() in _WORDS:
            self.at = found.end()
            return LiteralArgument(_WORDS[found.group()], start)
        if not self.text.startswith("(", found.end()) and "." not in found.group():
            self.fail(
                f"{found.group()!r} is not a literal, a path or a call",
                f"write '{found.group()}' for a string or $.{found.group()} for a path",
            )
        return self.call(depth + 1)

    def string(self) -> TextArgument:
        start = self.at
        found = _STRING.match(self.text, start)
        end = found.end() if found else start
        closing = self.text[end : end + 1]
        if found is None or not closing:
            self.fail("the ' of the string is never closed")
        if closing == "\\":
            self.at = end
            self.fail(
                f"{self.text[end : end + 2]!r} is not an escape",
                r"use only \' \\ \{ \}; write any other character without a backslash",
            )
        self.at = end + 1
        raw = found.group(1)
        return TextArgument(_ESCAPE.sub(r"\1", raw), raw, start)

    def number(self) -> LiteralArgument:
        start = self.at
        found = _NUMBER.match(self.text, start)
        if found is None:
            self.fail("expected a digit after '-'")
        written = found.group()
        if isinf(float(written)):
            self.fail("the number is too large")
        self.at = found.end()
        whole = found.group(1) is None and found.group(2) is None
        return LiteralArgument(int(written) if whole else float(written), start)

    def path(self) -> PathArgument:
        start = self.at
        closers: list[str] = []
        for found in _PATH_TOKEN.finditer(self.text, start):
            token = found.group()
            if token in _CLOSERS:
                closers.append(_CLOSERS[token])
            elif closers and token == closers[-1]:
                closers.pop()
            elif not closers and token in (",", ")"):
                break
            elif found["open"]:
                self.at = found.start()
                self.fail("a quote of the path is never closed")
            self.at = found.end()
        if closers:
            self.at = start
            self.fail("a bracket of the path is never closed")
        return PathArgument(self.text[start : self.at].rstrip(" \t\r\n"), start)
