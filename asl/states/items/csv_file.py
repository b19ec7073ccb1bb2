"""CSV: one item a row, an object of texts by the names of the columns.

As with AWS a missing field is an empty text and a surplus one is left out, a backslash takes the
special meaning from the next character, a doubled quotation mark is one of the text in any field,
and all values are texts.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from asl.core.values import Json
from asl.states.items.base import DataFault, DataFormat
from asl.states.items.lines import read_lines

__all__ = ["read_csv"]

MAX_LINE = 4 * 1024 * 1024
"""Bytes of a line: marks in it are looked for one by one."""
MAX_COLUMNS = 100_000
"""Columns of a row, delimiters within quotation marks included."""
_PLAIN = {"unexpected end of data": "a quotation mark is not closed"}
"""What to say instead of what the library says."""


def read_csv(file: BinaryIO, form: DataFormat) -> Iterator[Json]:
    """Yield every row; skip empty lines.

    Raises:
        DataFault: The file is not CSV, or a row is too large.
    """
    import csv

    longest = min(form.longest, MAX_LINE)
    size = _RowSize(form.delimiter, 2 * longest)
    lines = _escaped(size.count_lines(_lines(file, longest)), form.delimiter)
    rows = csv.reader(lines, delimiter=form.delimiter, escapechar="\\", strict=True)
    done = 0
    """The lines of the rows that have been read."""
    try:
        headers = form.headers
        if headers is None:
            headers = tuple(next(filter(None, rows), ()))
        if len(set(headers)) < len(headers):
            raise DataFault("CSV headers cannot contain duplicates.")
        done, width = rows.line_num, len(headers)
        first = next(rows, None)
        if first is None and form.aws and form.headers is None and headers:
            raise DataFault("The file contains only CSV headers.")
        for row in chain(() if first is None else (first,), rows):
            done = rows.line_num
            size.bytes = size.columns = 0
            if len(row) == width:
                yield dict(zip(headers, row, strict=True))
            elif row:
                row += [""] * (width - len(row))
                yield dict(zip(headers, row, strict=False))
    except csv.Error as error:
        message = _PLAIN.get(str(error), str(error))
        raise DataFault(message, f"the row that begins in line {done + 1}") from None


class _RowSize:
    """Counts the lines of the row that is read now."""

    def __init__(self, delimiter: str, most: int) -> None:
        self.delimiter = delimiter
        self.most = most
        self.bytes = self.columns = 0

    def count_lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines, and count them; raises DataFault for too large a row."""
        for number, line in enumerate(lines, 1):
            self.bytes += len(line)
            self.columns += line.count(self.delimiter)
            if self.bytes > self.most:
                raise DataFault(f"a row of more than {self.most} bytes", f"line {number}")
            if self.columns > MAX_COLUMNS:
                raise DataFault(f"a row of more than {MAX_COLUMNS} columns", f"line {number}")
            yield line


_QUOTED = re.compile(r'(?:[^"\\]++|""|\\.)*+("?)', re.DOTALL)
"""The rest of a field in quotation marks, as far as the line has it, with the mark that ends it."""
_DOUBLED = re.compile(r'(?:\\.)++|""', re.DOTALL)


def _escaped(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """Escape doubled quotation marks in fields that have none around, where `csv` keeps both."""
    rest = re.compile(rf"(?:[^\\{delimiter}]++|\\.)*+{re.escape(delimiter)}?", re.DOTALL)
    quoted = False
    for line in lines:
        if '"' not in line:
            yield line
            continue
        parts, place = [], 0
        while place < len(line):
            start = place
            if quoted or line[place] == '"':
                within = _QUOTED.match(line, place if quoted else place + 1)
                assert within is not None  # both patterns match anything
                place, quoted = within.end(), not within[1]
                parts.append(line[start:place])
            if not quoted:
                after = rest.match(line, place)
                assert after is not None
                parts.append(_with_escaped_marks(after[0]))
                place = after.end()
        yield "".join(parts)


def _with_escaped_marks(field: str) -> str:
    if "\\" not in field:
        return field.replace('""', '\\"')
    return _DOUBLED.sub(_one, field)


def _one(found: re.Match[str]) -> str:
    return '\\"' if found[0] == '""' else found[0]


def _lines(file: BinaryIO, longest: int) -> Iterator[str]:
    number = 0
    encoding = "utf-8-sig"  # a mark in front is no part of the first name
    for lines in read_lines(file, longest, b"\r\n"):
        for line in lines:
            number += 1
            try:
                yield line.decode(encoding) + "\n"
            except UnicodeDecodeError as error:
                place = f"line {number}, byte {error.start + 1}"
                raise DataFault(f"no UTF-8: {error.reason}", place) from None
            encoding = "utf-8"
