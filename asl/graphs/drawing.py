"""Drawings of a document, by the name of their format."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from asl.graphs.dot import dot
from asl.graphs.mermaid import mermaid
from asl.graphs.model import Machine
from asl.graphs.svg import svg

__all__ = ["FORMATS"]

FORMATS: Mapping[str, Callable[[Machine], str]] = MappingProxyType(
    {"mermaid": mermaid, "dot": dot, "svg": svg}
)
"""What draws a graph, by the name of the format."""
