"""Filters and tests of the templates of transform nodes."""

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from asl.core.values import compact
from asl.dialects.codemie.functions.outputs import as_text

__all__ = ["FILTERS", "TESTS", "UNDEFINED"]

MAX_TEXT: Final = 1_000_000
"""Characters of a text that a filter makes."""


class _Undefined:
    """The value of a name that has none: false, and empty."""

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0


UNDEFINED: Final = _Undefined()


def _text(value: Any) -> str:
    return "" if value is UNDEFINED else as_text(value)


def _items(value: Any) -> list[Any]:
    """Return the items of a list, the characters of a text or the keys of an object."""
    if isinstance(value, str | list | dict):
        return list(value)
    if value is UNDEFINED:
        return []
    raise TypeError("a filter takes a list")


def _attribute(item: Any, path: Any) -> Any:
    """Return the member of an item at a path whose steps are parted by dots."""
    for step in str(path).split("."):
        if isinstance(item, dict):
            item = item.get(step, UNDEFINED)
        elif isinstance(item, list) and step.isdecimal() and int(step) < len(item):
            item = item[int(step)]
        else:
            return UNDEFINED
    return item


def _read(items: Any, attribute: Any) -> list[Any]:
    listed = _items(items)
    return listed if attribute is None else [_attribute(each, attribute) for each in listed]


def _key(value: Any, case_sensitive: bool = False) -> Any:
    return value.lower() if isinstance(value, str) and not case_sensitive else value


def _default(value: Any, default: Any = "", boolean: bool = False) -> Any:
    return default if value is UNDEFINED or (boolean and not value) else value


def _join(value: Any, between: str = "", attribute: Any = None) -> str:
    texts = [_text(each) for each in _read(value, attribute)]
    if sum(map(len, texts)) + len(texts) * len(between) > MAX_TEXT:
        raise ValueError(f"a filter gives more than {MAX_TEXT} characters")
    return between.join(texts)


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise ValueError(f"a filter gives more than {MAX_TEXT} characters")
    return text


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text = _text(value)
    if len(text) + (text.count(old) + 1) * len(new) > MAX_TEXT:
        raise ValueError(f"a filter gives more than {MAX_TEXT} characters")
    return text.replace(old, new, count)


def _tojson(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, with sorted keys and without characters of HTML, as Jinja does."""
    if value is UNDEFINED:
        raise TypeError("a missing value is no JSON")
    spaces = None if indent is None else min(int(indent), 16)
    text = json.dumps(value, indent=spaces, sort_keys=True)
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _bounded(text)


def _end(index: int) -> Callable[[Any], Any]:
    def pick(value: Any) -> Any:
        listed = _items(value)
        return listed[index] if listed else UNDEFINED

    return pick


def _sort(
    value: Any, reverse: bool = False, case_sensitive: bool = False, attribute: Any = None
) -> list[Any]:
    def key(item: Any) -> Any:
        found = item if attribute is None else _attribute(item, attribute)
        return _key(found, case_sensitive)

    return sorted(_items(value), key=key, reverse=bool(reverse))


def _unique(value: Any, case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    found: dict[Hashable, Any] = {}
    for item in _items(value):
        read = item if attribute is None else _attribute(item, attribute)
        found.setdefault(compact(_key(read, case_sensitive)), item)
    return [*found.values()]


def _sum(value: Any, attribute: Any = None, start: float = 0) -> float:
    return sum(_read(value, attribute), start)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def pick(value: Any, case_sensitive: bool = False, attribute: Any = None) -> Any:
        listed = _items(value)
        if not listed:
            return UNDEFINED
        return choose(
            listed,
            key=lambda item: _key(
                item if attribute is None else _attribute(item, attribute), case_sensitive
            ),
        )

    return pick


def _map(value: Any, name: str | None = None, *arguments: Any, attribute: Any = None) -> list[Any]:
    if name is None:
        return [_attribute(each, attribute) for each in _items(value)]
    return [FILTERS[name](each, *arguments) for each in _items(value)]


def _chosen(wanted: bool, by_attribute: bool) -> Callable[..., list[Any]]:
    """Return a filter for the items for which a test holds, or does not hold."""

    def choose(value: Any, *arguments: Any) -> list[Any]:
        attribute = arguments[0] if by_attribute else None
        test, *rest = arguments[by_attribute:] or ("truthy",)

        def holds(item: Any) -> bool:
            found = item if attribute is None else _attribute(item, attribute)
            return bool(TESTS[test](found, *rest))

        return [each for each in _items(value) if holds(each) is wanted]

    return choose


def _number(make: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(value: Any, default: Any = 0) -> Any:
        try:
            return make(float(value)) if isinstance(value, str) else make(value)
        except (TypeError, ValueError, OverflowError):
            return default

    return convert


def _round(value: float, precision: int = 0, method: str = "common") -> float:
    if method != "common":
        raise ValueError(f"there is no method {method!r} of rounding")
    return round(float(value), int(precision))


def _reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else _items(value)[::-1]


def _truncate(value: Any, length: int = 255, killwords: bool = False, end: str = "...") -> str:
    text = _text(value)
    if len(text) <= length + 5:
        return text
    kept = text[: max(length - len(end), 0)]
    return (kept if killwords else kept.rsplit(" ", 1)[0]) + end


def _pairs(value: Any) -> list[list[Any]]:
    if value is UNDEFINED:
        return []
    if not isinstance(value, dict):
        raise TypeError("'items' takes an object")
    return [[key, each] for key, each in value.items()]


def _of_text(method: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: method(_text(value))


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "capitalize": _of_text(str.capitalize),
    "count": len,
    "d": _default,
    "default": _default,
    "dictsort": lambda value: sorted(_pairs(value), key=lambda each: _key(each[0])),
    "first": _end(0),
    "float": _number(float),
    "int": _number(int),
    "items": _pairs,
    "join": _join,
    "last": _end(-1),
    "length": len,
    "list": _items,
    "lower": _of_text(str.lower),
    "map": _map,
    "max": _extreme(max),
    "min": _extreme(min),
    "reject": _chosen(False, False),
    "rejectattr": _chosen(False, True),
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "select": _chosen(True, False),
    "selectattr": _chosen(True, True),
    "sort": _sort,
    "string": _text,
    "sum": _sum,
    "title": _of_text(str.title),
    "tojson": _tojson,
    "trim": lambda value, characters=None: _text(value).strip(characters),
    "truncate": _truncate,
    "unique": _unique,
    "upper": _of_text(str.upper),
    "wordcount": _of_text(lambda text: len(text.split())),
}
"""The filters, by name; the first argument is the value."""

TESTS: Final[Mapping[str, Callable[..., Any]]] = {
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: value is not UNDEFINED,
    "divisibleby": lambda value, number: value % number == 0,
    "eq": lambda value, other: value == other,
    "equalto": lambda value, other: value == other,
    "even": lambda value: value % 2 == 0,
    "false": lambda value: value is False,
    "float": lambda value: isinstance(value, float),
    "ge": lambda value, other: value >= other,
    "gt": lambda value, other: value > other,
    "in": lambda value, items: value in items,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "iterable": lambda value: isinstance(value, str | list | dict),
    "le": lambda value, other: value <= other,
    "lower": lambda value: _text(value).islower(),
    "lt": lambda value, other: value < other,
    "mapping": lambda value: isinstance(value, dict),
    "ne": lambda value, other: value != other,
    "none": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float),
    "odd": lambda value: value % 2 == 1,
    "sequence": lambda value: isinstance(value, str | list | dict),
    "string": lambda value: isinstance(value, str),
    "true": lambda value: value is True,
    "truthy": bool,
    "undefined": lambda value: value is UNDEFINED,
    "upper": lambda value: _text(value).isupper(),
}
"""The tests, by name; the first argument is the value."""
