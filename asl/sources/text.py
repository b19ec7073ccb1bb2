"""Composed texts with the source position of each character."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from json import dumps, loads
from typing import NamedTuple

from asl.core.opaque import PLACEHOLDER

__all__ = ["Run", "TrackedText", "join_texts", "string_meaning"]

_SIGNIFICANT = re.compile(
    r"""\\.|"|(?P<placeholder>\$\{[^{}]++\}(?:[\w.+-]|\$\{[^{}]++\})*+)""", re.DOTALL
)


class Run(NamedTuple):
    """Characters from `start` on: written at `origin` one after the other, or all at one offset.

    `inserted` characters are a value that replaced a reference.
    """

    start: int
    origin: int
    moving: bool
    inserted: bool


class TrackedText:
    """A string whose characters know their offsets in the source."""

    __slots__ = ("runs", "string")

    def __init__(self, string: str, runs: list[Run]) -> None:
        self.string = string
        self.runs = runs

    @classmethod
    def written(cls, string: str, origin: int) -> TrackedText:
        """Return characters that are consecutive in the source."""
        return cls(string, [Run(0, origin, True, False)])

    @classmethod
    def at(cls, string: str, origin: int) -> TrackedText:
        """Return characters of the source with a common offset."""
        return cls(string, [Run(0, origin, False, False)])

    @classmethod
    def inserted(cls, string: str, origin: int) -> TrackedText:
        """Return a value inserted at an offset."""
        return cls(string, [Run(0, origin, False, True)])

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
        """Yield `(start, end, inserted)` for written and inserted parts in turn."""
        start, inserted = 0, self.runs[0].inserted
        for run in self.runs:
            if run.inserted or inserted:
                if run.start > start:
                    yield start, run.start, inserted
                start, inserted = run.start, run.inserted
        yield start, len(self.string), inserted

    def for_json(self) -> tuple[TrackedText, list[str]]:
        """Return the text as JSON, and the inserted values that had to be escaped.

        AWS inserts a value unchanged. So does this, unless the value would end or break the JSON
        string around it: such a value is escaped. A placeholder without a value becomes a string
        where a JSON value is expected.
        """
        pieces: list[TrackedText] = []
        escaped: list[str] = []
        inside = False
        for start, end, inserted in self.pieces():
            if inserted and inside:
                piece = self.part(start, end)
                content = _content(piece.string)
                if content != piece.string:
                    piece = TrackedText.inserted(content, piece.begin)
                    if PLACEHOLDER.fullmatch(self.string, start, end) is None:
                        escaped.append(self.string[start:end])
                pieces.append(piece)
                continue
            for found in _SIGNIFICANT.finditer(self.string, start, end):
                if found[0] == '"':
                    inside = not inside
                elif found["placeholder"] and not inside:
                    pieces.append(self.part(start, found.start()))
                    pieces.append(TrackedText.at(dumps(found[0]), self.origin(found.start())))
                    start = found.end()
            inside = inside and not inserted
            pieces.append(self.part(start, end))
        return join_texts(pieces, self.begin), escaped


def join_texts(texts: Iterable[TrackedText], origin: int) -> TrackedText:
    """Return the texts joined; an empty result has the given origin."""
    strings: list[str] = []
    runs: list[Run] = []
    length = 0
    for text in texts:
        if text.string:
            strings.append(text.string)
            runs += [Run(run[0] + length, run[1], run[2], run[3]) for run in text.runs]
            length += len(text.string)
    return TrackedText("".join(strings), runs or [Run(0, origin, False, False)])


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


def _start(run: Run) -> int:
    return run.start
