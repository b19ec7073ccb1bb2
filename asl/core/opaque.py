"""Opaque values: strings with a placeholder that only a deployment fills in.

Such a string may become any value, so no rule can judge it. It has a type of its own: code that
looks for a plain `str` skips it, and findings about it are dropped in one place.
"""

from typing import Final

from asl.core.lazy import lazy_pattern
from asl.core.pointers import resolve_pointer, split_pointer
from asl.core.values import Json, Opaque

__all__ = ["PLACEHOLDER", "contains_opaque", "is_about_opaque", "mark_opaque"]

PLACEHOLDER: Final = lazy_pattern(
    r"""\$\{(?!\s*+\$)(?!\s*+(?:"[^"{}]*"|'[^'{}]*'|[\w.$]+)\s*+:\s)[^{}]+\}|\{\{resolve:[^{}]+\}\}"""
)
"""`${Name}` of a deployment tool, but not the `${"key": value}` of JSONata nor the `${$name}` of
JavaScript; a dynamic reference."""


def mark_opaque(value: Json) -> Json:
    """Return the value with every string that holds a placeholder made opaque.

    Parts without one are shared; keys stay unchanged.
    """
    if type(value) is str:
        return Opaque(value) if PLACEHOLDER.search(value) else value
    if type(value) is dict:
        members = {key: mark_opaque(item) for key, item in value.items()}
        return members if any(members[key] is not value[key] for key in value) else value
    if type(value) is list:
        items = [mark_opaque(item) for item in value]
        return items if any(map(_differs, items, value)) else value
    return value


def contains_opaque(value: Json) -> bool:
    """Return whether a value is opaque or has an opaque part at any depth."""
    if type(value) is dict:
        return any(map(contains_opaque, value.values()))
    if type(value) is list:
        return any(map(contains_opaque, value))
    return type(value) is Opaque


def is_about_opaque(value: Json, pointer: str, at_key: bool) -> bool:
    """Return whether a finding concerns an opaque value, or a field with an opaque name.

    The name of a state counts as known: other states refer to it as it is written.
    """
    if type(resolve_pointer(value, pointer)) is Opaque:
        return True
    holder, name = split_pointer(pointer)
    return at_key and split_pointer(holder)[1] != "States" and PLACEHOLDER.search(name) is not None


def _differs(one: Json, other: Json) -> bool:
    return one is not other
