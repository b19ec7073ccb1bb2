"""Comparison of documents."""

from __future__ import annotations

from asl.core.document import Document, Loadable
from asl.dialects.conversion import part_descriptions, plain_machine
from asl.dialects.registry import NATIVE
from asl.documents.loading import resolve_document
from asl.graphs.difference import Difference, difference, without_originals

__all__ = ["diff"]


def diff(before: Document | Loadable, after: Document | Loadable) -> Difference:
    """Compare two documents as graphs: states, transitions, data flow and behavior.

    The order of states and of object members does not matter. Documents of two dialects are
    compared by their behavior, and in the form that converts to other dialects; the result with
    fewer differences is returned.

    Args:
        before: A document, or its path, text or dict.
        after: The document to compare with.

    Returns:
        The differences; `same` if there are only remarks.

    Raises:
        InvalidDocument: A document cannot be read.
        DocumentNotFound: No file exists at the path.
    """
    left, right = resolve_document(before), resolve_document(after)
    read = NATIVE not in (left.dialect, right.dialect)
    found = difference(
        left.composed_value,
        right.composed_value,
        (part_descriptions(left), part_descriptions(right)),
        read=read,
    )
    if left.dialect == right.dialect or found.same:
        return without_originals(found, left, right)
    return min(found, difference(plain_machine(left), plain_machine(right)), key=len)
