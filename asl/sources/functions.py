"""The functions of Terraform that need nothing but their arguments.

Each takes and gives JSON values; ValueError and TypeError say that the arguments are wrong.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from itertools import chain
from math import ceil, floor
from posixpath import basename, dirname
from re import sub
from typing import Final

from orjson import loads

from asl.core.values import Json, compact

__all__ = ["FUNCTIONS", "text_of"]

MAX_RANGE: Final = 10_000
MAX_LENGTH: Final = 4_000_000
"""How many characters `replace` may make."""


def text_of(value: Json) -> str:
    """The value as Terraform writes it into a string."""
    if type(value) in (dict, list) or value is None:
        raise TypeError("a string is expected")
    return value if type(value) is str else compact(value)


def _number(value: int | float | str) -> int | float:
    if isinstance(value, int | float):
        return value
    number = float(text_of(value))
    return int(number) if number.is_integer() else number


def _bool(value: Json) -> bool:
    if text_of(value) not in ("true", "false"):
        raise ValueError("true or false is expected")
    return text_of(value) == "true"


def _format(template: str, *values: Json) -> str:
    """The verbs %s, %d, %v, %q and %%, without widths."""
    left = iter(values)

    def filled(verb: str) -> str:
        if verb == "%":
            return "%"
        value = next(left, None)
        return compact(text_of(value)) if verb == "q" else text_of(value)

    return sub(r"%([sdvq%])", lambda found: filled(found[1]), template)


def _replace(text: str, old: str, new: str) -> str:
    if len(old) > 1 and old[0] == old[-1] == "/":
        raise ValueError("regular expressions are not worked out")
    if len(text) + text.count(old) * len(new) > MAX_LENGTH:
        raise ValueError("the result is too long")
    return text.replace(old, new)


def _range(*limits: int) -> list[int]:
    numbers = range(*limits)
    if len(numbers) > MAX_RANGE:
        raise ValueError(f"more than {MAX_RANGE} numbers")
    return list(numbers)


def _lookup(values: dict[str, Json], key: str, *default: Json) -> Json:
    return values[key] if key in values or not default else default[0]


def _flatten(values: list[Json]) -> list[Json]:
    return [
        inner for item in values for inner in (_flatten(item) if type(item) is list else [item])
    ]


def _coalesce(*values: Json) -> Json:
    return next(value for value in values if value not in (None, ""))


def _distinct(values: list[Json]) -> list[Json]:
    return list({compact(value): value for value in reversed(values)}.values())[::-1]


def _substr(text: str, start: int, length: int) -> str:
    start = max(0, start + len(text)) if start < 0 else start
    return text[start:] if length < 0 else text[start : start + length]


def _same(value: Json) -> Json:
    return value


FUNCTIONS: Final[Mapping[str, Callable[..., Json]]] = {
    "abs": abs,
    "base64decode": lambda text: b64decode(text, validate=True).decode(),
    "base64encode": lambda text: b64encode(text.encode()).decode(),
    "basename": basename,
    "ceil": ceil,
    "chomp": lambda text: text.rstrip("\r\n"),
    "coalesce": _coalesce,
    "compact": lambda values: [value for value in values if value not in (None, "")],
    "contains": lambda values, value: value in values,
    "dirname": dirname,
    "distinct": _distinct,
    "element": lambda values, index: values[index % len(values)],
    "endswith": str.endswith,
    "flatten": _flatten,
    "floor": floor,
    "format": _format,
    "join": lambda between, *lists: between.join(map(text_of, chain(*lists))),
    "jsondecode": loads,
    "jsonencode": compact,
    "keys": sorted,
    "length": len,
    "lookup": _lookup,
    "lower": str.lower,
    "max": max,
    "min": min,
    "nonsensitive": _same,
    "one": lambda values: next(iter(values), None),
    "range": _range,
    "replace": _replace,
    "reverse": lambda values: values[::-1],
    "sensitive": _same,
    "slice": lambda values, start, end: values[start:end],
    "sort": sorted,
    "split": lambda between, text: text.split(between) if between else list(text),
    "startswith": str.startswith,
    "strcontains": lambda text, part: part in text,
    "substr": _substr,
    "title": str.title,
    "tobool": _bool,
    "tolist": _same,
    "tomap": _same,
    "tonumber": _number,
    "toset": lambda values: sorted(_distinct(values), key=text_of),
    "tostring": text_of,
    "trim": str.strip,
    "trimprefix": str.removeprefix,
    "trimspace": str.strip,
    "trimsuffix": str.removesuffix,
    "upper": str.upper,
    "values": lambda values: [values[key] for key in sorted(values)],
    "zipmap": lambda keys, values: dict(zip(keys, values, strict=True)),
}
