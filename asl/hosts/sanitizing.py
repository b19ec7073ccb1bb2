"""What arguments and answers of tools are held against: JSON Schemas, and a filter of texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, Final

from asl.core.regex import linear
from asl.core.values import Json, compact

__all__ = ["faults", "sanitized"]

SHOWN: Final = 10
ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Controls and characters that nobody sees; line breaks and tabs stay."""


def faults(schema: Json, value: Json) -> str:
    """Say what a schema has against a value, nothing for nothing; nothing is ever fetched."""
    found = sorted(_validator(compact(schema)).iter_errors(value), key=lambda each: each.json_path)
    return "; ".join(f"{each.json_path}: {each.message[:300]}" for each in found[:SHOWN])


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    import orjson
    from referencing import Registry

    return _linear()(orjson.loads(schema), registry=Registry())


@cache
def _linear() -> Any:
    """Return the validator whose patterns take no longer than the text is long (RE2)."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        if type(value) is str and not _found(wanted, value):
            yield ValidationError(f"{value[:200]!r} does not match {wanted!r}")

    def properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        for key, each in wanted.items() if type(value) is dict else ():
            for name, part in value.items():
                if _found(key, name):
                    yield from validator.descend(part, each, path=name, schema_path=key)

    own = {"pattern": pattern, "patternProperties": properties}
    return extend(Draft202012Validator, own)


def _found(pattern: str, text: str) -> bool:
    """Whether a pattern is found; one that RE2 does not know is left to the tool itself."""
    try:
        return linear(pattern).search(text) is not None
    except ValueError:
        return True


def sanitized(value: Json) -> Json:
    """Return a value whose texts hold nothing that is not seen."""
    if type(value) is str:
        return UNSEEN.sub("", ESCAPES.sub("", value))
    if type(value) is list:
        return [sanitized(each) for each in value]
    if type(value) is dict:
        return {sanitized(key): sanitized(each) for key, each in value.items()}
    return value
