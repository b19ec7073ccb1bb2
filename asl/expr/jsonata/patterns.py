"""Regular expressions of queries: JavaScript's syntax, matched in linear time.

A pattern is translated for RE2. Look-around and back-references need unbounded time and are
refused; everything else has JavaScript's meaning.
"""

from collections.abc import Iterator
from typing import NamedTuple

from asl.core.regex import find_all, linear
from asl.core.work import WorkExceeded
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import QueryRun, QueryScope
from asl.expr.jsonata.values import QueryFunction

BLANKS = r"\s\x0b\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
r"""The characters of `\s`; RE2 has ASCII only, without the vertical tab."""

NO_BLANKS = (
    r"\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
r"""All other characters, for `\S` within brackets."""

_BLANKS_OF_JAVA = (r"\s\x0b", r"\x00-\x08\x0e-\x1f!-\x{10ffff}")
"""Both of them in Java, where blanks are ASCII only."""

MATCH, GROUP = 70, 10
"""Steps of a match, and of each of its groups."""
_KEPT = "dDwWbBtnvfr"
"""Escapes with the same meaning on both sides."""


class BadPattern(Exception):
    """A pattern is not supported; the text gives the reason."""


class PatternMatch(NamedTuple):
    """One match: its text, position and groups, UNDEFINED for groups that did not match."""

    text: str
    start: int
    end: int
    groups: tuple[Value, ...]


class QueryPattern(QueryFunction):
    """A regular expression, which is also a function from a string to a chain of matches."""

    __slots__ = ("compiled", "source")

    def __init__(self, source: str, ignore_case: bool, multiline: bool, java: bool = False) -> None:
        """Compile a pattern; raises BadPattern. With *java* blanks are ASCII only (measured)."""
        super().__init__("", 1)
        self.source = source
        flags = ("i" if ignore_case else "") + ("m" if multiline else "")
        try:
            translated = "".join(_translated(source, java))
            self.compiled = linear(translated, flags)
        except ValueError as error:
            raise BadPattern(f"the regular expression cannot be used: {error}") from None

    def matches(self, text: str, run: QueryRun) -> Iterator[PatternMatch]:
        """Yield the matches in order.

        Raises:
            QueryFault: D1004 for an empty match, D1012 beyond the limit of steps.
        """
        cost = MATCH + GROUP * self.compiled.groups
        run.spend_bytes(2 * len(text))
        try:
            found = find_all(self.compiled, text, run.spend)
            each = next(found, None)
            while each is not None:
                groups = tuple(UNDEFINED if group is None else group for group in each.groups())
                run.spend(cost)
                run.spend_bytes(2 * sum(map(len, filter(None, each.groups("")))) + 200)
                yield PatternMatch(each.group(), each.start(), each.end(), groups)
                start, end = each.span()
                if end >= len(text):
                    return
                each = next(found, None)
                if start == end or (each is not None and each.start() == each.end()):
                    raise fault("D1004", value=self.source)
        except WorkExceeded as error:
            raise fault("D1012", limit=error.limit) from None
        except UnicodeEncodeError:
            raise fault("D1014", what="half of a surrogate pair is no character") from None

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Return the first match as an object with a function for the next one."""
        text = arguments[0] if arguments else UNDEFINED
        if type(text) is not str:
            return UNDEFINED
        return _chain(self.matches(text, scope.run))


def _chain(matches: Iterator[PatternMatch]) -> Value:
    for match in matches:
        return {
            "match": match.text,
            "start": match.start,
            "end": match.end,
            "groups": list(match.groups),
            "next": _Next(matches),
        }
    return UNDEFINED


class _Next(QueryFunction):
    __slots__ = ("matches",)

    def __init__(self, matches: Iterator[PatternMatch]) -> None:
        super().__init__("next", 0)
        self.matches = matches

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        return _chain(self.matches)


def _translated(source: str, java: bool) -> Iterator[str]:
    """Yield the parts of the pattern for RE2; raises BadPattern."""
    position = 0
    in_class = False
    while position < len(source):
        character = source[position]
        if character == "\\":
            part, position = _escape(source, position + 1, in_class, java)
            yield part
            continue
        position += 1
        if in_class:
            in_class = character != "]"
            yield "\\[" if character == "[" else character
        elif character == "[":
            if source.startswith("]", position):  # matches nothing
                yield r"[^\x00-\x{10ffff}]"
                position += 1
            elif source.startswith("^]", position):  # matches everything
                yield r"[\x00-\x{10ffff}]"
                position += 2
            else:
                in_class = True
                if source.startswith("^", position):
                    character, position = "[^", position + 1
                yield character
        elif character == ".":
            yield r"[^\n\r\x{2028}\x{2029}]"
        elif character == "(" and source.startswith("?", position):
            part = _group(source[position + 1 : position + 3])
            yield f"(?{part}"
            position += 2
        else:
            yield character


def _group(head: str) -> str:
    """Return the start of a special group for RE2: non-capturing or named."""
    if head.startswith(":"):
        return ":"
    if head.startswith(("=", "!")) or head in ("<=", "<!"):
        raise BadPattern("look-around is not supported: patterns are matched in linear time")
    if head.startswith("<"):
        return "P<"
    raise BadPattern(f"a group cannot begin with (?{head[:1]}")


def _escape(source: str, position: int, in_class: bool, java: bool) -> tuple[str, int]:
    """Return the escape sequence whose backslash precedes *position*, and its end."""
    letter = source[position : position + 1]
    if not letter:
        raise BadPattern("the pattern ends with a backslash")
    after = position + 1
    if letter in _KEPT:
        if in_class and letter == "b":
            return r"\x08", after
        return "\\" + letter, after
    if letter in "sS":
        blanks, others = _BLANKS_OF_JAVA if java else (BLANKS, NO_BLANKS)
        inner = blanks if letter == "s" else others
        return (inner if in_class else f"[{inner}]"), after
    if letter in "xu":
        digits = source[after : after + (2 if letter == "x" else 4)]
        if len(digits) == (2 if letter == "x" else 4) and _is_hex(digits):
            return rf"\x{{{digits}}}", after + len(digits)
        return letter, after
    if letter == "c" and source[after : after + 1].isalpha():
        return rf"\x{{{ord(source[after]) % 32:x}}}", after + 1
    if letter == "0":
        return r"\x00", after
    if (letter.isdigit() and not in_class) or (letter == "k" and source[after : after + 1] == "<"):
        raise BadPattern("back-references are not supported: patterns are matched in linear time")
    return (letter if letter.isalnum() or letter == "_" else _literal(letter)), after


def _is_hex(digits: str) -> bool:
    return all(digit in "0123456789abcdefABCDEF" for digit in digits)


def _literal(character: str) -> str:
    return "\\" + character if character.isascii() else character
