"""The library jsonata-python, as this package uses it; imported when a query is parsed."""

import sys
from collections.abc import Mapping
from math import floor
from typing import Any

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr.frame import Frame

_LIMIT = sys.getrecursionlimit()
from jsonata import JException, Jsonata  # noqa: E402
from jsonata.functions import Functions  # noqa: E402
from jsonata.utils import Utils  # noqa: E402

sys.setrecursionlimit(_LIMIT)  # the import raises it for the whole process

BUILT_IN = frozenset(Jsonata.static_frame.bindings) - {"eval"} | {
    "partition",
    "range",
    "hash",
    "uuid",
    "parse",
}


def compile(source: str) -> Any:
    """Parse; raises ExpressionFault."""
    try:
        engine = Jsonata(source)
    except JException as error:
        raise ExpressionFault(
            f"{error.error}: {error}", max(error.location, 0), "V-JSONATA-01"
        ) from None
    engine.set_output_convert_nulls(False)
    engine.set_validate_input(False)
    return engine


def evaluate(engine: Any, bindings: Mapping[str, Json], frame: Frame) -> Json:
    """Evaluate with the library; raises QueryFault."""
    from asl.expr.jsonata.query import QueryFault

    names = {name: _inwards(value) for name, value in bindings.items()}
    names |= _functions(frame)
    try:
        result = engine.evaluate(None, names)
    except JException as error:
        raise QueryFault(f"{error.error}: {error}") from None
    return _outwards(result)


def _functions(frame: Frame) -> dict[str, Any]:
    from uuid import UUID

    def random(seed: Any = None) -> float:
        if seed is None:
            return (frame.entropy() >> 75) / 2**53
        from random import Random

        return Random(seed).random()

    def now(*arguments: Any) -> Any:
        return Functions.datetime_from_millis(millis, *arguments, *[None] * (2 - len(arguments)))

    millis = floor(frame.now * 1000)
    functions = {
        "partition": _partition,
        "range": _range,
        "hash": _hash,
        "parse": _parse,
        "random": random,
        "uuid": lambda: str(UUID(int=frame.entropy(), version=4)),
        "millis": lambda: millis,
        "now": now,
        "eval": None,
    }
    return {n: f and Jsonata.JLambda(f) for n, f in functions.items()}


def _partition(array: Any, size: Any) -> Any:
    return [array[at : at + size] for at in range(0, len(array), size)]


def _range(first: Any, last: Any, step: Any) -> Any:
    return Utils.create_sequence_from_iter(
        Utils.convert_number(first + step * n) for n in range(floor((last - first) / step) + 1)
    )


def _hash(data: Any, algorithm: Any) -> str:
    import hashlib

    text = Functions.string(data, None)
    return hashlib.new(algorithm.replace("-", "").lower(), text.encode()).hexdigest()


def _parse(text: Any) -> Any:
    import json

    return _inwards(json.loads(text))


def _inwards(value: Json) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: _inwards(item) for key, item in value.items()}
    if kind is list:
        return [_inwards(item) for item in value]
    return Utils.NULL_VALUE if value is None else value


def _outwards(value: Any) -> Json:
    from asl.expr.jsonata.query import UNDEFINED

    if value is None:
        return UNDEFINED
    return _plain(value)


def _plain(value: Any) -> Json:
    from asl.expr.jsonata.query import QueryFault

    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or value is Utils.NULL_VALUE:
        return None
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    raise QueryFault("the result is a function, which has no JSON form")
