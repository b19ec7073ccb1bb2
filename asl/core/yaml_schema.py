"""The schemas of YAML 1.2 and 1.1: the meaning of scalars, tags and keys."""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from asl.core.values import MAX_DIGITS, Json

__all__ = ["CONSTANTS", "CORE", "PLATFORM", "Schema", "yaml_1_1_schema"]

CONSTANTS: Final[Mapping[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
"""The plain scalars of the core schema that stand for a constant."""


class Schema(NamedTuple):
    """What scalars, tags and keys mean.

    `words` are the plain scalars that stand for a constant. A tag of `tags` (`!Sub`) makes its node
    the only member of an object, under the key that the table gives. `old` is YAML 1.1: merge keys
    (`<<`) are followed, and a key may be any scalar. `expand` rewrites every scalar before it is
    resolved. `number` reads what begins like a number, where that is not as in YAML 1.2.
    """

    words: Mapping[str, Json]
    tags: Mapping[str, str]
    old: bool = False
    expand: Callable[[str], str] | None = None
    number: Callable[[str], Json] | None = None


CORE = Schema(CONSTANTS, {})
"""The core schema of YAML 1.2."""


_CASES = (str.lower, str.capitalize, str.upper)


def yaml_1_1_schema(tags: Mapping[str, str]) -> Schema:
    """The schema of YAML 1.1, where `yes` and `off` are booleans."""
    words = {word: word in ("yes", "on") for word in ("yes", "no", "on", "off")}
    cased = {form(word): value for word, value in words.items() for form in _CASES}
    return Schema({**CONSTANTS, **cased}, tags, old=True)


_OLD_INTEGER = (
    r"(?P<sign>[-+]?)(?:0b(?P<two>[01_]+)|0x(?P<sixteen>[0-9a-fA-F_]+)|0(?P<eight>[0-7_]+)"
    r"|(?P<sixty>[1-9][0-9_]*(?::[0-5]?[0-9])+)|(?P<ten>0|[1-9][0-9_]*))"
)
_OLD_FLOAT = r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)"
"""Compiled when the first number of YAML 1.1 is read: most runs read none."""
_RADIXES = {"two": 2, "eight": 8, "ten": 10, "sixteen": 16}


def _old_number(text: str) -> Json:
    """The number that a plain scalar is in YAML 1.1, else the text."""
    if len(text) > MAX_DIGITS:
        return text
    if match := re.fullmatch(_OLD_INTEGER, text, re.ASCII):
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
    if re.fullmatch(_OLD_FLOAT, text, re.ASCII):
        return float(text.replace("_", ""))
    return text


PLATFORM: Final = yaml_1_1_schema({})._replace(number=_old_number)
"""The schema of YAML 1.1 with its numbers: `010` is eight, `12:30` is 750, `1e3` is text."""
