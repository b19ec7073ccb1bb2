"""Comparison of documents."""

from __future__ import annotations

from asl.core.document import Document, Loadable
from asl.dialects.conversion import expand_meanings, part_descriptions
from asl.dialects.registry import NATIVE
from asl.documents.loading import resolve_document
from asl.graphs.difference import Difference, difference, without_originals

__all__ = ["diff"]


def diff(before: Document | Loadable, after: Document | Loadable) -> Difference:
    """Compare two documents as graphs: states, transitions, data flow and behavior.

    The order of states and of object members does not matter. Documents of two dialects are
    compared as they run, and with meanings in place of the functions of their dialects; the result
    with fewer differences is returned.

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
    return min(found, difference(expand_meanings(left), expand_meanings(right)), key=len)
