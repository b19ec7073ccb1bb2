"""The values of queries: JSON, `UNDEFINED`, sequences and functions.

JSON values are represented as everywhere (null is None); an input is used as it is, never copied or
changed. Two kinds of list exist besides the JSON array:

* a `ResultSequence` is the result of a path step. An empty one is undefined, and one of a single
  item collapses to the item, unless `keep` is set;
* a `ConstructedArray` was written `[...]` as a step of a path; it is not flattened into the
  sequence around it.
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from decimal import ROUND_FLOOR, Context
from json.encoder import encode_basestring
from math import isfinite
from typing import TypeAlias

from asl.core.java import decimal
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.javascript import (
    INFINITY,
    PLAIN,
    UNDEFINED,
    Undefined,
    Value,
    Writer,
    double,
    quote,
    with_exponent,
)
from asl.expr.jsonata.scopes import QueryRun, QueryScope

Closure: TypeAlias = Callable[[Value, QueryScope], Value]
"""A compiled part of a query: `(context item, scope) -> value`."""


class ResultSequence(list[Value]):
    """The items that a step found; `tuples` says that they carry bound variables."""

    __slots__ = ("keep", "tuples")

    def __init__(self, items: Iterable[Value] = (), tuples: bool = False) -> None:
        super().__init__(items)
        self.keep = False
        self.tuples = tuples


ITEM = "@"
"""Key of the item in a tuple of a `ResultSequence`; no variable can have this name."""


class ConstructedArray(list[Value]):
    """An array that was constructed as a step of a path."""

    __slots__ = ()


class QueryFunction:
    """A callable value: `arity` is the number of arguments that it uses."""

    __slots__ = ("arity", "name")

    def __init__(self, name: str, arity: int) -> None:
        self.name = name
        self.arity = arity

    def apply(self, arguments: list[Value], item: Value, scope: QueryScope) -> Value:
        """Call the function; *item* may replace an argument taken from the context.

        Raises:
            QueryFault: The call failed.
        """
        raise NotImplementedError


def collapse(value: Value) -> Value:
    """Return the value of a sequence: undefined, its only item, or the sequence."""
    if type(value) is ResultSequence and not value.tuples:
        if not value:
            return UNDEFINED
        if len(value) == 1 and not value.keep:
            return value[0]
    return value


_SYMBOLS = {
    str: "s",
    int: "n",
    float: "n",
    bool: "b",
    type(None): "l",
    list: "a",
    ResultSequence: "a",
    ConstructedArray: "a",
    dict: "o",
    Undefined: "m",
}


def symbol(value: Value) -> str:
    """Return the type letter of a value in a signature: s n b l a o f, m for undefined."""
    return _SYMBOLS.get(type(value), "f")


_WORDS = {"s": "string", "n": "number", "b": "boolean", "l": "null", "a": "array", "f": "function"}


def type_word(value: Value) -> str:
    """Return the name of a value's type, as `$type` does."""
    return _WORDS.get(symbol(value), "object")


def is_number(value: Value) -> bool:
    """Return whether the value is a number.

    Raises:
        QueryFault: D1001 for an infinite one.
    """
    kind = type(value)
    if kind is int:
        return True
    if kind is not float or value != value:
        return False
    if value in (INFINITY, -INFINITY):
        raise fault("D1001", value=value)
    return True


def are_numbers(values: Items[Value]) -> bool:
    """Return whether all values are numbers."""
    return all(map(is_number, values))


def are_strings(values: Items[Value]) -> bool:
    """Return whether all values are strings."""
    return all(type(value) is str for value in values)


def boolean(value: Value) -> bool:
    """Return the truth of a value; undefined is false."""
    kind = type(value)
    if kind is bool:
        return bool(value)
    if isinstance(value, list):
        return any(_leaf_is_true(leaf) for leaf in _leaves(value))
    return _leaf_is_true(value)


def _leaf_is_true(value: Value) -> bool:
    if type(value) is float:
        return is_number(value) and value != 0
    return bool(value) and not isinstance(value, QueryFunction)


def _leaves(items: list[Value]) -> Iterator[Value]:
    """Yield the items of nested arrays; shared arrays are visited once."""
    todo, seen = [items], {id(items)}
    while todo:
        for item in todo.pop():
            if not isinstance(item, list):
                yield item
            elif id(item) not in seen:
                seen.add(id(item))
                todo.append(item)


def equal(one: Value, other: Value, spend: Callable[[int], None]) -> bool:
    """Return deep equality: 1 equals 1.0, true differs from 1, key order is ignored."""
    if not isinstance(one, list | dict):
        spend(_length(one))
        return identical(one, other)
    todo = [(one, other)]
    while todo:
        left, right = todo.pop()
        if left is right:
            continue
        if isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            spend(4 * len(left))
            todo.extend(zip(left, right, strict=True))
        elif type(left) is dict:
            if type(right) is not dict or left.keys() != right.keys():
                return False
            spend(4 * len(left))
            todo.extend((value, right[key]) for key, value in left.items())
        else:
            spend(_length(left))
            if not identical(left, right):
                return False
    return True


def _length(value: Value) -> int:
    """Return the steps of comparing a scalar."""
    return len(value) >> COMPARED if type(value) is str else 0


def identity(value: Value, run: QueryRun) -> Value:
    """Return a hashable key that equal values share."""
    if isinstance(value, list):
        run.spend(2 + 2 * len(value))
        return "a", tuple([identity(item, run) for item in value])
    if type(value) is dict:
        run.spend(2 + 3 * len(value))
        return "o", frozenset([(name, identity(item, run)) for name, item in value.items()])
    if isinstance(value, QueryFunction):
        return "f", id(value)
    if type(value) is str:
        run.spend(len(value) >> COMPARED)
    return ("b", value) if type(value) is bool else value


COMPARED = 10
"""A step compares two to the power of so many characters."""


def identical(one: Value, other: Value) -> bool:
    """Return whether two scalars are equal, or two containers or functions the same object."""
    if isinstance(one, list | dict | QueryFunction):
        return one is other
    return bool(one == other) and (type(one) is bool) is (type(other) is bool)


def utf16_keys(one: str, other: str) -> tuple[str | bytes, str | bytes]:
    """Return keys that order two texts by UTF-16 code units, as JavaScript and Java do."""
    return (
        (one, other) if one.isascii() or other.isascii() else (utf16_units(one), utf16_units(other))
    )


def utf16_units(text: str) -> bytes:
    """Return the UTF-16 code units of a text."""
    return text.encode("utf-16-be", "surrogatepass")


def as_list(value: Value) -> list[Value]:
    """Return the value as a list of items: an array itself, anything else alone."""
    return value if isinstance(value, list) else [value]


def append_values(one: Value, other: Value) -> Value:
    """Return both values as one array; undefined adds no item."""
    if one is UNDEFINED:
        return other
    if other is UNDEFINED:
        return one
    return [*as_list(one), *as_list(other)]


LONG = 2**63
"""Bound of the integers that AWS prints with all digits if they are no result of arithmetic."""


def normal(value: float) -> int | float:
    """Return a result of arithmetic: whole numbers as integers, -0 as 0."""
    if value.is_integer() and -PLAIN < value < PLAIN:
        return int(value)
    return value


def finite(value: int | float) -> int | float:
    """Return the number unchanged.

    Raises:
        QueryFault: D1001 for NaN and infinities.
    """
    if type(value) is float and not isfinite(value):
        raise fault("D1001", value=value)
    return value


def precise(value: int | float) -> str:
    """Return a number rounded to 15 significant digits, as `$string` prints it."""
    if type(value) is int and -(10**15) < value < 10**15:
        return str(value)
    is_number(value)
    return with_exponent(float(f"{double(value):.14e}"))


def precise_in_java(value: int | float) -> str:
    """Return a number as AWS's `$string` prints it (measured).

    Whole numbers have all of their digits, others fifteen significant ones, rounded down, with an
    exponent if the digits end before the point.
    """
    if type(value) is int and -LONG <= value < LONG:
        return str(value)
    is_number(value)
    exact = double(value)
    if not isfinite(exact) or abs(exact) >= PLAIN:
        return with_exponent(exact)
    if exact.is_integer():
        return str(int(exact))
    return str(_FIFTEEN.create_decimal(decimal(exact)).normalize(_FIFTEEN)).replace("E", "e")


_FIFTEEN = Context(prec=15, rounding=ROUND_FLOOR)


def _quoted_in_java(value: str) -> str:
    """Return a string literal as AWS prints it: few characters are escaped (measured)."""
    for character in _ESCAPED:
        if character in value:
            value = value.replace(character, encode_basestring(character)[1:-1])
    return f'"{value}"'


_ESCAPED = '\\"\b\f\n\r\t'


def value_text(
    value: Value, room: int, pretty: bool, spend: Callable[[int], None], java: bool = False
) -> str:
    """Return a value as `$string` prints it.

    Args:
        value: The value.
        room: The allowed number of characters.
        pretty: Whether to indent.
        spend: Counts the work.
        java: Whether to print as AWS does.

    Raises:
        TooLong: The text has more characters.
    """
    number, literal = (precise_in_java, _quoted_in_java) if java else (precise, quote)
    writer = Writer(number, literal, room, "  " if pretty else "", spend)
    writer.write(value, "\n")
    return "".join(writer.parts)
