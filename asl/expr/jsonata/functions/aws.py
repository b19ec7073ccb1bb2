"""The functions that AWS adds: partition, range, hash, random, uuid, parse."""

import json
from hashlib import new as digest
from math import trunc
from uuid import UUID

from asl.core.errors import NotJson
from asl.core.values import detached
from asl.expr.jsonata import operators
from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.scopes import Scope
from asl.expr.jsonata.values import UNDEFINED, Sequence, Value

ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}


def partition(scope: Scope, values: list[Value], size: Value) -> Value:
    """`$partition(array, size)`: chunks; the last may be shorter."""
    step = 0 if size is UNDEFINED else trunc(size)
    if step < 1:
        raise fault("D3150", message="The size of a $partition must be a positive integer")
    scope.run.spend(len(values))
    return [values[start : start + step] for start in range(0, len(values), step)]


def span(
    scope: Scope, first: Value = UNDEFINED, last: Value = UNDEFINED, step: Value = UNDEFINED
) -> Value:
    """`$range(first, last, step)`: the last is inclusive; nothing if it cannot be reached.

    Fractions are cut off (observed on AWS).
    """
    if UNDEFINED in (first, last, step):
        return UNDEFINED
    start, end, stride = trunc(first), trunc(last), trunc(step)
    if stride == 0:
        return UNDEFINED
    numbers = range(start, end + (1 if stride > 0 else -1), stride)
    scope.run.hold(len(numbers) if end - start < 2**62 else 2**62)
    return Sequence(numbers)


def hashed(scope: Scope, data: Value, algorithm: Value) -> Value:
    """`$hash(data, algorithm)` in lower-case hexadecimal; what is no string as JSON."""
    if algorithm not in ALGORITHMS:
        raise fault(
            "D3150", message=f"The algorithm of $hash must be one of {', '.join(ALGORITHMS)}"
        )
    text = operators.string(data, scope.run)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise fault("D1014", what="half of a surrogate pair is no character") from None
    return digest(ALGORITHMS[algorithm], encoded, usedforsecurity=False).hexdigest()


def random(scope: Scope, seed: Value = UNDEFINED) -> Value:
    """`$random(seed)`: a number from 0 to below 1, the same for the same seed."""
    if seed is UNDEFINED:
        return (scope.run.frame.entropy() >> 75) / 2**53
    from random import Random

    return Random(seed).random()


def uuid(scope: Scope) -> Value:
    """`$uuid()`: a random (version 4) UUID."""
    return str(UUID(int=scope.run.frame.entropy(), version=4))


def parse(scope: Scope, text: str) -> Value:
    """`$parse(text)`: the value of a JSON text."""
    scope.run.spend(len(text))
    try:
        return detached(json.loads(text, parse_constant=_refuse))
    except (ValueError, NotJson, RecursionError):
        raise fault("D3150", message="The argument of $parse is not valid JSON") from None


def _refuse(name: str) -> Value:
    raise ValueError(name)
