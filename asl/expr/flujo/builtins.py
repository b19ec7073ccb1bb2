"""The skills that every engine has and that ask nobody."""

from typing import Final

from asl.core.values import Json
from asl.expr.flujo.data import Data, done, merged_at, opened, put, text_of, value_at

__all__ = ["confirmed", "got", "merged", "set_", "stringified"]

YES: Final = frozenset(
    ("y", "yes", "yeah", "yep", "ok", "okay", "sure", "true", "1", "approve", "approved", "confirm")
)
"""What counts as consent, in lower case."""


def set_(data: Json, step: str, path: str, value: Json) -> Data:
    """Return the data with a value at a path of the context."""
    return _written(data, step, value, put(opened(data)["context"], path, value))


def merged(data: Json, step: str, path: str, value: Json) -> Data:
    """Return the data with an object merged into the one at a path of the context."""
    return _written(data, step, value, merged_at(opened(data)["context"], path, value))


def _written(data: Json, step: str, value: Json, context: Data) -> Data:
    return done({**opened(data), "context": context}, step, value)


def got(data: Json, path: str, default: Json = None) -> Json:
    """Return the value at a path of the context, the default where there is none."""
    found = value_at(opened(data)["context"], path.removeprefix("context."))
    return default if found is None else found


def stringified(value: Json) -> str:
    """Return a value as text."""
    return text_of(value)


def confirmed(data: Json) -> str:
    """Return `approved` or `denied`, by the text that moves along."""
    said = opened(data)["previous_step"]
    return "approved" if text_of(said).strip().lower() in YES else "denied"
