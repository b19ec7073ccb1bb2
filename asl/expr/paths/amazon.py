"""Where AWS differs from Jayway JsonPath 2.0.0, which its paths follow in everything else.

* The roots `$$` and `$name` are AWS's own: what follows them is a path of the context object or of
  the variable (AWS, documented).
* An index beyond the end of an array finds null in a payload template, not a failure
  (AWS, recorded).
* `[?(@.a='x')]` is refused. The engine takes it for a member of a strange name, so that it never
  holds; nothing is known of AWS.
* A regular expression runs on RE2, so it has no look-around and no back-references.
"""

import re
from collections.abc import Iterator

from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.expr.paths.jayway import JAVA_BLANKS, is_definite, parse_segments
from asl.expr.paths.segments import Path, Pick
from asl.expr.paths.selection import select

__all__ = ["concerns", "is_past_end", "parse_amazon_path"]

_CALL = lazy_pattern(r"\w\([^()]*\)\Z")
_CONDITIONS = lazy_pattern(r"\[\s*\?\s*\((.*?)\)\s*\]", re.DOTALL)
_QUOTED = lazy_pattern(r"'[^']*'")
_ROOT = lazy_pattern(r"\$\$|\$[^\W\d]\w*|\$")


def parse_amazon_path(text: str) -> Path:
    """Parse a path as AWS does.

    Raises:
        ExpressionFault: V-ST-09, with the offset of the error.
    """
    bare = text.strip(JAVA_BLANKS)
    start = text.index(bare)
    found = _ROOT.match(bare)
    if found is None:
        raise ExpressionFault("a path begins with $", start, "V-ST-09")
    root = found.group()
    try:
        segments = parse_segments(bare[found.end() :])
    except ExpressionFault as fault:
        offset = start + found.end() + fault.offset
        raise ExpressionFault(fault.message, offset, fault.code, fault.hint) from None
    name = root if root in ("$", "$$") else root[1:]
    return Path(text, name, segments, is_definite(segments))


def concerns(path: Path) -> Iterator[tuple[str, str]]:
    """Yield unexpected behaviour of a path on AWS, each with a hint."""
    for position, segment in enumerate(path.segments):
        if type(segment) is int and segment < 0:
            message = f"[{segment}] finds nothing on AWS, where an index counts from the beginning"
            yield message, f"write [(@.length{segment})]"
        if isinstance(segment, Pick) and position < len(path.segments) - 1:
            message = "several names fail on AWS unless they end the path"
            yield message, "read each of them by a path of its own"
        if isinstance(segment, str) and _CALL.search(segment):
            message = f"AWS has no functions in paths, so {segment!r} is the name of a member"
            yield message, "paths have no functions; use States.ArrayLength(...) to count elements"
    for condition in _CONDITIONS.findall(path.text):
        unquoted = _QUOTED.sub("''", condition)
        if "(" in unquoted and "&&" in unquoted and "||" in unquoted:
            message = "AWS ignores the parentheses in a filter, so && binds before ||"
            yield message, "write the conditions without parentheses"


def is_past_end(path: Path, data: Json) -> bool:
    """Return whether only the last step is missing, an index beyond the end of an array."""
    *before, last = path.segments or (None,)
    if not path.plain or path.root != "$" or type(last) is not int:
        return False
    found = select(tuple(before), data, data)
    return bool(found) and type(found[0]) is list
