"""How alike two texts are: by their words, the same wherever something is searched for."""

import math
import re
from collections import Counter

from asl.core.values import Json, compact

__all__ = ["similarity", "words"]

_WORD = re.compile(r"\w+")


def words(value: Json) -> list[str]:
    """Return the words of a text, or of the JSON text of any other value; cases are no matter."""
    return [*map(str.casefold, _WORD.findall(value if type(value) is str else compact(value)))]


def similarity(query: str, value: Json) -> float:
    """Return how alike a query and a value are, from 0 to 1: the cosine of their words."""
    one, other = Counter(words(query)), Counter(words(value))
    common = sum(count * other[word] for word, count in one.items())
    lengths = math.prod(sum(count * count for count in each.values()) for each in (one, other))
    return common / math.sqrt(lengths) if common else 0.0
