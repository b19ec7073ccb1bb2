"""JSON Lines: one item a line."""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import orjson

from asl.core.values import Json
from asl.states.items.base import SHALLOW, Fault, Form, parsed

__all__ = ["read_json_lines"]


def read_json_lines(file: BinaryIO, form: Form) -> Iterator[Json]:
    """Yield the value of every line; blank lines are passed over."""
    loads = orjson.loads
    number = 0
    for line in iter(partial(file.readline, form.longest + 1), b""):
        number += 1
        if len(line) <= SHALLOW:  # nothing but its syntax can be wrong
            try:
                yield loads(line)
                continue
            except orjson.JSONDecodeError:
                if line.isspace():
                    continue
        elif len(line) > form.longest:
            raise Fault(f"longer than {form.longest} bytes", f"line {number}")
        yield parsed(line, number)
