"""Match the regular expressions of documents in linear time: documents are untrusted.

The package google-re2 matches them where it is installed (extra `re2`), else `asl.core.automaton`,
with the same syntax without rare Unicode scripts and with bounded work for a search.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from asl.core.lazy import lazy_pattern
from asl.core.work import Spend

__all__ = ["escape", "find_all", "fullmatch", "linear"]

FEW: Final = 20
"""Places of a pattern up to which RE2 builds the whole automaton."""
READ: Final = 64
"""Characters that RE2 reads in a step for such a pattern."""
READ_BY_PLACE: Final = 27
"""Characters that RE2 reads in a step for a single place of a larger pattern."""


@lru_cache(maxsize=256)
def linear(pattern: str, flags: str = "") -> Any:
    """Compile a regular expression; look-around and back-references are not supported.

    Args:
        pattern: The expression in the syntax of RE2.
        flags: Letters of `i`, `m`, `s` and `U`.

    Returns:
        A pattern with `search`, `match`, `fullmatch`, `finditer` and `groups` as in `re`. Without
        google-re2 they raise `WorkExceeded` for a search that takes too much work.

    Raises:
        ValueError: It is not a regular expression; the message says why.
    """
    re2 = _re2()
    if re2 is None or r"\B" in pattern:  # RE2 finds \B between the bytes of a character
        from asl.core.automaton import RegexAutomaton  # costs milliseconds to load

        return RegexAutomaton(pattern, flags)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode() if isinstance(said, bytes) else str(said)) from None


def _re2() -> Any:
    """Return the module of google-re2, None where it is not installed."""
    try:
        import re2
    except ImportError:
        return None
    return re2


def find_all(pattern: Any, text: str | bytes, spend: Spend) -> Iterator[Any]:
    """Return the matches of a compiled pattern; *spend* counts the steps of the search."""
    if hasattr(pattern, "counts_work"):
        return iter(pattern.finditer(text, spend))
    return _metered(pattern, text, spend)


def _metered(pattern: Any, text: str | bytes, spend: Spend) -> Iterator[Any]:
    """Yield the matches that RE2 finds; its package yields some empty ones twice."""
    _count_reading(pattern, text, spend)
    searches_ahead, _ = _costs(pattern.pattern)
    last = None
    for match in pattern.finditer(text):
        span = match.span()
        if span != last:
            last = span
            if searches_ahead:
                spend(len(text) - span[1] >> 7)
            yield match


def fullmatch(pattern: Any, text: str, spend: Spend) -> bool:
    """Return whether a compiled pattern matches a whole text; *spend* counts its steps."""
    if hasattr(pattern, "counts_work"):
        return pattern.fullmatch(text, spend) is not None
    _count_reading(pattern, text, spend, _leading_places(pattern.pattern))
    return pattern.fullmatch(text) is not None


def _count_reading(pattern: Any, text: str | bytes, spend: Spend, leading: int = 0) -> None:
    """Count the steps in which RE2 reads a text.

    Args:
        pattern: A pattern of RE2.
        text: The text to read.
        spend: Counts the steps.
        leading: Places of the pattern; at most one is tested for each character.
    """
    _, places = _costs(pattern.pattern)
    places -= leading
    if places > FEW or len(text) > READ:
        spend(len(text) * places // READ_BY_PLACE if places > FEW else len(text) // READ)


_LITERALS = lazy_pattern(r"(?:\(\?[imsU]+\))?(?:[^\\.\[*+?{(]|\\x[0-9a-f]{2}|\\b|\((?!\?)|\(\?:)*+")
"""Alternatives of plain texts, whose automaton has no more states than they have characters."""

_SPECIAL = lazy_pattern(r"[\x00-/:-@\[-^`{-\x7f]")
"""ASCII except letters, digits and `_`; as a negated class it would take 10 ms to compile."""


def escape(text: str) -> str:
    """Return the regular expression of a literal text."""
    return _SPECIAL.sub(lambda found: rf"\x{ord(found[0]):02x}", text)


_ATOM = lazy_pattern(
    r"\\x\{[^}]*\}|\\.|\[\^?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?P<comma>,?)(?P<most>\d*)\}|.",
    re.DOTALL,
)


class _Group:
    """A part of a pattern: a group, or the whole."""

    def __init__(self) -> None:
        self.endless = False
        """Whether it has an unbounded repetition."""
        self.choice = False
        """Whether it has alternatives."""
        self.places = 0
        """Characters that it matches when no repetition goes on without end."""


@lru_cache(maxsize=256)
def _costs(pattern: str) -> tuple[bool, int]:
    """Return the properties of a pattern that make RE2 slow.

    Returns:
        Whether finding all matches takes quadratic time: a search may run far beyond the end of a
        match, as `.*b|a` does in a text without `b`. This needs an unbounded repetition within an
        alternative or a repeated group. Then the number of its places: RE2 may need time for each
        of them at each character.
    """
    if _LITERALS.fullmatch(pattern):
        return False, 0
    groups, ahead = [_Group()], False
    ended = _Group()
    """The operand of a repetition at this place."""
    for match in _ATOM.finditer(pattern):
        atom = match[0]
        if match["least"] or atom in "*+?":
            ahead = ahead or ended.endless
            groups[-1].endless |= atom in "*+" or (match["comma"] == "," and not match["most"])
            groups[-1].places += ended.places * (int(match["most"] or match["least"] or 1) - 1)
            ended = _Group()
        elif atom == "(":
            groups.append(_Group())
        elif atom == ")" and len(groups) > 1:
            ended = groups.pop()
            ahead = ahead or (ended.choice and ended.endless)
            groups[-1].endless |= ended.endless
            groups[-1].places += ended.places
        else:
            groups[-1].choice |= atom == "|"
            groups[-1].places += 1
            ended = _Group()
            ended.places = 1
    return ahead or (groups[0].choice and groups[0].endless), groups[0].places


_FLAGS = lazy_pattern(r"(?:\(\?[imsU]+\))?")


@lru_cache(maxsize=256)
def _leading_places(pattern: str) -> int:
    """Return the number of places before the first ambiguous one.

    In a match of the whole text each of them is tried with one character only: `x{1000}.*`.
    """
    flags = _FLAGS.match(pattern)
    at = 0 if flags is None else flags.end()
    sums, last = [0], 0
    """The places in each open group, and what the next count repeats."""
    while "|" not in pattern and (match := _ATOM.match(pattern, at)):
        atom, at = match[0], match.end()
        if match["least"] and not match["comma"]:
            sums[-1] += last * (int(match["least"]) - 1)
            last *= int(match["least"])
        elif match["least"] or atom in "*+?":
            return sums[0] - last * (len(sums) == 1)
        elif atom == "(":
            at += 2 * pattern.startswith("?:", at)
            sums.append(0)
        elif atom == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        else:
            last = 1
            sums[-1] += 1
    return sums[0]
