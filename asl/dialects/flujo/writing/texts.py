"""Templates: what stands in a text as it is, and values of the context that are put into it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.expressions import TextReference, parts_of
from asl.dialects.flujo.functions.templates import TextPart, ValuePart, parse
from asl.dialects.flujo.writing.held import Held

__all__ = ["Template", "members", "shown", "template_of", "written"]

_CLOSED: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
"""Braces in a text that would be taken for a value."""


class Template(NamedTuple):
    """A text: what stands in it as it is, and paths of the context; or the *value* of one path."""

    parts: tuple[str, ...]
    value: bool = False


def template_of(value: Json, held: Held) -> Template | None:
    """Return a path, or a text put together of paths, as a template; None for anything else."""
    parts = parts_of(value)
    paths = [
        _path(each, held)
        for each in parts or [value]
        if parts is None or type(each) is TextReference
    ]
    if None in paths:
        return None
    if parts is None:
        return Template((TextReference(paths[0]),), value=True)
    filled = iter(paths)
    return Template(
        tuple(TextReference(next(filled)) if type(e) is TextReference else e for e in parts)
    )


def _path(value: Json, held: Held) -> str | None:
    return held.path(value) if isinstance(value, str) else None


def shown(found: str | Template) -> Iterable[str]:
    """Return the parts of a value that is a text by itself."""
    return [found] if isinstance(found, str) else found.parts


def members(found: Mapping[str, str | Template]) -> Iterator[str]:
    """Yield the parts of an object of such values, as JSON."""
    yield "{"
    for index, (key, each) in enumerate(found.items()):
        yield f"{', ' if index else ''}{_quoted(key)}: "
        if isinstance(each, str):
            yield each
        elif each.value:
            yield TextReference(f"{each.parts[0]} | tojson")
        else:
            yield '"'
            for part in each.parts:
                yield part if isinstance(part, TextReference) else _quoted(part)[1:-1]
            yield '"'
    yield "}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def written(parts: Iterable[str]) -> str | None:
    """Return the text of a template of these parts, None where its braces would say another."""
    wanted: list[str] = [""]
    for each in parts:
        if isinstance(each, TextReference):
            wanted += [each, ""]
        else:
            wanted[-1] += each
    text = "".join(
        f"{{{{ {each} }}}}" if index % 2 else _CLOSED.sub(r"\\\g<0>", each)
        for index, each in enumerate(wanted)
    )
    return text if _read(text) == wanted else None


def _read(text: str) -> list[str]:
    """Return the parts of a template, texts and values by turns; nothing of one that has faults."""
    found = [""]
    try:
        parts = parse(text)
    except ExpressionFault:
        return []
    for part in parts:
        if isinstance(part, TextPart):
            found[-1] += part.text
        elif isinstance(part, ValuePart):
            found += [text[part.start + 2 : text.index("}}", part.start)].strip(), ""]
    return found
