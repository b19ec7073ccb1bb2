"""Positions of the Language Server Protocol: lines, and UTF-16 units within them."""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from lsprotocol.types import Position, Range

__all__ = ["TextIndex"]

_BREAK: Final = re.compile(r"\r\n|\n|\r")


class TextIndex:
    """A text, with conversions between offsets (characters from 0) and positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_ascii = text.isascii()

    @cached_property
    def starts(self) -> list[int]:
        """The offsets at which the lines begin."""
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Return the position of the character at an offset."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        column = offset - self.starts[line]
        if not self._is_ascii:
            column += _wide_characters(self.text, self.starts[line], offset)
        return Position(line, column)

    def range(self, start: int, end: int) -> Range:
        """Return the range between two offsets."""
        return Range(self.position(start), self.position(end))

    def offset(self, position: Position) -> int:
        """Return the offset of a position; the nearest one for a position outside of the text."""
        if position.line >= len(self.starts):
            return len(self.text)
        start = self.starts[position.line]
        end = self.line_end(position.line)
        if self._is_ascii:
            return min(start + position.character, end)
        units = position.character
        while units > 0 and start < end:
            units -= 2 if self.text[start] > "\uffff" else 1
            start += 1
        return start

    def line_end(self, line: int) -> int:
        """Return the offset after the last character of a line, without its break."""
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        while end > self.starts[line] and self.text[end - 1] in "\r\n":
            end -= 1
        return end

    def place_offset(self, line: int, column: int) -> int:
        """Return the offset of a place of a diagnostic: it counts characters from 1, lines by \\n.

        Args:
            line: The line.
            column: The column.
        """
        start = self._line_feeds[min(line, len(self._line_feeds)) - 1]
        return min(start + column - 1, len(self.text))

    @cached_property
    def _line_feeds(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]


def _wide_characters(text: str, start: int, end: int) -> int:
    """Return the number of characters that are two units in UTF-16."""
    return sum(each > "\uffff" for each in text[start:end])
