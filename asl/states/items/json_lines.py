"""JSON Lines: one item a line."""

from collections.abc import Iterator
from typing import BinaryIO

import orjson

from asl.core.values import Json
from asl.states.items.base import SHALLOW, Form, parsed
from asl.states.items.lines import read_lines

__all__ = ["read_json_lines"]


def read_json_lines(file: BinaryIO, form: Form) -> Iterator[Json]:
    """Yield the value of every line; blank lines are passed over."""
    loads = orjson.loads
    before = 0
    for lines in read_lines(file, form.longest):
        for number, line in enumerate(lines, before + 1):
            if len(line) <= SHALLOW:  # nothing but its syntax can be wrong
                try:
                    yield loads(line)
                    continue
                except orjson.JSONDecodeError:
                    if not line.strip():
                        continue
            yield parsed(line, number)
        before += len(lines)
