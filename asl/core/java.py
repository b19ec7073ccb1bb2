"""Print values and order sets as Java does: AWS Step Functions is written in Java."""

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from struct import pack, unpack
from typing import TypeVar

from asl.core.values import Json, compact

__all__ = ["decimal", "java_text", "json_text", "sort_by_hash"]

_Value = TypeVar("_Value", bound=Json)
_WORD = 0xFFFFFFFF


def java_text(value: Json) -> str:
    """Return a value as Java's `toString` prints it: `{a=1, b=[x, null]}`."""
    if type(value) is dict:
        return "{" + ", ".join(f"{key}={java_text(item)}" for key, item in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(java_text, value)) + "]"
    return value if type(value) is str else json_text(value)


def json_text(value: Json) -> str:
    """Return a value as compact JSON with doubles as `Double.toString` prints them."""
    if type(value) is dict:
        members = (f"{compact(key)}:{json_text(item)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    if type(value) is list:
        return "[" + ",".join(map(json_text, value)) + "]"
    return _double(value) if type(value) is float else compact(value)


def decimal(value: float) -> Decimal:
    """Return the number that `Double.toString` prints for a double.

    It has the fewest digits that identify the double, but at least two: the least double is
    4.9E-324.
    """
    shortest = Decimal(repr(value))
    return Decimal(f"{value:.1e}") if len(shortest.as_tuple().digits) == 1 else shortest


def _double(value: float) -> str:
    """Write `100.0`, `0.001`, but `1.0E7`, `1.5E-4`."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, power = decimal(value).normalize().as_tuple()
    assert isinstance(power, int)  # JSON has no other doubles
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or 0}E{power + len(rest)}"


def sort_by_hash(values: Iterable[_Value]) -> list[_Value]:
    """Sort distinct values into the order of a `HashSet` filled one by one."""
    members = list(values)
    buckets = 16
    while len(members) > buckets * 3 // 4:
        buckets *= 2
    return sorted(members, key=lambda value: _spread(_hash(value)) & (buckets - 1))


def _spread(code: int) -> int:
    return code ^ code >> 16


def _hash(value: Json) -> int:
    """Return Java's `hashCode` as 32 unsigned bits."""
    kind = type(value)
    if kind is dict:
        code = sum(_hash(key) ^ _hash(item) for key, item in value.items())
    elif kind is list:
        code = reduce(lambda sum, item: 31 * sum + _hash(item) & _WORD, value, 1)
    elif kind is str:
        units = value.encode("utf-16-be", "surrogatepass")
        pairs = zip(units[::2], units[1::2], strict=True)
        code = reduce(lambda sum, unit: 31 * sum + (unit[0] << 8 | unit[1]) & _WORD, pairs, 0)
    elif kind is float:
        (bits,) = unpack(">Q", pack(">d", value))
        code = bits ^ bits >> 32
    elif kind is int:
        code = value if -(2**31) <= value < 2**31 else value ^ value >> 32
    else:
        code = {None: 0, True: 1231, False: 1237}[value]
    return code & _WORD
