"""The layout of documents: one way to write each, in JSON and in YAML."""

import json
from collections.abc import Iterator
from typing import Any, Final

from asl.core.document import parsed
from asl.core.errors import AslError
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects import detect

__all__ = ["formatted", "laid_out"]

WIDTH: Final = 100


def formatted(source: Source, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text of a document in its usual layout; the value is the same.

    JSON is indented by two, and what fits on a line stands on one. YAML keeps its comments, quotes
    and styles, and is indented by two. Raises InvalidDocument for what cannot be read.
    """
    value = _value(source, limits)
    text = _in_yaml(source.text or "") if source.format == "yaml" else laid_out(value)
    if _strictly(_value(Source(source.name, text, source.format), limits)) != _strictly(value):
        raise AslError(f"{source.name or 'the document'} cannot be laid out without changing it")
    return text


def laid_out(value: Json) -> str:
    """Return a value as JSON in the usual layout."""
    return "\n".join(_lines(value, 0, "")) + "\n"


def _value(source: Source, limits: Limits) -> Json:
    from asl.core.yaml_text import CORE, PLATFORM

    foreign = source.format == "yaml" and detect(source) is not None
    return parsed(source, limits, PLATFORM if foreign else CORE).value


def _strictly(value: Json) -> str:
    """Return a value to be compared: 1 is not 1.0, true is not 1, and members have an order."""
    return json.dumps(value)


def _lines(value: Json, indent: int, comma: str) -> Iterator[str]:
    """Yield the lines of a value; the first one follows what stands before it."""
    inline = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        yield inline + comma
        return
    if not _nested(value) and indent + len(inline) <= WIDTH:
        opening, closing = inline[0], inline[-1]
        blank = " " if opening == "{" else ""
        yield f"{opening}{blank}{inline[1:-1]}{blank}{closing}{comma}"
        return
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield opening
    margin = " " * (indent + 2)
    members: list[tuple[str, Any]] = (
        [(f"{json.dumps(key, ensure_ascii=False)}: ", each) for key, each in value.items()]
        if isinstance(value, dict)
        else [("", each) for each in value]
    )
    for index, (head, each) in enumerate(members):
        first, *rest = _lines(each, indent + 2, "," if index + 1 < len(members) else "")
        yield f"{margin}{head}{first}"
        yield from rest
    yield " " * indent + closing + comma


def _nested(value: Json) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return any(isinstance(each, dict | list) and each for each in parts)


def _in_yaml(text: str) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    written = StringIO()
    yaml.dump(yaml.load(text), written)
    return written.getvalue()
