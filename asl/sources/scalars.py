"""Source positions of the characters of JSON and YAML scalars."""

import re
from collections.abc import Iterator

from asl.sources.text import Run, TrackedText

__all__ = ["scalar"]

_PROPERTIES = re.compile(r"(?:[!&]\S*\s+)*")
_HEADER = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\r?\n")
_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"\S+")
_QUOTED = re.compile(
    r"""(?P<fold>[ \t]*(?:\r?\n[ \t]*)+)
      | (?P<joint>\\\r?\n[ \t]*)
      | (?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
      | (?P<escape>\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.))
      | (?P<plain>[^"\\\ \t\r\n]+|[ \t]+)""",
    re.VERBOSE,
)


def scalar(value: str, source: str, offset: int) -> TrackedText:
    """Return the value of a scalar at an offset of the source, with the positions of its parts.

    A tag or an anchor may precede it. All characters of an unusual notation have the position of
    its start.
    """
    properties = _PROPERTIES.match(source, offset)
    at = properties.end() if properties else offset
    runs = list(
        _double(source, at + 1) if source[at : at + 1] == '"' else _words(value, source, at)
    )
    merged: list[Run] = []
    for run in runs:
        if run.start < 0 or run.start > len(value):
            return TrackedText.at(value, offset)
        if not merged or run.origin - run.start != merged[-1].origin - merged[-1].start:
            merged.append(run)
    if not merged or merged[0].start:
        merged.insert(0, Run(0, at, False, False))
    return TrackedText(value, merged)


def _double(source: str, at: int) -> Iterator[Run]:
    """Yield a run for every part of a double-quoted string, by the rules of JSON and YAML."""
    start = 0
    while token := _QUOTED.match(source, at):
        yield Run(start, at, True, False)
        at = token.end()
        match token.lastgroup:
            case "plain":
                start += len(token[0])
            case "fold":
                start += max(1, token[0].count("\n") - 1)
            case "escape" | "pair":
                start += 1


def _words(value: str, source: str, at: int) -> Iterator[Run]:
    """Yield a run for every word of a plain, single-quoted or block scalar."""
    single = source[at : at + 1] == "'"
    if single:
        at += 1
    elif header := _HEADER.match(source, at):
        at = header.end()
    for word in _WORD.finditer(value):
        blanks = _BLANKS.match(source, at)
        at = blanks.end() if blanks else at
        start = word.start()
        for part in word[0].split("'") if single else [word[0]]:
            if not source.startswith(part, at):
                yield Run(-1, at, False, False)
                return
            yield Run(start, at, True, False)
            start += len(part) + 1
            at += len(part) + 2 * single
        at -= 2 * single
