"""Regular expressions of documents, which may come from strangers, are matched in linear time.

The package google-re2 matches them where it is installed (extra `re2`), else `asl.core.automaton`,
which takes the same syntax without the scripts of Unicode, and bounds the work of a search.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from asl.core.work import Spend

__all__ = ["escape", "find_all", "fullmatch", "linear"]


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
    try:
        import re2
    except ImportError:
        from asl.core.automaton import Pattern  # costs milliseconds to load

        return Pattern(pattern, flags)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode() if isinstance(said, bytes) else str(said)) from None


def find_all(pattern: Any, text: str, spend: Spend) -> Iterator[Any]:
    """Yield the matches of a compiled pattern; without google-re2 *spend* counts their steps."""
    counted = (spend,) if hasattr(pattern, "counts_work") else ()
    return iter(pattern.finditer(text, *counted))


def fullmatch(pattern: Any, text: str, spend: Spend) -> bool:
    """Whether a compiled pattern matches a whole text; *spend* as in `find_all`."""
    counted = (spend,) if hasattr(pattern, "counts_work") else ()
    return pattern.fullmatch(text, *counted) is not None


_SPECIAL = re.compile(r"[^A-Za-z0-9_\u0080-\U0010ffff]")


def escape(text: str) -> str:
    """Return the regular expression of a literal text."""
    return _SPECIAL.sub(lambda found: rf"\x{ord(found[0]):02x}", text)
