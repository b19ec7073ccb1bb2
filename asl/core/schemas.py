"""What a JSON Schema has against a value, in time that grows with the value's length only.

Schemas come from documents and agents, values from models: their patterns are matched by RE2, and
nothing is ever fetched. A pattern that RE2 does not know holds nothing back. Only for
`unevaluatedProperties` jsonschema itself still matches the patterns beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from asl.core.regex import linear
from asl.core.values import Json, compact

__all__ = ["faults", "validator_of"]

SHOWN: Final = 10
"""How many faults of one value are told."""


def faults(schema: Json, value: Json) -> str:
    """Say what a schema of draft 2020-12 has against a value, nothing for nothing."""
    validator = validator_of(compact(schema), "Draft202012Validator")
    found = sorted(validator.iter_errors(value), key=lambda each: each.json_path)
    return "; ".join(f"{each.json_path}: {each.message[:300]}" for each in found[:SHOWN])


@lru_cache(maxsize=256)
def validator_of(schema: str, draft: str) -> Any:
    """Return the validator of a schema, which is given as JSON; *draft* is jsonschema's class."""
    import orjson
    from referencing import Registry

    return _linear(draft)(orjson.loads(schema), registry=Registry())


@cache
def _linear(draft: str) -> Any:
    """Return a validator of jsonschema with our own keywords wherever it would match patterns."""
    import jsonschema
    from jsonschema.validators import extend

    kind: Any = getattr(jsonschema, draft)
    others = kind.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, wanted: str, value: Json, schema: Any) -> Iterator[Any]:
        if type(value) is str and not _found(wanted, value):
            yield jsonschema.ValidationError(f"{value[:200]!r} does not match {wanted!r}")

    def properties(
        validator: Any, wanted: Mapping[str, Any], value: Json, schema: Any
    ) -> Iterator[Any]:
        for key, each in wanted.items() if type(value) is dict else ():
            for name, part in value.items():
                if _found(key, name):
                    yield from validator.descend(part, each, path=name, schema_path=key)

    def additional(validator: Any, wanted: Any, value: Json, schema: Any) -> Iterator[Any]:
        if type(value) is dict:
            patterns = schema.get("patternProperties", {})
            known = {name for name in value if any(_found(each, name) for each in patterns)}
            named = {"properties": {**schema.get("properties", {}), **dict.fromkeys(known, True)}}
            yield from others(validator, wanted, value, named)

    own = {"pattern": pattern, "patternProperties": properties, "additionalProperties": additional}
    return extend(kind, own)


def _found(pattern: str, text: str) -> bool:
    """Whether a pattern is found; one that RE2 does not know is."""
    try:
        return linear(pattern).search(text) is not None
    except ValueError:
        return True
