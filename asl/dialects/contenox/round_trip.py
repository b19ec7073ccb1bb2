"""Restoration of the chain that a document was read from, and its losses.

The chain is stored in the `Metadata`. It is used only if reading it again gives the same document.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from asl.core.diagnostics import Finding, InvalidDocument
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.source import Source
from asl.core.values import Json
from asl.dialects import foreign_documents
from asl.dialects.base import parse_names
from asl.dialects.contenox.reader import METADATA, PROFILES, profile_of, read

__all__ = ["kept", "lost", "reading_of", "restored"]

_SETTINGS = ("token_limit", "debug", "triggers", "routing_strategy")


def kept(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a document says of the chain that it was, None if nothing."""
    return foreign_documents.kept(value, METADATA, "chain")


def restored(value: Mapping[str, Any]) -> dict[str, Json] | None:
    """Return the chain that a document was read from, None if it is another one by now."""
    about = kept(value)
    if about is None or about.get("profile") not in PROFILES:
        return None
    chain: dict[str, Json] = about["chain"]
    reading = about.get("reading", {})
    try:
        approve = parse_names("approve", reading.get("approve", ()))
        again = read(
            Document(chain, Source()),
            profile=about["profile"],
            external_exits=bool(reading.get("external_exits")),
            approve=approve,
        )
    except (InvalidDocument, AslError, AttributeError):
        return None
    return chain if foreign_documents.same(again.value, value) else None


def reading_of(value: Mapping[str, Any]) -> dict[str, Json]:
    """Return the options with which a chain is read as it was, and does not say itself."""
    about = kept(value)
    assert about is not None
    profile = about["profile"]
    said: dict[str, Json] = {} if profile == profile_of(about["chain"]) else {"profile": profile}
    return {**said, **about.get("reading", {})}


def lost(document: Document) -> Iterator[Finding]:
    """Yield what a document that was read from a chain does not say."""
    about = kept(document.value)
    for key in _SETTINGS if about is not None else ():
        if about is not None and key in about["chain"]:
            yield Finding(
                "L-SETTING",
                f"{key!r} has no effect on a run of the document",
                f"/{key}",
                "it is kept under 'Metadata'",
                at_key=True,
            )
