"""Layer 4: imports, templates and modules become one document (Specification 9).

Reading a document (`joining`) follows its imports (`imports`), and then gives every Include the
machine that it runs (`expansion`): an imported document whose parameters are filled in (`filling`),
patched by the Include (`overrides`), and cut out of a module (`modules`). What comes of it is a
document like any other that knows which file each of its parts is written in.
"""

import os
from collections.abc import Mapping
from typing import Any

from asl.compose.files import Fetch, ImportOptions
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, Loadable
from asl.core.values import Json
from asl.sources import load as read
from asl.sources import load_each as read_each
from asl.states.machines import include_states

__all__ = ["compose", "compose_runnable", "load", "load_each"]


def load(
    what: Loadable,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Fetch | Mapping[str, Loadable] | None = None,
    files: Mapping[str, Loadable] | None = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> Document:
    """Read a document and put it together; see `asl.load`.

    `files` stand for a folder: the documents that may be imported, by their paths. *origin* is for
    `asl.sources.load`.
    """
    document = read(what, name=name, root=_text(root), **origin)
    return _joined(document, ImportOptions(what, name, root, imports, files, parameters))


def load_each(
    what: Loadable,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Fetch | Mapping[str, Loadable] | None = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> list[Document | InvalidDocument]:
    """Read a document, or all that a template holds: each one, or why it cannot be read."""
    given = ImportOptions(what, name, root, imports, None, parameters)
    return [
        each if isinstance(each, InvalidDocument) else _joined(each, given)
        for each in read_each(what, name=name, root=_text(root), **origin)
    ]


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _joined(document: Document, given: ImportOptions) -> Document:
    if not given.parameters and not _has_parts(document.value):
        return document
    from asl.compose.imports import compose_imports

    return compose_imports(document, given)


def compose(document: Document) -> Document:
    """Return a document that was read by itself, with whatever can be put together without more."""
    if document.composition is not None or not _has_parts(document.value):
        return document
    return _expanded(document)


def compose_runnable(document: Document) -> Document:
    """Return a document to be run: a template is filled in with its defaults."""
    if not document.value.get("Parameters") or _is_refused(document):
        return compose(document)
    return _expanded(document, {})


def _expanded(document: Document, parameters: Mapping[str, Json] | None = None) -> Document:
    from asl.compose.expansion import expand

    return expand(document, parameters)


def _is_refused(document: Document) -> bool:
    """Whether a template was given values that it does not take, and says so already."""
    findings = () if document.composition is None else document.composition.findings
    return any(each.code == "V-TPL-03" and each.severity is None for each in findings)


def _has_parts(value: Json) -> bool:
    """Whether a document is put together from parts, or is meant to be one."""
    if type(value) is not dict:
        return False
    return not _WHOLE.isdisjoint(value) or any(True for _ in include_states(value))


_WHOLE = frozenset(("Imports", "Parameters", "_lock"))
