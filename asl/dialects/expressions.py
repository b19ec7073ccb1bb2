"""Expressions of documents: queries in JSONata, and texts with `States.Format`."""

import re
from collections.abc import Iterable
from typing import Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.expr import templates
from asl.expr.jsonata.javascript import literal

__all__ = ["TextReference", "handed", "inserted", "query", "said", "texted"]

_FORMAT_SPECIAL: Final = re.compile(r"[\\'{}]")


class TextReference(str):
    """A part of a text that is the value of a path, or of a call of an intrinsic function."""


def said(parts: Iterable[str]) -> tuple[str, Json]:
    """Return how a field of a payload template ends that gives a text of these parts, and it."""
    listed = [each for each in parts if each]
    paths = [each for each in listed if isinstance(each, TextReference)]
    if not paths:
        return "", "".join(listed)
    if listed == paths and len(paths) == 1:
        return ".$", str(paths[0])
    shown = (
        "{}" if isinstance(each, TextReference) else _FORMAT_SPECIAL.sub(r"\\\g<0>", each)
        for each in listed
    )
    return ".$", f"States.Format('{''.join(shown)}', {', '.join(paths)})"


def texted(parts: Iterable[str]) -> tuple[str, Json]:
    """Return the same, where the value of a path alone is to be a text, too."""
    listed = [each for each in parts if each]
    if len(listed) == 1 and isinstance(listed[0], TextReference):
        return ".$", f"States.Format('{{}}', {listed[0]})"
    return said(listed)


def inserted(text: str) -> list[str]:
    """Return the parts of a text into which `{{ ... }}` insert values."""
    try:
        parts = templates.parse_text(text)
    except ExpressionFault:
        return [text]
    return [each if isinstance(each, str) else TextReference(each.text) for each in parts]


def query(source: str) -> str:
    """Return an expression between its delimiters."""
    return f"{{% {source} %}}"


def handed(value: Json) -> Json:
    """Return a value that is handed over as it is: what looks like an expression is a text."""
    if isinstance(value, dict):
        return {key: handed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [handed(each) for each in value]
    if isinstance(value, str) and ("{%" in value or "%}" in value):
        return query(literal(value))
    return value
