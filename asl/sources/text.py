"""Composed texts with the source position of each character."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from json import dumps, loads
from typing import NamedTuple

from asl.core.opaque import PLACEHOLDER

__all__ = ["TextRun", "TrackedText", "join_texts", "string_meaning", "track_scalar"]

_SIGNIFICANT = re.compile(
    r"""\\.|"|(?P<placeholder>\$\{[^{}]++\}(?:[\w.+-]|\$\{[^{}]++\})*+)""", re.DOTALL
)


class TextRun(NamedTuple):
    """Characters of a text from `start` on.

    With `moving` they are consecutive in the source from `origin` on, otherwise all are at
    `origin`. `inserted` characters are a value that replaced a reference.
    """

    start: int
    origin: int
    moving: bool
    inserted: bool


class TrackedText:
    """A string with the source offset of each character."""

    __slots__ = ("runs", "string")

    def __init__(self, string: str, runs: list[TextRun]) -> None:
        self.string = string
        self.runs = runs

    @classmethod
    def from_source(cls, string: str, origin: int) -> TrackedText:
        """Return characters that are consecutive in the source."""
        return cls(string, [TextRun(0, origin, True, False)])

    @classmethod
    def at_offset(cls, string: str, origin: int) -> TrackedText:
        """Return characters of the source with a common offset."""
        return cls(string, [TextRun(0, origin, False, False)])

    @classmethod
    def insertion(cls, string: str, origin: int) -> TrackedText:
        """Return a value inserted at an offset."""
        return cls(string, [TextRun(0, origin, False, True)])

    @property
    def begin(self) -> int:
        """The offset of the first character."""
        return self.runs[0].origin

    def origin(self, position: int) -> int:
        """Return the offset of the character at a position."""
        run = self.runs[bisect_right(self.runs, position, key=_start) - 1]
        return run.origin + (position - run.start if run.moving else 0)

    def is_inserted(self, position: int) -> bool:
        """Return whether the character at a position belongs to an inserted value."""
        return self.runs[bisect_right(self.runs, position, key=_start) - 1].inserted

    def part(self, start: int, end: int) -> TrackedText:
        """Return the characters from one position up to another."""
        first = bisect_right(self.runs, start, key=_start) - 1
        last = max(first + 1, bisect_right(self.runs, end - 1, key=_start))
        runs = [run._replace(start=run.start - start) for run in self.runs[first:last]]
        runs[0] = runs[0]._replace(start=0, origin=self.origin(start))
        return TrackedText(self.string[start:end], runs)

    def pieces(self) -> Iterator[tuple[int, int, bool]]:
        """Yield `(start, end, inserted)` for source and inserted parts in turn."""
        start, inserted = 0, self.runs[0].inserted
        for run in self.runs:
            if run.inserted or inserted:
                if run.start > start:
                    yield start, run.start, inserted
                start, inserted = run.start, run.inserted
        yield start, len(self.string), inserted

    def escape_for_json(self) -> tuple[TrackedText, list[str]]:
        """Return the text as JSON, and the inserted values that had to be escaped.

        AWS inserts values unchanged. Here a value is escaped if it would end or break the JSON
        string around it. A placeholder without a value becomes a string where a JSON value is
        expected.
        """
        pieces: list[TrackedText] = []
        escaped: list[str] = []
        inside = False
        for start, end, inserted in self.pieces():
            if inserted and inside:
                piece = self.part(start, end)
                content = _content(piece.string)
                if content != piece.string:
                    piece = TrackedText.insertion(content, piece.begin)
                    if PLACEHOLDER.fullmatch(self.string, start, end) is None:
                        escaped.append(self.string[start:end])
                pieces.append(piece)
                continue
            for found in _SIGNIFICANT.finditer(self.string, start, end):
                if found[0] == '"':
                    inside = not inside
                elif found["placeholder"] and not inside:
                    pieces.append(self.part(start, found.start()))
                    pieces.append(
                        TrackedText.at_offset(dumps(found[0]), self.origin(found.start()))
                    )
                    start = found.end()
            inside = inside and not inserted
            pieces.append(self.part(start, end))
        return join_texts(pieces, self.begin), escaped


def join_texts(texts: Iterable[TrackedText], origin: int) -> TrackedText:
    """Return the texts joined; an empty result has the given origin."""
    strings: list[str] = []
    runs: list[TextRun] = []
    length = 0
    for text in texts:
        if text.string:
            strings.append(text.string)
            runs += [TextRun(run[0] + length, run[1], run[2], run[3]) for run in text.runs]
            length += len(text.string)
    return TrackedText("".join(strings), runs or [TextRun(0, origin, False, False)])


def _content(value: str) -> str:
    """Return the contents of a JSON string for a value: the value itself if JSON allows it."""
    try:
        loads(f'"{value}"')
    except ValueError:
        return dumps(value, ensure_ascii=False)[1:-1]
    return value


def string_meaning(content: str) -> str:
    """Return the value of a JSON string with these contents; the contents if it is invalid."""
    try:
        meaning: str = loads(f'"{content}"')
    except ValueError:
        return content
    return meaning


def _start(run: TextRun) -> int:
    return run.start


_PROPERTIES = re.compile(r"(?:[!&]\S*\s+)*")
_HEADER = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\r?\n")
_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"\S+")
_QUOTED = re.compile(
    r"""(?P<fold>[ \t]*(?:\r?\n[ \t]*)+)
      | (?P<joint>\\\r?\n[ \t]*)
      | (?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
      | (?P<escape>\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.))
      | (?P<plain>[^"\\\ \t\r\n]+|[ \t]+)""",
    re.VERBOSE,
)


def track_scalar(value: str, source: str, offset: int) -> TrackedText:
    """Return the value of a scalar at an offset of the source, with the positions of its parts.

    A tag or an anchor may precede it. All characters of an unusual notation have the position of
    its start.
    """
    properties = _PROPERTIES.match(source, offset)
    at = properties.end() if properties else offset
    runs = list(
        _double(source, at + 1) if source[at : at + 1] == '"' else _words(value, source, at)
    )
    merged: list[TextRun] = []
    for run in runs:
        if run.start < 0 or run.start > len(value):
            return TrackedText.at_offset(value, offset)
        if not merged or run.origin - run.start != merged[-1].origin - merged[-1].start:
            merged.append(run)
    if not merged or merged[0].start:
        merged.insert(0, TextRun(0, at, False, False))
    return TrackedText(value, merged)


def _double(source: str, at: int) -> Iterator[TextRun]:
    """Yield a run for every part of a double-quoted string, by the rules of JSON and YAML."""
    start = 0
    while token := _QUOTED.match(source, at):
        yield TextRun(start, at, True, False)
        at = token.end()
        match token.lastgroup:
            case "plain":
                start += len(token[0])
            case "fold":
                start += max(1, token[0].count("\n") - 1)
            case "escape" | "pair":
                start += 1


def _words(value: str, source: str, at: int) -> Iterator[TextRun]:
    """Yield a run for every word of a plain, single-quoted or block scalar."""
    single = source[at : at + 1] == "'"
    if single:
        at += 1
    elif header := _HEADER.match(source, at):
        at = header.end()
    for word in _WORD.finditer(value):
        blanks = _BLANKS.match(source, at)
        at = blanks.end() if blanks else at
        start = word.start()
        for part in word[0].split("'") if single else [word[0]]:
            if not source.startswith(part, at):
                yield TextRun(-1, at, False, False)
                return
            yield TextRun(start, at, True, False)
            start += len(part) + 1
            at += len(part) + 2 * single
        at -= 2 * single
