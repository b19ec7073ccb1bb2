"""Restoration of the blueprint that a document was read from, and its losses.

The blueprint is stored in the `Metadata`. It is used only if reading it again gives the same
document.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.compose.files import MappedFiles
from asl.core.diagnostics import Finding, InvalidDocument
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.source import Source
from asl.core.values import Json
from asl.dialects import foreign_documents
from asl.dialects.flujo.options import parse_options
from asl.dialects.flujo.reader import METADATA, read

__all__ = ["imported", "kept", "lost", "restored"]


def kept(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a document says of the blueprint that it was, None if nothing."""
    return foreign_documents.kept(value, METADATA, "blueprint")


def imported(value: Mapping[str, Any]) -> dict[str, Json]:
    """Return the blueprints that the one imports that a document was read from, by their paths."""
    about = kept(value)
    found = about.get("imports") if about is not None else None
    return found if type(found) is dict else {}


def restored(value: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the blueprint that a document was read from, None if it is another one by now."""
    about = kept(value)
    reading = {} if about is None else about.get("reading", {})
    if about is None or type(reading) is not dict:
        return None
    blueprint: dict[str, Json] = about["blueprint"]
    try:
        files = MappedFiles(imported(value)) if imported(value) else None
        again = read(Document(blueprint, Source()), options=parse_options(**reading), files=files)
    except (InvalidDocument, AslError, TypeError):
        return None
    return blueprint if foreign_documents.same(again.value, value) else None


def lost(document: Document) -> Iterator[Finding]:
    """Yield what a document that was read from a blueprint does not say."""
    about = kept(document.value)
    agents = about["blueprint"].get("agents") if about is not None else None
    if agents:
        yield Finding(
            "L-ACTOR",
            "a document names its agents, without their definitions",
            "/agents",
            "their definitions are stored under 'Metadata'; bind agents by their names",
            at_key=True,
        )
