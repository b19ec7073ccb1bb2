"""Drawings of documents."""

from __future__ import annotations

from asl.core.document import Document, What
from asl.core.errors import AslError
from asl.dialects import worded
from asl.documents.loading import document_of
from asl.graphs.drawing import FORMATS
from asl.graphs.model import graph_of

__all__ = ["graph"]


def graph(document: Document | What, *, format: str = "mermaid") -> str:
    """Draw a document: its states, the machines within, and its transitions.

    `format` is `mermaid`, `dot` or `svg`; the latter needs nothing else. A document with errors is
    drawn as far as it goes. Raises AslError for another format, and for a document of more than
    5,000 states and transitions as `svg`.
    """
    if format not in FORMATS:
        raise AslError(f"no drawing is called {format!r}; there are {', '.join(FORMATS)}")
    loaded = document_of(document)
    return FORMATS[format](graph_of(loaded.whole, worded(loaded)))
