"""Layer 4: imports, templates and modules become one document (Specification 9).

Reading a document follows its imports (`imports`), and then gives every Include the machine that it
runs (`expansion`): an imported document whose parameters are filled in (`filling`), patched by the
Include (`overrides`), and cut out of a module (`modules`). What comes of it is a document like any
other that knows which file each of its parts is written in.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from asl.compose.includes import includes
from asl.core.document import Document, What, path_of
from asl.core.errors import InvalidDocument
from asl.core.values import Json
from asl.sources import load as read
from asl.sources import load_each as read_each

if TYPE_CHECKING:
    from asl.compose.imports import Fetch

__all__ = ["composed", "load", "load_each", "runnable", "unlocked"]


def load(
    what: What,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: "Fetch | Mapping[str, What] | None" = None,
    files: Mapping[str, What] | None = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> Document:
    """Read a document and put it together; see `asl.load`.

    `files` stand for a folder: the documents that may be imported, by their paths. *origin* is for
    `asl.sources.load`.
    """
    document = read(what, name=name, root=_text(root), **origin)
    return _joined(document, _Parts(what, name, root, imports, files, parameters))


def load_each(
    what: What,
    *,
    name: str | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: "Fetch | Mapping[str, What] | None" = None,
    parameters: Mapping[str, Json] | None = None,
    **origin: Any,
) -> list[Document | InvalidDocument]:
    """Read a document, or all that a template holds: each one, or why it cannot be read."""
    parts = _Parts(what, name, root, imports, None, parameters)
    return [
        each if isinstance(each, InvalidDocument) else _joined(each, parts)
        for each in read_each(what, name=name, root=_text(root), **origin)
    ]


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def unlocked(path: str, root: str | None) -> tuple[Document, Mapping[str, Json]]:
    """Read a document and its imports whatever its lock says; return that as well."""
    from asl.compose.files import Folder
    from asl.compose.imports import linked
    from asl.compose.lock import LOCK

    document = read(path)
    lock = document.value.get(LOCK)
    bare = {key: value for key, value in document.value.items() if key != LOCK}
    found = linked(replace(document, value=bare), Folder(path, root))
    return replace(found, value=document.value), lock if type(lock) is dict else {}


class _Parts(NamedTuple):
    """What the caller says of the parts of a document."""

    what: What
    name: str | None
    root: str | os.PathLike[str] | None
    imports: "Fetch | Mapping[str, What] | None"
    files: Mapping[str, What] | None
    parameters: Mapping[str, Json] | None

    def path(self, document: Document) -> str | None:
        """The path of the file that was read, None for what is no file."""
        path = path_of(self.what) or getattr(self.what, "name", None)
        if not isinstance(path, str) or path.startswith("<"):
            return None
        return path if self.name is not None else document.source.name


def _joined(document: Document, parts: _Parts) -> Document:
    if not parts.parameters and not _has_parts(document.value):
        return document
    from asl.compose.expansion import expanded
    from asl.compose.files import Files, Folder, Kept
    from asl.compose.imports import linked

    imports: Any = parts.imports
    fetch = imports.__getitem__ if isinstance(imports, Mapping) else imports
    files: Files = Folder(parts.path(document), parts.root)
    if parts.files is not None:
        files = Kept(parts.files)
    return expanded(linked(document, files, fetch), parts.parameters)


def composed(document: Document) -> Document:
    """Return a document that was read by itself, with whatever can be put together without more."""
    if document.composition is not None or not _has_parts(document.value):
        return document
    from asl.compose.expansion import expanded

    return expanded(document)


def runnable(document: Document) -> Document:
    """Return a document to be run: a template is filled in with its defaults."""
    if not document.value.get("Parameters") or _is_refused(document):
        return composed(document)
    from asl.compose.expansion import expanded

    return expanded(document, {})


def _is_refused(document: Document) -> bool:
    """Whether a template was given values that it does not take, and says so already."""
    findings = () if document.composition is None else document.composition.findings
    return any(each.code == "V-TPL-03" and each.severity is None for each in findings)


def _has_parts(value: Json) -> bool:
    """Whether a document is put together from parts, or is meant to be one."""
    if type(value) is not dict:
        return False
    return not _WHOLE.isdisjoint(value) or any(True for _ in includes(value))


_WHOLE = frozenset(("Imports", "Parameters", "_lock"))
