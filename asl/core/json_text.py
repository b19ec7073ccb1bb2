"""Read JSON text, with exact positions of every value and fault.

`orjson` and `json` read a valid text. `scan` reads the text again only if they fail, or if
positions are needed.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NoReturn

import orjson

from asl.core.errors import NotJson
from asl.core.pointers import pointer_to
from asl.core.source import MAX_FAULTS, Fault, Limits, Span
from asl.core.values import MAX_DIGITS, SURROGATE, Json, copy_foreign, deeper_than

_BLANKS = re.compile(r"[ \t\r\n]*")
_CHARACTERS = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,1000}+')
"""Some characters of a string; a pattern without the bound takes memory for every escape."""
_PLAIN = re.compile(r'"[^"\\\x00-\x1f]*"')
"""A string without escapes."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_CLOSED = re.compile(rb'"[^"\n\r]*["\n\r]')
"""A string and its end; none holds a line break."""
_STRUCTURE = re.compile(rb"[][{},]")
_BLOCK = 1 << 16
"""Bytes in which values are counted without a look at the limit."""
PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][\w.:-]*)\}")
"""A placeholder of deployment tools: `${Name}`."""

_WORD = re.compile(r"[^\s{}\[\],:\"']+")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_CLOSERS = {"{": "}", "[": "]"}
_QUOTES = "'‘’“”`"
_CONSTANTS = frozenset(("true", "false", "null"))
_NOT_FINITE = frozenset(("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"))
TOO_DEEP = "move an inner part into a separate document"
ALONE = "write both halves of its pair, or the character itself"
QUOTED = "put it in quotes"
"""Advice for numbers that JSON and YAML cannot hold."""
_MEANT = {"none": "null", "nil": "null", "undefined": "null"}


def loads(text: str, limits: Limits) -> tuple[Json, list[Fault]]:
    """Return the value of a JSON text, or its faults."""
    try:
        orjson.loads(text)
        value = _value(text)
    except ValueError:
        faults = scan(text, limits)[1]
        # orjson also refuses an integer that no double holds, which is sound
        return (None, faults) if faults else (_value(text), [])
    openers = text.count("{") + text.count("[")
    if openers > limits.max_depth and deeper_than(value, limits.max_depth):
        return None, scan(text, limits)[1]
    if openers + text.count(",") >= limits.max_values:  # never fewer than the values but one
        return value, list(_too_many(value, limits))
    return value, []


def _too_many(value: Json, limits: Limits) -> Iterator[Fault]:
    """Yield a fault for a value with more parts than the limits allow."""
    count, parts = 0, [value]
    while parts:
        count += 1
        part = parts.pop()
        if isinstance(part, dict):
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)
    if count > limits.max_values:
        yield Fault("READ-04", f"more than {limits.max_values} values", 0)


def read_data(text: str) -> Json:
    """Return the value of a JSON text that is data, not a document; raises ValueError."""
    orjson.loads(text)  # is strict about NaN, and about depth
    try:
        return copy_foreign(json.loads(text))
    except NotJson as fault:
        raise ValueError(str(fault)) from None


MAX_ANSWER_VALUES: Final = 100_000
"""Values of an answer from outside; what has to be done with more takes too long."""


class ValueCounter:
    """Counts the values of a JSON text while it arrives, before any of them is built.

    Args:
        limit: The allowed number of values.
        text_limit: The allowed number of values of one text, where several may follow one another,
            as the events of a stream do.
    """

    __slots__ = (
        *("_depth", "_in_string", "_in_text", "_rest"),
        *("count", "limit", "strings", "text_limit"),
    )

    def __init__(self, limit: int, text_limit: int | None = None) -> None:
        self.limit = limit
        self.text_limit = text_limit
        self._depth = self._in_text = 0
        self.count = 1
        """Values so far: each but the first follows a comma or an opening bracket."""
        self.strings = 0
        """Strings so far: each is a value or the key of one."""
        self._in_string = False
        self._rest = b""

    def feed(self, data: bytes) -> bool:
        """Count the next bytes; return False once there are too many values."""
        for at in range(0, len(data), _BLOCK):
            if self.exceeded_limit is not None:
                break
            self._feed_block(self._rest + data[at : at + _BLOCK])
        return self.exceeded_limit is None

    @property
    def exceeded_limit(self) -> int | None:
        """The limit that is exceeded, None if there is none."""
        if self.count > self.limit or self.strings > 2 * self.limit:
            return self.limit
        of_text = self.text_limit
        return of_text if of_text is not None and self._in_text > of_text else None

    def _feed_block(self, data: bytes) -> None:
        is_cut = (len(data) - len(data.rstrip(b"\\"))) % 2  # within an escape
        self._rest = data[len(data) - is_cut :]
        data = data[: len(data) - is_cut].replace(b"\\\\", b"").replace(b'\\"', b"")
        if self._in_string:
            data = b'"' + data
        data, strings = _CLOSED.subn(b"", data)
        self.strings += strings
        outside, quote, _ = data.partition(b'"')
        self._in_string = bool(quote)
        self.count += sum(map(outside.count, (b",", b"{", b"[")))
        if self.text_limit is not None:
            self._count_in_text(outside)

    def _count_in_text(self, outside: bytes) -> None:
        """Count the values of the present text, which ends with its outermost bracket."""
        for found in _STRUCTURE.finditer(outside):
            part = found[0]
            if part in b"[{":
                self._depth += 1
                self._in_text += 1
            elif part == b",":
                self._in_text += self._depth > 0
            elif self._depth > 1:
                self._depth -= 1
            elif self.exceeded_limit is None:
                self._depth = self._in_text = 0


def _value(text: str) -> Json:
    value: Json = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    return value


def _object(members: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(members)
    if len(value) != len(members):
        raise ValueError("duplicate key")
    return value


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError("too large")
    return int(digits)


def scan(text: str, limits: Limits) -> tuple[Span, list[Fault]]:
    """Return the positions of every value of a JSON text, and its faults.

    After a syntax error the spans are those of the text before it.
    """
    scanner = _Scanner(text, limits)
    with suppress(_Stop):
        scanner.document()
    return scanner.root, scanner.faults


class _Stop(Exception):
    """Reading cannot continue after this point."""


class _Open:
    """An unfinished object or array; `step` is the member being read."""

    __slots__ = ("at", "bracket", "closer", "span", "step")

    def __init__(self, span: Span, bracket: str) -> None:
        self.span = span
        self.at = span.at
        self.bracket = bracket
        self.closer = _CLOSERS[bracket]
        self.step = ""


class _Scanner:
    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.at = 0
        self.end = 0  # of the last token
        self.values = 0
        self.open: list[_Open] = []
        self.faults: list[Fault] = []
        self.root = Span(0)

    def document(self) -> None:
        if not self.peek():
            self.stop("the document is empty", 0)
        self.root = self.value()
        while self.open:
            container = self.open[-1]
            if not self.more(container):
                self.open.pop()
            elif container.bracket == "{":
                self.member(container)
            else:
                self.item(container)
        rest = self.peek()
        if rest in ("{", "["):
            self.stop(
                "a second document follows", self.at, code="READ-10", hint="keep one per file"
            )
        if rest:
            self.fail_at_token("the document ends before this")

    def more(self, container: _Open) -> bool:
        """Return whether another member follows; reads the comma or the closing bracket."""
        found = self.peek()
        if found == container.closer:
            self.take(1)
            return False
        if found == "":
            self.fail_unclosed(container)
        if found in ("}", "]"):
            self.stop(
                f"{found!r} cannot close {container.bracket!r}",
                self.at,
                hint=f"close it with {container.closer!r}",
                related=(container.at, f"{container.bracket!r} is opened here"),
            )
        if container.span.members:
            if found != ",":
                self.no_comma(found)
            comma = self.at
            self.take(1)
            if self.peek() == container.closer:
                what = "member" if container.bracket == "{" else "item"
                self.stop("a comma before the end", comma, hint=f"no comma after the last {what}")
            if not self.peek():
                self.fail_unclosed(container)
        return True

    def member(self, container: _Open) -> None:
        members = container.span.members
        assert isinstance(members, dict)
        key_at = self.at
        if self.peek() != '"':
            self.fail_at_token("a key in double quotes is expected")
        key = self.string()
        container.step = key
        if self.peek() != ":":
            self.stop(f"a colon is expected after the key {key!r}", self.end, hint="write a ':'")
        self.take(1)
        if key in members:
            first = members[key].key_at
            self.add(
                "V-TOP-01",
                f"the key {key!r} is given twice",
                key_at,
                hint="keep one of them",
                related=(key_at if first is None else first, "it is first given here"),
            )
        span = self.value()
        span.key_at = key_at
        members[key] = span

    def item(self, container: _Open) -> None:
        members = container.span.members
        assert isinstance(members, list)
        container.step = str(len(members))
        members.append(self.value())

    def value(self) -> Span:
        found = self.peek()
        self.values += 1
        if self.values > self.limits.max_values:
            self.stop(f"more than {self.limits.max_values} values", code="READ-04")
        span = Span(self.at)
        if found == '"':
            self.string()
        elif found in _CLOSERS:
            if len(self.open) >= self.limits.max_depth:
                message = f"nested deeper than {self.limits.max_depth} levels"
                self.stop(message, code="READ-03", hint=TOO_DEEP)
            span.members = {} if found == "{" else []
            self.open.append(_Open(span, found))
            self.take(1)
        else:
            self.scalar()
        return span

    def scalar(self) -> None:
        if number := _NUMBER.match(self.text, self.at):
            self.number(number[0])
            self.take(len(number[0]))
            return
        word = self.word()
        if word in _NOT_FINITE:
            self.add(
                "READ-02", f"{word} is not a JSON number", self.at, hint="use null or a string"
            )
        elif word not in _CONSTANTS:
            self.fail_at_token("a value is expected")
        self.take(len(word))

    def number(self, digits: str) -> None:
        if digits.lstrip("-").isdigit():
            if len(digits.lstrip("-")) > MAX_DIGITS:
                message = f"an integer of more than {MAX_DIGITS} digits"
                self.add("READ-02", message, self.at, hint=QUOTED)
        elif float(digits) in (float("inf"), float("-inf")):
            message = f"{digits} is too large for a number"
            self.add("READ-02", message, self.at, hint=QUOTED)

    def string(self) -> str:
        """Read a string and return its value."""
        if plain := _PLAIN.match(self.text, self.at):
            self.at = self.end = plain.end()
            return plain[0][1:-1]
        at = self.end_of_characters()
        found = self.text[at : at + 1]
        if found != '"':
            self.bad_string(at, found)
        token = self.text[self.at : at + 1]
        value = token[1:-1]
        if "\\" in value:
            value = json.loads(token)
            if _SURROGATE_ESCAPE.search(token) and SURROGATE.search(value):
                self.add("READ-09", "a lone surrogate is not a character", self.at, hint=ALONE)
        self.take(len(token))
        return value

    def end_of_characters(self) -> int:
        """Return the offset of the first character that does not continue the string here."""
        at, end = self.at, self.at + 1
        while end > at and not self.text.startswith('"', end):
            at = end
            match = _CHARACTERS.match(self.text, at)
            assert match is not None
            end = match.end()
        return end

    def bad_string(self, at: int, found: str) -> NoReturn:
        if found == "\\":
            escape = self.text[at : at + 2]
            self.stop(f"{escape} is not an escape of JSON", at, hint=r"a backslash is written \\")
        if found in ("", "\n", "\r"):
            self.stop(
                "the string is not closed",
                self.at,
                hint=r"add the closing quote; a line break inside is written \n",
            )
        self.stop(
            f"the control character U+{ord(found):04X} in a string",
            at,
            hint=f"write it as \\u{ord(found):04x}" if found != "\t" else r"write it as \t",
        )

    def fail_at_token(self, expected: str) -> NoReturn:
        """Stop at an unexpected token, with the usual reasons for it."""
        found = self.peek()
        word = self.word()
        if not found:
            if self.open:
                self.fail_unclosed(self.open[-1])
            self.stop(f"{expected}, but the text ends", self.at)
        self.stop(f"{expected}, found {word!r}", hint=self.advice(found, word, expected))

    def advice(self, found: str, word: str, expected: str) -> str | None:
        if found in _QUOTES:
            return 'strings take double quotes: "..."'
        if found == ",":
            return "take this comma out, or write what is missing before it"
        if found == "#" or self.text.startswith(("//", "/*"), self.at):
            return 'JSON has no comments; put the text into a "Comment" field'
        if found.isdigit() or found in "+-.":
            return "a number is written like 0, -12, 0.5 or 1e6: no sign +, no leading zeros"
        if meant := _MEANT.get(word.lower(), word.lower() if word.lower() in _CONSTANTS else None):
            return f"write {meant}"
        if placeholder := PLACEHOLDER.match(self.text, self.at):
            return f"give it a value: --var {placeholder[1]}=..."
        if found.isalpha() or found in "_$":
            return f'put it in double quotes: "{word}"'
        return None

    def no_comma(self, found: str) -> NoReturn:
        if found in "#/":
            self.fail_at_token("a comma or the end is expected")
        if found == "=" or found == ":":
            self.stop(f"a comma or the end is expected, found {found!r}")
        self.stop("a comma is missing here", self.end, hint="separate members with ','")

    def fail_unclosed(self, container: _Open) -> NoReturn:
        self.stop(
            f"the text ends inside {container.bracket!r}",
            self.end,
            hint=f"add the closing {container.closer!r}",
            related=(container.at, f"{container.bracket!r} is opened here"),
        )

    def peek(self) -> str:
        """Skip blanks and return the next character, "" at the end."""
        found = self.text[self.at : self.at + 1]
        if found > " ":
            return found
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks is not None
        self.at = blanks.end()
        return self.text[self.at : self.at + 1]

    def word(self) -> str:
        """Return the characters up to the next blank or bracket, at least one."""
        match = _WORD.match(self.text, self.at)
        return match[0] if match else self.text[self.at : self.at + 1]

    def take(self, length: int) -> None:
        self.at += length
        self.end = self.at

    def pointer(self) -> str:
        return pointer_to(container.step for container in self.open)

    def add(
        self,
        code: str,
        message: str,
        offset: int,
        hint: str | None = None,
        related: tuple[int, str] | None = None,
    ) -> None:
        self.faults.append(Fault(code, message, offset, hint, self.pointer(), related))
        if len(self.faults) >= MAX_FAULTS:
            raise _Stop

    def stop(
        self,
        message: str,
        offset: int | None = None,
        *,
        code: str = "READ-01",
        hint: str | None = None,
        related: tuple[int, str] | None = None,
    ) -> NoReturn:
        self.add(code, message, self.at if offset is None else offset, hint, related)
        raise _Stop
