"""The similarity of texts by their words, shared by all searches."""

import math
import re
from collections import Counter

from asl.core.values import Json, compact

__all__ = ["similarity", "words"]

_WORD = re.compile(r"\w+")


def words(value: Json) -> list[str]:
    """Return the words of a text, or of a value's JSON text, in lower case."""
    return [*map(str.casefold, _WORD.findall(value if type(value) is str else compact(value)))]


def similarity(query: str, value: Json) -> float:
    """Return the cosine similarity of the words of a query and a value, from 0 to 1."""
    one, other = Counter(words(query)), Counter(words(value))
    common = sum(count * other[word] for word, count in one.items())
    lengths = math.prod(sum(count * count for count in each.values()) for each in (one, other))
    return common / math.sqrt(lengths) if common else 0.0
