"""Scalars of YAML 1.1 that are not what they look like: `no` is false, `12:30` a number."""

import re
from collections.abc import Iterator

from asl.core import yaml_text
from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.pointers import escape
from asl.core.source import Span
from asl.core.values import Json

__all__ = ["otherwise"]

_WORD = re.compile(r"[^\s,\]}#]+")


def otherwise(foreign: Document, code: str) -> Iterator[Finding]:
    """Yield the scalars of a text that YAML 1.2 would read otherwise than its platform does."""
    if foreign.source.format == "yaml" and foreign.source.text is not None:
        yield from _otherwise(foreign.value, foreign.span, foreign.source.text, "", code)


def _otherwise(value: Json, span: Span, text: str, pointer: str, code: str) -> Iterator[Finding]:
    if isinstance(span.members, dict):
        for key, member in span.members.items():
            yield from _otherwise(value[key], member, text, f"{pointer}/{escape(key)}", code)
    elif span.members is not None:
        for index, member in enumerate(span.members):
            yield from _otherwise(value[index], member, text, f"{pointer}/{index}", code)
    elif type(value) in (bool, int, float):
        match = _WORD.match(text, span.at)
        if match is None or match[0][0] in "*&!\"'":
            return
        meant = yaml_text.core_scalar(match[0])
        if meant != value or type(meant) is not type(value):
            shown = str(value).lower() if type(value) is bool else repr(value)
            yield Finding(
                code,
                f"the platform reads {match[0]} as {shown}",
                pointer,
                "put it in quotes if it is text, or write the value that is meant",
            )
