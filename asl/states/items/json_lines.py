"""JSON Lines: one item a line."""

from collections.abc import Iterator
from operator import length_hint
from typing import BinaryIO

import orjson

from asl.core.values import Json
from asl.states.items.base import SHALLOW, Outline, parsed
from asl.states.items.lines import read_lines

__all__ = ["read_json_lines"]


BLANKS = b" \t\r\n"


def read_json_lines(file: BinaryIO, form: Outline) -> Iterator[Json]:
    """Yield the value of every line; blank lines are passed over."""
    before = 0
    for lines in read_lines(file, form.longest, BLANKS):
        if max(map(len, lines)) > SHALLOW:
            for number, line in enumerate(lines, before + 1):
                if line.strip():
                    yield parsed(line, number)
        elif any(map(bytes.strip, lines)):
            yield from _shallow(lines, before)
        before += len(lines)


def _shallow(lines: list[bytes], before: int) -> Iterator[Json]:
    """Yield the values of lines in which nothing but the syntax can be wrong, at full speed."""
    rest = iter(lines)
    while length_hint(rest):
        try:
            yield from map(orjson.loads, rest)
        except orjson.JSONDecodeError:
            at = len(lines) - length_hint(rest)
            if lines[at - 1].strip():
                yield parsed(lines[at - 1], before + at)
