"""Detection and conversion of dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asl.core.document import Document, Loadable, open_source, read
from asl.dialects import load as load_document
from asl.dialects.base import Conversion
from asl.dialects.conversion import convert_document
from asl.dialects.registry import NATIVE
from asl.dialects.registry import detect as by_shape

__all__ = ["convert", "detect"]


def convert(
    document: Document | Loadable,
    to: str,
    *,
    implicit_retry: bool = True,
    reading: Mapping[str, Any] | None = None,
    **writing: Any,
) -> Conversion:
    """Convert a document to another dialect.

    Args:
        document: A document (`asl.load`), or its path, text or dict.
        to: Name of the dialect: `"asl"`, `"amazon"`, `"codemie"`, `"contenox"`, `"flujo"`, or the
            name of an entry point in the group `asl.dialects`.
        implicit_retry: Whether to write out the retries that the source platform makes by
            default; True by default.
        reading: Further options of the reader of the source dialect.
        **writing: Options of the writer (docs/convert.md), such as `names` (names of agents and
            resources in the target) and `tools`.

    Returns:
        The conversion: `text`, `document` (the value), `losses` (diagnostics: an error for lost
        behavior, a warning for approximated behavior, with a hint on the replacement), and `ok`
        if no behavior is lost.

    Raises:
        InvalidDocument: The document cannot be read.
        AslError: The dialect or an option is unknown.
    """
    if not isinstance(document, Document):
        asked = {} if implicit_retry else {"implicit_retry": False}
        document = load_document(document, reading={**asked, **(reading or {})})
    return convert_document(document, to, writing)


def detect(source: Loadable) -> str:
    """Return the name of the dialect of a document, by its shape.

    Args:
        source: Path, text, dict or open file; its content is not checked.

    Returns:
        The name of the dialect; `"asl"` for Amazon States Language and for any unknown shape.

    Raises:
        DocumentNotFound: No file exists at the path.
    """
    found = by_shape(read(source) if isinstance(source, dict) else open_source(source))
    return NATIVE if found is None else found.name
