"""Numbers in texts, as the numeric operators of branches read them."""

import re
from typing import Final

from asl.core.values import Json

__all__ = ["between", "greater", "less", "number_in"]

_FIRST: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_WHOLE: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_LONGEST: Final = 10_000
"""Characters of a text in which a number is looked for."""


def number_in(text: str) -> float | None:
    """Return the number that a text is, else the first one that it holds, else None."""
    text = text[:_LONGEST]
    bare = text.strip().translate(str.maketrans("", "", "\"' "))
    found = _WHOLE.fullmatch(bare) or _FIRST.search(text)
    if found is None:
        return None
    number = float(found[0])
    return number if abs(number) != float("inf") else None


def greater(text: str, than: float) -> Json:
    """Whether a text holds a number, and that is greater."""
    number = number_in(text)
    return number is not None and number > than


def less(text: str, than: float) -> Json:
    """Whether a text holds a number, and that is less."""
    number = number_in(text)
    return number is not None and number < than


def between(text: str, least: float, most: float) -> Json:
    """Whether a text holds a number, and that is in a range, both ends included."""
    number = number_in(text)
    return number is not None and least <= number <= most
