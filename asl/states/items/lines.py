"""Lines of a file, a block of them at a time: reading them one by one would cost twice as much."""

from collections.abc import Iterator
from operator import length_hint
from typing import BinaryIO

import orjson

from asl.core.values import Json
from asl.states.items.base import SHALLOW, DataFault, DataFormat, parse_json

__all__ = ["read_json_lines", "read_lines"]

BLOCK = 1 << 16
"""Bytes of a block."""
MAX_BLANK = 1 << 20
"""Bytes of blank lines in succession: nothing else is done while they are passed over."""


def read_lines(file: BinaryIO, longest: int, blanks: bytes) -> Iterator[list[bytes]]:
    """Yield the lines without their ends, some at a time; none has more than *longest* bytes.

    Args:
        file: The file to read.
        longest: Maximum bytes of a line.
        blanks: The characters of blank lines.

    Raises:
        DataFault: A line is too long, or there are too many blank lines.
    """
    begun: list[bytes] = []
    size = number = blank = 0
    while block := file.read(BLOCK):
        blank = 0 if block.strip(blanks) else blank + len(block)
        if blank > MAX_BLANK:
            raise DataFault(f"more than {MAX_BLANK} bytes of blank lines", f"line {number + 1}")
        lines = block.split(b"\n")
        begun.append(lines[0])
        if len(lines) > 1:
            lines[0] = b"".join(begun)
            begun = [lines.pop()]
            size = len(begun[0])
            if max(map(len, lines)) > longest:
                number += next(at for at, line in enumerate(lines, 1) if len(line) > longest)
                raise _too_long(number, longest)
            number += len(lines)
            yield lines
        else:
            size += len(block)
            if size > longest:
                raise _too_long(number + 1, longest)
    if size:
        yield [b"".join(begun)]


def _too_long(line: int, longest: int) -> DataFault:
    return DataFault(f"longer than {longest} bytes", f"line {line}")


BLANKS = b" \t\r\n"


def read_json_lines(file: BinaryIO, form: DataFormat) -> Iterator[Json]:
    """Yield the value of every line; blank lines are passed over."""
    before = 0
    for lines in read_lines(file, form.longest, BLANKS):
        if max(map(len, lines)) > SHALLOW:
            for number, line in enumerate(lines, before + 1):
                if line.strip():
                    yield parse_json(line, number)
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
                yield parse_json(lines[at - 1], before + at)
