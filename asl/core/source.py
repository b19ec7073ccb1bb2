"""The text of a document, and positions in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from asl.core.lazy import lazy_pattern
from asl.core.pointers import tokens
from asl.core.values import MAX_DEPTH, Json, index_of


class Place(NamedTuple):
    """A position in a text; line and column count from 1. None without a text."""

    line: int | None = None
    column: int | None = None


class Source(NamedTuple):
    """The origin of a document.

    `name` is its path as the caller wrote it; `format` is `json`, `yaml`, or `value` for a Python
    value without a text.
    """

    name: str | None = None
    text: str | None = None
    format: str = "value"

    def place(self, offset: int) -> Place:
        """Return the position of the character at an offset."""
        if self.text is None:
            return Place()
        blocks = _line_blocks(self.text)
        block = min(offset // _BLOCK, len(blocks) - 1)
        line, start = blocks[block]
        line += self.text.count("\n", block * _BLOCK, offset)
        start = max(start, self.text.rfind("\n", block * _BLOCK, offset) + 1)
        return Place(line, offset - start + 1)

    def line(self, number: int) -> str:
        """Return the text of a line (from 1) without its end; empty beyond the last."""
        text = self.text or ""
        blocks = _line_blocks(text)
        block = bisect_left(blocks, (number, -1)) - 1
        line, start = blocks[max(block, 0)]
        for _ in range(number - line):
            start = text.find("\n", start) + 1
            if not start:
                return ""
        end = text.find("\n", start)
        return text[start : None if end < 0 else end].rstrip("\r")

    def offset(self, place: Place) -> int:
        """Return the offset of the character at a position; the inverse of `place`."""
        lines = (self.text or "").split("\n")[: (place.line or 1) - 1]
        return sum(len(line) + 1 for line in lines) + (place.column or 1) - 1


_BLOCK = 4096
"""Characters of a block of a text: what is known of its lines is kept for each of them."""


@lru_cache(maxsize=1)
def _line_blocks(text: str) -> list[tuple[int, int]]:
    """Return the line of each block of a text, and the offset of that line."""
    blocks = []
    line, start = 1, 0
    for at in range(0, len(text) + 1, _BLOCK):
        blocks.append((line, start))
        line += text.count("\n", at, at + _BLOCK)
        start = max(start, text.rfind("\n", at, at + _BLOCK) + 1)
    return blocks


class Limits(NamedTuple):
    """The bounds of reading; larger input is refused.

    Bytes are those of the text in UTF-8. YAML has smaller bounds, because its parser is a hundred
    times slower: its values are counted with every alias expanded, its nodes (keys, values and
    anchors) as written.
    """

    max_bytes: int = 16 * 1024 * 1024
    max_values: int = 1_000_000
    max_depth: int = MAX_DEPTH
    max_yaml_bytes: int = 1024 * 1024
    max_yaml_values: int = 200_000
    max_yaml_nodes: int = 40_000
    max_aliases: int = 100


class Fault(NamedTuple):
    """A syntax error of a text. Offsets count characters; `related` is (offset, message)."""

    code: str
    message: str
    offset: int
    hint: str | None = None
    pointer: str = ""
    related: tuple[int, str] | None = None


DEFAULT_LIMITS = Limits()

DOCUMENT_LIMITS = Limits(max_values=100_000, max_yaml_values=100_000)
"""What reading accepts as a document: each of its values is work for many rules."""

MAX_FAULTS = 100
"""The number of faults after which reading stops."""


class Span:
    """The offsets of a value and its key, and of its members."""

    __slots__ = ("at", "key_at", "members")

    def __init__(self, at: int, members: dict[str, Span] | list[Span] | None = None) -> None:
        self.at = at
        self.key_at: int | None = None
        self.members = members

    def member(self, token: str) -> Span | None:
        """Return the span of one member, named by a token of a JSON Pointer."""
        if isinstance(self.members, dict):
            return self.members.get(token)
        index = None if self.members is None else index_of(token, self.members)
        return None if self.members is None or index is None else self.members[index]

    def find(self, pointer: str, at_key: bool) -> int:
        """Return the offset of the value, or of its key, at a pointer.

        Without a value there it is the offset of the nearest ancestor: its key if it has one.
        """
        span = self
        for token in tokens(pointer):
            member = span.member(token)
            if member is None:
                at_key = True
                break
            span = member
        return span.key_at if at_key and span.key_at is not None else span.at


_CHARACTER = lazy_pattern(
    r"\\u[dD][89abAB][\dA-Fa-f]{2}\\u[dD][c-fC-F][\dA-Fa-f]{2}|\\u[\dA-Fa-f]{4}|\\.|.", re.DOTALL
)
"""One character of a string in double quotes, as it is written."""


def character(text: str, start: int, value: str, index: int) -> int:
    """Return the offset of a character within a string of the text.

    Where it cannot be determined, as in a folded YAML text, it is the start of the string.
    """
    if text.startswith('"', start):
        offset = start + 1
        for _ in range(index):
            written = _CHARACTER.match(text, offset)
            if written is None:
                return start
            offset = written.end()
        return offset
    *before, last = value[:index].split("\n")
    lines, offset = value.split("\n"), start
    for line in lines[: len(before) + 1]:
        offset = text.find(line, offset)
        if offset < 0:
            return start
        offset += len(line)
    return offset - len(lines[len(before)]) + len(last)


def spans_of(value: Json) -> Span:
    """Return spans for a value without text: members numbered in the order of appearance."""
    root = Span(0)
    todo = [(root, value)]
    count = 0
    while todo:
        span, item = todo.pop()
        span.at = count
        count += 1
        if type(item) is dict:
            span.members = {key: Span(0) for key in item}
            todo.extend(reversed(list(zip(span.members.values(), item.values(), strict=True))))
        elif type(item) is list:
            span.members = [Span(0) for _ in item]
            todo.extend(reversed(list(zip(span.members, item, strict=True))))
    return root


class WrittenDocument(Protocol):
    """A document with positions in texts (`asl.core.document.Document`)."""

    @property
    def value(self) -> Json:
        """The parsed value."""
        ...

    @property
    def source(self) -> Source:
        """The text."""
        ...

    @property
    def sources(self) -> Mapping[str | None, Source]:
        """The source texts by name; the document's own is the first."""
        ...

    def origin(self, pointer: str) -> tuple[WrittenDocument, str]:
        """Return the document in which the value at a JSON Pointer is written, and its place."""
        ...

    def offset(self, pointer: str, at_key: bool = False, inside: int | None = None) -> int:
        """Return where the value (or its key) at a JSON Pointer begins."""
        ...

    def locate(self, pointer: str, at_key: bool = False, inside: int | None = None) -> Place:
        """Return the place of the value (or of its key) at a JSON Pointer."""
        ...
