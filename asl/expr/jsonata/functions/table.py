"""All built-in functions by name, with their signatures.

`arity` is the number of arguments that a function takes as a callback.
"""

from collections.abc import Callable, Iterator
from typing import Any

from asl.expr.jsonata.calls import NativeFunction
from asl.expr.jsonata.functions import aws, containers, numbers, strings
from asl.expr.jsonata.javascript import Value
from asl.expr.jsonata.operators import copy_tree
from asl.expr.jsonata.pictures import datetimes, decimals, integers
from asl.expr.jsonata.scopes import QueryScope


def _lowercase(scope: QueryScope, text: str) -> Value:
    scope.run.write(len(text))
    return text.lower()


def _uppercase(scope: QueryScope, text: str) -> Value:
    scope.run.write(len(text))
    return text.upper()


def _clone(scope: QueryScope, value: Value) -> Value:
    return copy_tree(value, scope.run)


_PURE: dict[str, tuple[str, Callable[..., Any], int]] = {
    "sum": ("<a<n>:n>", numbers.total, 1),
    "max": ("<a<n>:n>", numbers.largest, 1),
    "min": ("<a<n>:n>", numbers.smallest, 1),
    "average": ("<a<n>:n>", numbers.average, 1),
    "number": ("<(nsb)-:n>", numbers.number, 1),
    "floor": ("<n-:n>", numbers.floor, 1),
    "ceil": ("<n-:n>", numbers.ceil, 1),
    "round": ("<n-n?:n>", numbers.round_number, 2),
    "abs": ("<n-:n>", numbers.absolute, 1),
    "sqrt": ("<n-:n>", numbers.square_root, 1),
    "power": ("<n-n:n>", numbers.power, 2),
    "formatBase": ("<n-n?:s>", numbers.format_base, 2),
    "formatInteger": ("<n-s:s>", integers.format_integer, 2),
    "substring": ("<s-nn?:s>", strings.substring, 3),
    "substringBefore": ("<s-s:s>", strings.substring_before, 2),
    "substringAfter": ("<s-s:s>", strings.substring_after, 2),
    "length": ("<s-:n>", len, 1),
    "boolean": ("<x-:b>", containers.truth, 1),
    "not": ("<x-:b>", containers.negation, 1),
    "type": ("<x:s>", containers.type_of, 1),
    "hash": ("<ss?:s>", aws.hash_text, 2),
}
"""Functions of their arguments alone."""

_SCOPED: dict[str, tuple[str, Callable[..., Any], int]] = {
    "string": ("<x-b?:s>", strings.string, 1),
    "trim": ("<s-:s>", strings.trim, 1),
    "encodeUrlComponent": ("<s-:s>", strings.encode_url_component, 1),
    "encodeUrl": ("<s-:s>", strings.encode_url, 1),
    "decodeUrl": ("<s-:s>", strings.decode_url, 1),
    "lowercase": ("<s-:s>", _lowercase, 1),
    "uppercase": ("<s-:s>", _uppercase, 1),
    "pad": ("<s-ns?:s>", strings.pad, 3),
    "match": ("<s-f<s:o>n?:a<o>>", strings.match, 3),
    "contains": ("<s-(sf):b>", strings.contains, 2),
    "replace": ("<s-(sf)(sf)n?:s>", strings.replace, 4),
    "split": ("<s-(sf)n?:a<s>>", strings.split, 3),
    "join": ("<a<s>s?:s>", strings.join, 2),
    "base64encode": ("<s-:s>", strings.base64encode, 1),
    "base64decode": ("<s-:s>", strings.base64decode, 1),
    "decodeUrlComponent": ("<s-:s>", strings.decode_url_component, 1),
    "formatNumber": ("<n-so?:s>", decimals.format_number, 3),
    "fromMillis": ("<n-s?s?:s>", datetimes.from_millis, 3),
    "map": ("<af>", containers.map_items, 2),
    "reverse": ("<a:a>", containers.reverse, 1),
    "filter": ("<af>", containers.filter_items, 2),
    "single": ("<af?>", containers.single, 2),
    "reduce": ("<afj?:j>", containers.reduce_items, 3),
    "sort": ("<af?:a>", containers.sort, 2),
    "shuffle": ("<a:a>", containers.shuffle, 1),
    "distinct": ("<x:x>", containers.distinct, 1),
    "merge": ("<a<o>:o>", containers.merge, 1),
    "lookup": ("<x-s:x>", containers.lookup, 2),
    "spread": ("<x-:a<o>>", containers.spread, 1),
    "each": ("<o-f:a>", containers.each, 2),
    "sift": ("<o-f?:o>", containers.sift, 2),
    "clone": ("<(oa)-:o>", _clone, 1),
    "toMillis": ("<s-s?:n>", datetimes.to_millis, 2),
    "parseInteger": ("<s-s:n>", integers.parse_integer, 2),
    "partition": ("<x?n?:a<a>>", aws.partition, 2),
    "parse": ("<s-:x>", aws.parse, 1),
}
"""Functions that call others, count their work, or depend on the limits."""

_TOTAL: dict[str, tuple[str, Callable[..., Any], int, bool]] = {
    "count": ("<a:n>", containers.count, 1, False),
    "zip": ("<a+>", containers.zip_arrays, 0, True),
    "exists": ("<x:b>", containers.exists, 1, False),
    "error": ("<s?:x>", containers.error, 1, False),
    "assert": ("<bs?:x>", containers.assert_true, 2, False),
    "append": ("<xx:a>", containers.append, 2, True),
    "keys": ("<x-:a<s>>", containers.keys, 1, True),
    "now": ("<s?s?:s>", datetimes.now, 2, True),
    "millis": ("<:n>", datetimes.millis, 0, True),
    "range": ("<n?n?n?:a<n>>", aws.span, 3, True),
    "random": ("<n?:n>", aws.random, 1, True),
    "uuid": ("<:s>", aws.uuid, 0, True),
}
"""Functions that accept undefined, and whether they are scoped."""


_WALKING = frozenset(
    {"sum", "max", "min", "average", "join", "sort", "shuffle", "distinct", "boolean", "not"}
)
"""Functions that visit each item of an array themselves."""


_COSTS = {
    "formatNumber": 400,
    "toMillis": 200,
    "now": 100,
    "fromMillis": 80,
    "formatBase": 100,
    "round": 90,
    "formatInteger": 80,
    "parseInteger": 60,
    "random": 30,
    "uuid": 30,
    "power": 5,
    "number": 5,
}
"""Steps of a call, besides the cost of its arguments."""


def _natives() -> Iterator[NativeFunction]:
    for name, (signature, call, arity) in _PURE.items():
        yield NativeFunction(name, signature, call, arity, walks=name in _WALKING)
    for name, (signature, call, arity) in _SCOPED.items():
        yield NativeFunction(name, signature, call, arity, scoped=True, walks=name in _WALKING)
    for name, (signature, call, arity, scoped) in _TOTAL.items():
        yield NativeFunction(name, signature, call, arity, scoped=scoped, total=True)


def _charged(natives: Iterator[NativeFunction]) -> Iterator[NativeFunction]:
    for native in natives:
        native.cost = _COSTS.get(native.name, native.cost)
        yield native


NATIVES: dict[str, NativeFunction] = {native.name: native for native in _charged(_natives())}
"""Every function by name; without `$eval`, as on AWS."""
