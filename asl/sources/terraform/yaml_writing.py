"""YAML as Terraform's `yamlencode` writes it: block style, sorted keys, quoted strings."""

import re
from collections.abc import Iterator

from asl.core.values import Json, compact

__all__ = ["written"]

_BLOCK = re.compile(r"\S(?:(?s:.*)\S)?\n?")
"""A text that keeps its blanks when it is written line by line."""


def written(value: Json) -> str:
    """The text of a value, with the end of its last line."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Json) -> Iterator[str]:
    if type(value) is dict and value:
        for key in sorted(value):
            yield from _member(f"{compact(key)}:", value[key])
    elif type(value) is list and value:
        for item in value:
            first, *others = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" if line else line for line in others)
    elif type(value) is str and "\n" in value and _BLOCK.fullmatch(value):
        yield "|" if value.endswith("\n") else "|-"
        yield from (f"  {line}" if line else line for line in value.removesuffix("\n").split("\n"))
    else:
        yield compact(value)


def _member(key: str, value: Json) -> Iterator[str]:
    lines = list(_lines(value))
    if type(value) in (dict, list) and value:
        yield key
        inner = "  " if type(value) is dict else ""  # the items of a list stand below its key
        yield from (f"{inner}{line}" if line else line for line in lines)
    else:
        yield f"{key} {lines[0]}"
        yield from lines[1:]
