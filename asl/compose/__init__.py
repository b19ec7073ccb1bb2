"""Layer 4: compose imports, templates and modules into one document (Specification 9).

`imports` loads the imported documents. `expansion` then gives every Include the machine that it
runs: an imported document with its parameters filled in (`substitution`), patched by the Include
(`overrides`), and cut out of a module (`modules`). The result is an ordinary document that knows
the file of each of its parts.
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
    source: Loadable,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Fetch | Mapping[str, Loadable] | None = None,
    files: Mapping[str, Loadable] | None = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> Document:
    """Read a document and compose it; see `asl.load`.

    Args:
        files: Documents that may be imported, by path; replaces the file system.
        origin: Arguments for `asl.sources.load`.
    """
    document = read(source, name=name, root=_text(root), **origin)
    return _joined(document, ImportOptions(source, name, root, imports, files, parameters))


def load_each(
    source: Loadable,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Fetch | Mapping[str, Loadable] | None = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> list[Document | InvalidDocument]:
    """Read a document, or all documents of a template; failures are returned as InvalidDocument."""
    given = ImportOptions(source, name, root, imports, None, parameters)
    return [
        each if isinstance(each, InvalidDocument) else _joined(each, given)
        for each in read_each(source, name=name, root=_text(root), **origin)
    ]


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _joined(document: Document, given: ImportOptions) -> Document:
    if not given.parameters and not _has_parts(document.value):
        return document
    from asl.compose.imports import compose_imports

    return compose_imports(document, given)


def compose(document: Document) -> Document:
    """Return a document composed without imports, if it has not been composed yet."""
    if document.composition is not None or not _has_parts(document.value):
        return document
    return _expanded(document)


def compose_runnable(document: Document) -> Document:
    """Return a document to run: a template is filled with its defaults."""
    if not document.value.get("Parameters") or _is_refused(document):
        return compose(document)
    return _expanded(document, {})


def _expanded(document: Document, parameters: Mapping[str, Json] | None = None) -> Document:
    from asl.compose.expansion import expand

    return expand(document, parameters)


def _is_refused(document: Document) -> bool:
    """Return whether a template got invalid arguments, which is reported already."""
    findings = () if document.composition is None else document.composition.findings
    return any(each.code == "V-TPL-03" and each.severity is None for each in findings)


def _has_parts(value: Json) -> bool:
    """Return whether a document has imports, parameters, a lock or Includes."""
    if type(value) is not dict:
        return False
    return not _WHOLE.isdisjoint(value) or any(True for _ in include_states(value))


_WHOLE = frozenset(("Imports", "Parameters", "_lock"))
