"""The functions that AWS adds to JSONata: partition, range, hash, random, uuid, parse."""

import json
import re
from math import trunc
from uuid import UUID

from asl.core.errors import NotJson
from asl.core.java import sort_by_hash
from asl.core.values import copy_foreign
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.functions.containers import LIST
from asl.expr.jsonata.javascript import UNDEFINED, Value
from asl.expr.jsonata.scopes import QueryScope
from asl.expr.jsonata.values import ResultSequence, finite

ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}


def partition(scope: QueryScope, values: Value = UNDEFINED, size: Value = UNDEFINED) -> Value:
    """`$partition(array, size)`: chunks; the last may be shorter.

    Undefined for no elements or a size of 0; one chunk without a size.

    Raises:
        QueryFault: T0412 for a value that is no array, D3137 for a negative size.
    """
    if values is UNDEFINED:
        return UNDEFINED
    if not isinstance(values, list):
        raise fault("T0412", value=values, index=1, type=UNDEFINED)
    if size is UNDEFINED:
        return [values]
    step = trunc(finite(size))
    if step < 0:
        raise fault("D3137", message="Second argument must be zero or greater")
    if step == 0 or not values:
        return UNDEFINED
    chunks = -(-len(values) // step)
    scope.run.spend(3 * chunks)
    scope.run.copy(len(values))
    scope.run.spend_bytes(LIST * chunks)
    return [values[start : start + step] for start in range(0, len(values), step)]


def span(
    scope: QueryScope, first: Value = UNDEFINED, last: Value = UNDEFINED, step: Value = UNDEFINED
) -> Value:
    """`$range(first, last, step)`: the last is inclusive; undefined if it cannot be reached.

    Fractions are cut off (observed on AWS).
    """
    if UNDEFINED in (first, last, step):
        return UNDEFINED
    start, end, stride = (trunc(finite(each)) for each in (first, last, step))
    if stride == 0:
        return UNDEFINED
    numbers = range(start, end + (1 if stride > 0 else -1), stride)
    length = len(numbers) if abs(end - start) < 2**62 else 2**62
    scope.run.count(length, scope.run.bounds.ranged)
    return ResultSequence(numbers)


def hash_text(text: Value, *algorithms: Value) -> Value:
    """`$hash(text, algorithm)` in lower-case hexadecimal; undefined without an algorithm.

    An undefined algorithm is an unknown one (AWS, measured).

    Raises:
        QueryFault: D3137 for an unknown algorithm, D1014 for half of a surrogate pair.
    """
    if not algorithms:
        return UNDEFINED
    (algorithm,) = algorithms
    if algorithm not in ALGORITHMS:
        name = "null" if algorithm is UNDEFINED else algorithm
        known = ", ".join(sort_by_hash(ALGORITHMS))
        raise fault("D3137", message=f"Hash algorithm '{name}' must be one of {known}")
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise fault("D1014", what="half of a surrogate pair is no character") from None
    from hashlib import new  # OpenSSL, which few queries need

    return new(ALGORITHMS[algorithm], encoded, usedforsecurity=False).hexdigest()


def random(scope: QueryScope, seed: Value = UNDEFINED) -> Value:
    """`$random(seed)`: a number from 0 to below 1, the same for the same seed."""
    if seed is UNDEFINED:
        return (scope.run.frame.entropy() >> 75) / 2**53
    state = trunc(finite(seed)) ^ _MULTIPLIER
    first = _MULTIPLIER * state + _INCREMENT & _STATE
    second = _MULTIPLIER * first + _INCREMENT & _STATE
    return ((first >> 22 << 27) + (second >> 21)) / 2**53


_MULTIPLIER, _INCREMENT, _STATE = 0x5DEECE66D, 0xB, 2**48 - 1
"""The generator of `java.util.Random`, which AWS uses."""


def uuid(scope: QueryScope) -> Value:
    """`$uuid()`: a random (version 4) UUID."""
    return str(UUID(int=scope.run.frame.entropy(), version=4))


def parse(scope: QueryScope, text: str) -> Value:
    """`$parse(text)`: the value of a JSON text without repeated keys.

    AWS accepts single quotes for double ones (AWS, measured).

    Raises:
        QueryFault: D3137 for any other text.
    """
    scope.run.spend(len(text) + (len(text) >> 1))
    if scope.run.bounds.java:
        text = _TEXT.sub(lambda found: _quoted(found[1]) if found[2] else found[0], text)
    try:
        return copy_foreign(
            json.loads(text, parse_constant=_refuse, parse_int=_integer, object_pairs_hook=_members)
        )
    except (ValueError, NotJson, RecursionError):
        raise fault("D3137", message="Invalid JSON") from None


_TEXT = re.compile(r"""\"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'((?:[^'\\]|\\.)*+)(?:(')|\\?\Z)""", re.DOTALL)
"""A quoted text, or the rest after an unclosed quote."""


def _quoted(inner: str) -> str:
    return '"' + inner.replace("\\'", "'").replace('"', '\\"') + '"'


def _refuse(name: str) -> Value:
    raise ValueError(name)


def _integer(text: str) -> int | float:
    value = int(text) if len(text) < 20 else float(text)
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


def _members(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(pairs)
    return members
