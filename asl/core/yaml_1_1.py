"""The schemas of YAML 1.1, which other tools read."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from asl.core.values import MAX_DIGITS, Json
from asl.core.yaml_schema import CONSTANTS, Schema

__all__ = ["PLATFORM", "old_schema"]

_CASES = (str.lower, str.capitalize, str.upper)


def old_schema(tags: Mapping[str, str]) -> Schema:
    """The schema of YAML 1.1, where `yes` and `off` are booleans."""
    words = {word: word in ("yes", "on") for word in ("yes", "no", "on", "off")}
    cased = {form(word): value for word, value in words.items() for form in _CASES}
    return Schema({**CONSTANTS, **cased}, tags, old=True)


_OLD_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0b(?P<two>[01_]+)|0x(?P<sixteen>[0-9a-fA-F_]+)|0(?P<eight>[0-7_]+)"
    r"|(?P<sixty>[1-9][0-9_]*(?::[0-5]?[0-9])+)|(?P<ten>0|[1-9][0-9_]*))",
    re.ASCII,
)
_OLD_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)", re.ASCII
)
_RADIXES = {"two": 2, "eight": 8, "ten": 10, "sixteen": 16}


def _old_number(text: str) -> Json:
    """The number that a plain scalar is in YAML 1.1, else the text."""
    if len(text) > MAX_DIGITS:
        return text
    if match := _OLD_INTEGER.fullmatch(text):
        kind = match.lastgroup or ""
        digits = match[kind].replace("_", "")
        if kind == "sixty":
            value = 0
            for part in digits.split(":"):
                value = 60 * value + int(part)
        elif digits:
            value = int(digits, _RADIXES[kind])
        else:
            return text
        return -value if match["sign"] == "-" else value
    if _OLD_FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text


PLATFORM: Final = replace(old_schema({}), number=_old_number)
"""The schema of YAML 1.1 with its numbers: `010` is eight, `12:30` is 750, `1e3` is text."""
