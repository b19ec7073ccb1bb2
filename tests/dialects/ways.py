"""A document on its way to another language, and back again."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import asl
from asl.core.document import Document
from asl.dialects import load
from tests.dialects.behaviour import Part, Script, adapted, observe, unreported

__all__ = ["Way", "changes", "there_and_back", "way"]

Json = Any
Reading = Mapping[str, Any]


class Way(NamedTuple):
    """A document, what it was converted to, and that read again."""

    document: Document
    conversion: asl.Conversion
    there: Document


def way(document: Document, target: str, reading: Reading | None = None) -> Way:
    """Convert a document, and read what was written; raises InvalidDocument if that has errors."""
    conversion = asl.convert(document, target)
    there = load(conversion.text, dialect=target, files=conversion.files, reading=reading)
    asl.check(there).raise_for_errors()
    return Way(document, conversion, there)


def there_and_back(
    document: Document, target: str, home: str = "", reading: Reading | None = None
) -> list[Way]:
    """Convert a document, and what was made of it home again, where it is read as it was.

    But for options that name states: what comes home has its own.
    """
    there = way(document, target)
    again = {option: value for option, value in (reading or {}).items() if option != "fail_states"}
    return [there, way(there.there, home or document.dialect, again)]


LEADING = {"current_state", "next_state"}
"""What leads a machine of a blueprint, where a run begins with it."""


def held(input: Json) -> Mapping[str, Json]:
    """Return the fields of the context that an input gives."""
    context = input.get("context") if isinstance(input, dict) else None
    return context if isinstance(context, dict) else {}


def changes(ways: Iterable[Way], input: Json, script: Script) -> tuple[str, set[Part]] | None:
    """Return the first change without a word in the report: to which language, and what."""
    before = None
    for each in ways:
        if before is None:
            before = observe(each.document, input, script)
        input = adapted(input, each.conversion)
        if each.conversion.dialect == "flujo" and LEADING & held(input).keys():
            return None  # as FL-OUTPUT tells
        after = observe(each.there, input, script)
        found = unreported(before, after, each.conversion, each.document)
        if found:
            return each.conversion.dialect, found
        before = after
    return None
