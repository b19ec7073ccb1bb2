"""Files that a tool may read or write, by the patterns of one policy."""

from __future__ import annotations

import os
from functools import cached_property

from asl.expr.text_matching import cached_glob
from asl.states.blocks.tool_policy import AccessBounds

__all__ = ["FileBounds"]


class FileBounds:
    """The file rules of one policy; relative paths start at *folder*."""

    def __init__(self, reach: AccessBounds, folder: str) -> None:
        self.reach = reach
        self.folder = folder

    @cached_property
    def allowed_patterns(self) -> list[list[str]] | None:
        """Allowed patterns by segments, with links resolved; None for all files."""
        patterns = self.reach.allowed
        return None if patterns is None else [_pattern(each, self.folder) for each in patterns]

    @cached_property
    def denied_patterns(self) -> list[list[str]]:
        """Denied patterns by segments, as written and with links resolved."""
        return [
            _pattern(each, self.folder, resolve)
            for each in self.reach.denied
            for resolve in (False, True)
        ]

    def fault(self, path: str, reading: bool) -> str | None:
        """Return why a file may not be read or written, None if it may."""
        written = os.path.normpath(os.path.join(self.folder, os.path.expanduser(path)))
        real = os.path.realpath(os.path.join(self.folder, os.path.expanduser(path)))
        if any(
            _fits(each, pattern) for each in (written, real) for pattern in self.denied_patterns
        ):
            return "is denied"
        if self.allowed_patterns is not None and not any(
            _fits(real, each) for each in self.allowed_patterns
        ):
            where = "" if real == written else f", which is {real!r},"
            return f"{where} is not allowed".removeprefix(", ") if where else "is not allowed"
        if os.path.isdir(real):
            return None
        extensions, most = self.reach.extensions, self.reach.max_bytes
        if extensions is not None and os.path.splitext(real)[1].lower() not in extensions:
            return "has an ending that is not allowed"
        if most is not None and os.path.isfile(real) and os.path.getsize(real) > most:
            return f"has more than {most} bytes"
        return None


def _pattern(pattern: str, folder: str, resolve: bool = True) -> list[str]:
    """Return the segments of a pattern; the part before its first star may be a link."""
    if not pattern.startswith("**"):
        pattern = os.path.join(folder, os.path.expanduser(pattern))
    else:
        pattern = f"/{pattern}"
    segments = os.path.normpath(pattern).split("/")
    stars = next((i for i, each in enumerate(segments) if "*" in each), len(segments))
    if resolve and stars > 1:
        fixed = os.path.realpath("/".join(segments[:stars]) or "/")
        segments = [*fixed.rstrip("/").split("/"), *segments[stars:]]
    return segments


def _fits(path: str, pattern: list[str]) -> bool:
    """Return whether a path matches a pattern: `*` stays within a segment, `**` is any number of
    segments.
    """
    reached = {0}
    for segment in path.split("/"):
        following = set()
        for at in _skipped(reached, pattern):
            if at < len(pattern) and pattern[at] == "**":
                following.add(at)
            elif at < len(pattern) and cached_glob(pattern[at])(segment):
                following.add(at + 1)
        reached = following
    return len(pattern) in _skipped(reached, pattern)


def _skipped(reached: set[int], pattern: list[str]) -> set[int]:
    """Return the positions of a match, including those after an empty `**`."""
    found = set(reached)
    for at in reached:
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            found.add(at)
    return found
