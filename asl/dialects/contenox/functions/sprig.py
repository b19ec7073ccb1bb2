"""The functions of sprig that templates have: a closed list of pure ones, bounded by their data.

Functions of the time, of chance, of the environment and of regular expressions are left out. What
sprig changes in place is a changed copy here.
"""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.json_text import read_data
from asl.core.values import Json
from asl.dialects.contenox.functions.texts import template_text, to_json

__all__ = ["SPRIG"]

MAX_RESULT: Final = 100_000
"""Characters of a repeated text, and items of a list of numbers."""


def _whole(value: Any) -> int:
    """Return a value as sprig counts with it: a text is read, and a fraction is cut off."""
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[-+]?[0-9]{1,18}", value) else 0
    return int(value or 0)


def _number(value: Any) -> float:
    return float(value or 0)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _repeat(count: Any, text: Any) -> str:
    if _whole(count) * len(_text(text)) > MAX_RESULT:
        raise ValueError
    return _text(text) * _whole(count)


def _until(end: Any) -> list[Json]:
    if abs(_whole(end)) > MAX_RESULT:
        raise ValueError
    return [*(range(_whole(end)) if _whole(end) > 0 else range(0, _whole(end), -1))]


def _indent(count: Any, text: Any) -> str:
    if _whole(count) * (_text(text).count("\n") + 1) > MAX_RESULT:
        raise ValueError
    pad = " " * _whole(count)
    return pad + _text(text).replace("\n", f"\n{pad}")


def _replaced(old: Any, new: Any, text: Any) -> str:
    count = _text(text).count(_text(old)) if old else len(_text(text)) + 1
    if count * len(_text(new)) > MAX_RESULT:
        raise ValueError
    return _text(text).replace(old, new)


def _merged(*values: Any) -> dict[str, Json]:
    """Return objects merged; the first one that has a key wins."""
    found: dict[str, Json] = {}
    for each in reversed(values):
        for key, value in _object(each).items():
            own = found.get(key)
            both = isinstance(own, dict) and isinstance(value, dict)
            found[key] = _merged(value, own) if both else value
    return found


def _dig(*arguments: Any) -> Json:
    *keys, otherwise, value = arguments
    for key in keys:
        if key not in _object(value):
            return otherwise
        value = value[key]
    return value


def _quotient(left: Any, right: Any) -> int:
    whole = abs(_whole(left)) // abs(_whole(right))
    return whole if (_whole(left) < 0) == (_whole(right) < 0) else -whole


def _rest(left: Any, right: Any) -> int:
    return _whole(left) - _quotient(left, right) * _whole(right)


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", text)


def _kind(value: Any) -> str:
    kinds = {str: "string", bool: "bool", int: "float64", float: "float64", list: "slice"}
    return kinds.get(type(value), "map" if isinstance(value, dict) else "invalid")


def _unique(values: Any) -> list[Json]:
    found: dict[str, Json] = {}
    for each in _list(values):
        found.setdefault(to_json(each, ordered=True), each)
    return [*found.values()]


def _without(values: Any, *others: Any) -> list[Json]:
    left = {to_json(each, ordered=True) for each in others}
    return [each for each in _list(values) if to_json(each, ordered=True) not in left]


def _decoded(text: Any) -> str:
    try:
        return base64.b64decode(_text(text), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError from None


_MANY: Final = 99
SPRIG: Final[Mapping[str, tuple[Callable[..., Any], int, int]]] = {
    "trimAll": (lambda cut, text: _text(text).strip(_text(cut)), 2, 2),
    "trimPrefix": (lambda cut, text: _text(text).removeprefix(_text(cut)), 2, 2),
    "trimSuffix": (lambda cut, text: _text(text).removesuffix(_text(cut)), 2, 2),
    "title": (lambda text: re.sub(r"\b\w", lambda m: m[0].upper(), _text(text)), 1, 1),
    "untitle": (lambda text: re.sub(r"\b\w", lambda m: m[0].lower(), _text(text)), 1, 1),
    "repeat": (_repeat, 2, 2),
    "substr": (lambda start, end, text: _text(text)[max(0, _whole(start)) : _whole(end)], 3, 3),
    "nospace": (lambda text: re.sub(r"\s", "", _text(text)), 1, 1),
    "initials": (lambda text: "".join(each[0] for each in _text(text).split()), 1, 1),
    "replace": (_replaced, 3, 3),
    "indent": (_indent, 2, 2),
    "nindent": (lambda count, text: "\n" + _indent(count, text), 2, 2),
    "cat": (lambda *values: " ".join(template_text(each) for each in values), 0, _MANY),
    "squote": (lambda *values: " ".join(f"'{template_text(each)}'" for each in values), 1, _MANY),
    "plural": (lambda one, many, count: one if _whole(count) == 1 else many, 3, 3),
    "snakecase": (lambda text: "_".join(_words(_text(text))).lower(), 1, 1),
    "kebabcase": (lambda text: "-".join(_words(_text(text))).lower(), 1, 1),
    "splitList": (lambda mark, text: _text(text).split(_text(mark)), 2, 2),
    "toString": (template_text, 1, 1),
    "toStrings": (lambda values: [template_text(each) for each in _list(values)], 1, 1),
    "sortAlpha": (lambda values: sorted(template_text(each) for each in _list(values)), 1, 1),
    "list": (lambda *values: [*values], 0, _MANY),
    "first": (lambda values: _list(values)[0] if values else None, 1, 1),
    "last": (lambda values: _list(values)[-1] if values else None, 1, 1),
    "rest": (lambda values: _list(values)[1:], 1, 1),
    "initial": (lambda values: _list(values)[:-1], 1, 1),
    "append": (lambda values, new: [*_list(values), new], 2, 2),
    "prepend": (lambda values, new: [new, *_list(values)], 2, 2),
    "concat": (lambda *lists: [each for values in lists for each in _list(values)], 1, _MANY),
    "reverse": (lambda values: _list(values)[::-1], 1, 1),
    "uniq": (_unique, 1, 1),
    "without": (_without, 2, _MANY),
    "compact": (lambda values: [each for each in _list(values) if each], 1, 1),
    "until": (_until, 1, 1),
    "get": (lambda members, key: _object(members).get(key, ""), 2, 2),
    "hasKey": (lambda members, key: key in _object(members), 2, 2),
    "set": (lambda members, key, value: {**_object(members), _text(key): value}, 3, 3),
    "unset": (lambda m, key: {k: v for k, v in _object(m).items() if k != key}, 2, 2),
    "keys": (lambda members: sorted(_object(members)), 1, 1),
    "values": (lambda members: [_object(members)[each] for each in sorted(members)], 1, 1),
    "pick": (lambda m, *keys: {k: v for k, v in _object(m).items() if k in keys}, 2, _MANY),
    "omit": (lambda m, *keys: {k: v for k, v in _object(m).items() if k not in keys}, 2, _MANY),
    "merge": (_merged, 1, _MANY),
    "dig": (_dig, 3, _MANY),
    "deepCopy": (lambda value: value, 1, 1),
    "add": (lambda *values: sum(map(_whole, values)), 1, _MANY),
    "add1": (lambda value: _whole(value) + 1, 1, 1),
    "sub": (lambda left, right: _whole(left) - _whole(right), 2, 2),
    "mul": (lambda left, right: _whole(left) * _whole(right), 2, 2),
    "div": (_quotient, 2, 2),
    "mod": (_rest, 2, 2),
    "max": (lambda *values: max(map(_whole, values)), 1, _MANY),
    "min": (lambda *values: min(map(_whole, values)), 1, _MANY),
    "floor": (lambda value: float(math.floor(_number(value))), 1, 1),
    "ceil": (lambda value: float(math.ceil(_number(value))), 1, 1),
    "round": (lambda value, digits: round(_number(value), min(9, _whole(digits))), 2, 2),
    "int": (_whole, 1, 1),
    "int64": (_whole, 1, 1),
    "float64": (_number, 1, 1),
    "atoi": (_whole, 1, 1),
    "all": (lambda *values: all(values), 0, _MANY),
    "any": (lambda *values: any(values), 0, _MANY),
    "kindOf": (_kind, 1, 1),
    "fromJson": (lambda text: read_data(_text(text)), 1, 1),
    "b64enc": (lambda text: base64.b64encode(_text(text).encode()).decode(), 1, 1),
    "b64dec": (_decoded, 1, 1),
    "sha256sum": (lambda text: hashlib.sha256(_text(text).encode()).hexdigest(), 1, 1),
}
"""Function, least and most arguments, by name."""
