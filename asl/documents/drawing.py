"""Drawings of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.dialects import worded
from asl.documents.loading import document_of
from asl.graphs.dot import dot
from asl.graphs.mermaid import mermaid
from asl.graphs.model import MachineGraph, graph_of
from asl.graphs.svg import svg

__all__ = ["FORMATS", "graph"]

FORMATS: Mapping[str, Callable[[MachineGraph], str]] = MappingProxyType(
    {"mermaid": mermaid, "dot": dot, "svg": svg}
)
"""What draws a graph, by the name of the format."""


def graph(document: Document | Loadable, *, format: str = "mermaid") -> str:
    """Draw a document: its states, the machines within, and its transitions.

    `format` is `mermaid`, `dot` or `svg`; the latter needs nothing else. A document with errors is
    drawn as far as it goes. Raises AslError for another format, and for a document of more than
    5,000 states and transitions as `svg`.
    """
    if format not in FORMATS:
        raise AslError(f"no drawing is called {format!r}; there are {', '.join(FORMATS)}")
    loaded = document_of(document)
    return FORMATS[format](graph_of(loaded.whole, worded(loaded)))
