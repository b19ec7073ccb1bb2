"""Drawings of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.dialects.conversion import part_descriptions
from asl.documents.loading import resolve_document
from asl.graphs.dot import dot
from asl.graphs.mermaid import mermaid
from asl.graphs.model import MachineGraph, graph_of
from asl.graphs.svg import svg

__all__ = ["FORMATS", "graph"]

FORMATS: Mapping[str, Callable[[MachineGraph], str]] = MappingProxyType(
    {"mermaid": mermaid, "dot": dot, "svg": svg}
)
"""The functions that draw a graph, by format."""


def graph(document: Document | Loadable, *, format: str = "mermaid") -> str:
    """Draw the states and transitions of a document.

    Args:
        document: A document, or its path, text or dict; it may have errors.
        format: `"mermaid"` (default), `"dot"` or `"svg"`, which needs no other program.

    Returns:
        The text of the drawing.

    Raises:
        InvalidDocument: The document cannot be read.
        AslError: The format is unknown, or the graph has more than 5,000 states and transitions
            (`"svg"` only).
    """
    if format not in FORMATS:
        raise AslError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    loaded = resolve_document(document)
    return FORMATS[format](graph_of(loaded.composed_value, part_descriptions(loaded)))
