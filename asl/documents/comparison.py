"""Comparison of documents."""

from __future__ import annotations

from asl.core.document import Document, Loadable
from asl.dialects import NATIVE, said_plainly, worded
from asl.documents.loading import document_of
from asl.graphs.difference import Difference, difference, without_originals

__all__ = ["diff"]


def diff(before: Document | Loadable, after: Document | Loadable) -> Difference:
    """Say what two documents differ in, as graphs: states, transitions, data flow, behaviour.

    The order of states and of the members of objects means nothing. `same` says whether there is
    nothing but remarks. Documents of two languages are compared as they run, and as either is said
    in plain paths on the way to a third one; the fewer differences are told.

    Raises InvalidDocument for what cannot be read, DocumentNotFound for a path without a file.
    """
    left, right = document_of(before), document_of(after)
    read = NATIVE not in (left.dialect, right.dialect)
    found = difference(left.whole, right.whole, (worded(left), worded(right)), read=read)
    if left.dialect == right.dialect or found.same:
        return without_originals(found, left, right)
    return min(found, difference(said_plainly(left), said_plainly(right)), key=len)
