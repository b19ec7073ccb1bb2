"""The way back of a document that was read from a blueprint, and what it does not say of that.

The blueprint was kept in the `Metadata`. That is trusted only as far as reading it again gives the
document that is there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.errors import AslError, InvalidDocument
from asl.core.source import Source
from asl.core.values import Json, json_equal
from asl.dialects.flujo.options import options_of
from asl.dialects.flujo.reading import METADATA, read

__all__ = ["kept", "lost", "restored"]


def kept(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a document says of the blueprint that it was, None if nothing."""
    found = value.get("Metadata")
    found = found.get(METADATA) if type(found) is dict else None
    return found if type(found) is dict and type(found.get("blueprint")) is dict else None


def restored(value: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the blueprint that a document was read from, None if it is another one by now."""
    about = kept(value)
    reading = {} if about is None else about.get("reading", {})
    if about is None or type(reading) is not dict:
        return None
    blueprint: dict[str, Json] = about["blueprint"]
    try:
        again = read(Document(blueprint, Source()), options=options_of(**reading))
    except (InvalidDocument, AslError, TypeError):
        return None
    return blueprint if json_equal(_compared(again.value), _compared(value)) else None


def _compared(value: Mapping[str, Any]) -> dict[str, Json]:
    return {key: value.get(key) for key in ("QueryLanguage", "StartAt", "States")}


def lost(document: Document) -> Iterator[Finding]:
    """Yield what a document that was read from a blueprint does not say."""
    about = kept(document.value)
    agents = about["blueprint"].get("agents") if about is not None else None
    if agents:
        yield Finding(
            "L-ACTOR",
            "a document names its agents, and does not say what they are made of",
            "/agents",
            "their definitions are kept under 'Metadata'; bind agents by their names",
            at_key=True,
        )
