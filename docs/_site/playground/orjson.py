"""`orjson` for the browser, as far as the interpreter uses it: the original has no wheel there.

tests/test_site.py compares it with the original.
"""

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

OPT_INDENT_2 = 1
OPT_SORT_KEYS = 32
OPT_PASSTHROUGH_SUBCLASS = 256
MAX_READ_DEPTH, MAX_WRITE_DEPTH = 1024, 254
BASIC = (str, int, float, dict, list, tuple)


class JSONDecodeError(json.JSONDecodeError):
    """The text is not JSON."""


class JSONEncodeError(TypeError):
    """The value cannot be written as JSON."""


def loads(text: str | bytes | bytearray | memoryview) -> Any:
    """Return the value of a JSON text.

    Raises:
        JSONDecodeError: It is not JSON, or holds what is no text.
    """
    shown = text if isinstance(text, str) else bytes(text).decode("utf-8", "surrogatepass")
    try:
        value = json.loads(shown, parse_constant=_refuse, parse_int=_integer, parse_float=_finite)
        shown.encode()
        if "\\u" in shown:
            _text_of(value).encode()
    except (ValueError, RecursionError) as error:
        message = getattr(error, "msg", str(error))
        raise JSONDecodeError(message, shown, getattr(error, "pos", 0)) from None
    if shown.count("[") + shown.count("{") > MAX_READ_DEPTH and _depth(value) > MAX_READ_DEPTH:
        raise JSONDecodeError("recursion limit reached", shown, 0)
    return value


def dumps(value: Any, default: None = None, option: int | None = None) -> bytes:
    """Return a value as JSON in UTF-8.

    Raises:
        JSONEncodeError: It has no JSON form.
    """
    try:
        return "".join(_parts(value, option or 0, 0)).encode()
    except UnicodeEncodeError:
        raise JSONEncodeError("str is not valid UTF-8: surrogates not allowed") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int | float:
    """Return an integer, or a float beyond 64 bits."""
    value = int(digits)
    return value if -(2**63) <= value < 2**64 else _finite(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("number is infinity when parsed as double")
    return value


def _text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _depth(value: Any) -> int:
    """Return how many arrays and objects are nested in each other."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [
            part for each in level for part in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def _parts(value: Any, option: int, depth: int) -> Iterator[str]:
    """Yield the text of a value in parts."""
    kind = type(value)
    if kind not in BASIC and not option & OPT_PASSTHROUGH_SUBCLASS:
        kind = next((each for each in BASIC if isinstance(value, each)), kind)
    if value is None or value is True or value is False:
        yield {None: "null", True: "true", False: "false"}[value]
    elif kind is str:
        yield json.encoder.encode_basestring(value)
    elif kind is int:
        if not -(2**63) <= value < 2**64:
            raise JSONEncodeError("Integer exceeds 64-bit range")
        yield int.__repr__(value)
    elif kind is float:
        yield _float_text(value) if math.isfinite(value) else "null"
    elif kind in (dict, list, tuple):
        if depth >= MAX_WRITE_DEPTH:
            raise JSONEncodeError("Recursion limit reached")
        yield from _container_parts(value, option, depth + 1)
    else:
        raise JSONEncodeError(f"Type is not JSON serializable: {type(value).__name__}")


def _float_text(value: float) -> str:
    mantissa, exponent, power = float.__repr__(value).partition("e")
    return f"{mantissa}e{int(power):+d}" if exponent else mantissa


def _container_parts(value: Any, option: int, depth: int) -> Iterator[str]:
    is_object = isinstance(value, dict)
    indented = option & OPT_INDENT_2
    before = f"\n{'  ' * depth}" if indented else ""
    yield "{" if is_object else "["
    items = value.items() if is_object else value
    for number, item in enumerate(sorted(items) if option & OPT_SORT_KEYS and is_object else items):
        yield f",{before}" if number else before
        if is_object:
            key, item = item
            if not isinstance(key, str):
                raise JSONEncodeError("Dict key must be str")
            yield json.encoder.encode_basestring(key)
            yield ": " if indented else ":"
        yield from _parts(item, option, depth)
    if indented and value:
        yield f"\n{'  ' * (depth - 1)}"
    yield "}" if is_object else "]"
