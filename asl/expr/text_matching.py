r"""Match texts: the patterns of `StringMatches` (Specification 6.2), and the similarity of words.

In a pattern `*` matches any characters, or none; `\*` is a literal star and `\\` a literal
backslash. The literal pieces are searched from left to right, each once, so matching never
backtracks.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from asl.core.lazy import lazy_pattern
from asl.core.values import Json, compact

__all__ = ["cached_glob", "compile_glob", "escape_glob", "literal_pieces", "similarity", "words"]

MAX_QUERY: Final = 10_000
"""Characters of a query that are compared with values."""
MAX_COMPARED: Final = 100_000
"""Characters of a value that are compared with a query."""

_TOKEN = lazy_pattern(r"\\[*\\]|.", re.DOTALL)


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern into a predicate on whole strings."""
    first, *rest = literal_pieces(pattern)
    if not rest:
        return lambda text: text == first
    *middle, last = rest
    shortest = len(first) + len(last)

    def matches(text: str) -> bool:
        if len(text) < shortest or not text.startswith(first) or not text.endswith(last):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return matches


@lru_cache(maxsize=1024)
def cached_glob(pattern: str) -> Callable[[str], bool]:
    """Return the cached predicate of a pattern."""
    return compile_glob(pattern)


def literal_pieces(pattern: str) -> list[str]:
    """Return the literal texts between the stars; only the outer ones may be empty."""
    found: list[list[str]] = [[]]
    for token in _TOKEN.findall(pattern):
        if token == "*":
            found.append([])
        else:
            found[-1].append(token[-1])
    first, *rest = ("".join(piece) for piece in found)
    return [first, *filter(None, rest[:-1]), *rest[-1:]]


def escape_glob(text: str) -> str:
    """Return the pattern that matches exactly one text."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


_WORD = lazy_pattern(r"\w+")


def words(value: Json) -> list[str]:
    """Return the words of a text, or of a value's JSON text, in lower case."""
    return [*map(str.casefold, _WORD.findall(value if type(value) is str else compact(value)))]


def similarity(query: str, value: Json) -> float:
    """Return the cosine similarity of the words of a query and a value, from 0 to 1.

    Only the beginnings of both are compared.
    """
    text = value if type(value) is str else compact(value)
    one, other = Counter(words(query[:MAX_QUERY])), Counter(words(text[:MAX_COMPARED]))
    common = sum(count * other[word] for word, count in one.items())
    lengths = math.prod(sum(count * count for count in each.values()) for each in (one, other))
    return common / math.sqrt(lengths) if common else 0.0
