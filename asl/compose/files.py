"""Sources of imported documents: files below a folder, or documents from the caller."""

import os
import posixpath
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from asl.core.document import Document, Loadable, path_of, read
from asl.core.errors import AslError
from asl.core.values import Json

__all__ = ["BESIDE", "DiskFiles", "Fetch", "Files", "ImportOptions", "ImportRefused", "MappedFiles"]

Fetch: TypeAlias = Callable[[str], Loadable]
"""Returns the document of a source other than a file; raises AslError or KeyError."""


class ImportRefused(AslError):
    """An import is not allowed or cannot be read; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Files(Protocol):
    """A tree of files. Names are those shown in diagnostics."""

    document: str | None
    """The identity of the importing document, None if it is no file."""

    def find(self, source: str, importing: str | None) -> tuple[str, str]:
        """Return the identity of a file and its name, relative to the importing file.

        Raises:
            ImportRefused: The file may not be read.
        """
        ...

    def read(self, key: str, name: str) -> Document:
        """Read a file; raises what `asl.core.document.read` raises."""
        ...


BESIDE: Final = "only files below the folder of the document are read"
_ALLOW: Final = "name a wider folder with root= or --root"


class DiskFiles:
    """Files on disk below one folder.

    Args:
        document: The path of the importing document, if it is a file.
        root: The folder; the document's own by default. Absolute paths need a root.
    """

    def __init__(self, document: str | None, root: str | os.PathLike[str] | None) -> None:
        self.given = root is not None
        self.document = None if document is None else os.path.realpath(document)
        folder = None if document is None else os.path.dirname(document)
        self.shown = os.fspath(root) if root is not None and folder is None else folder
        chosen = root if root is not None else folder
        self.root = None if chosen is None else os.path.realpath(chosen or ".")

    def find(self, source: str, importing: str | None) -> tuple[str, str]:
        """Return the real path of a file, and its path as the caller would write it.

        Raises:
            ImportRefused: The path is refused.
        """
        if self.root is None:
            message = "a document without a file cannot import files"
            raise ImportRefused(message, "set root= to the folder of its imports")
        folder = self.shown if importing is None else os.path.dirname(importing)
        if os.path.isabs(source) and not self.given:
            raise ImportRefused(f"an absolute path is not read: {BESIDE}", _ALLOW)
        name = os.path.normpath(os.path.join(folder or "", source))
        try:
            key = os.path.realpath(name)
        except ValueError:
            raise ImportRefused("the source is not a path") from None
        if key != self.root and not key.startswith(os.path.join(self.root, "")):
            raise ImportRefused(f"{source!r} leads out of {self.root!r}: {BESIDE}", _ALLOW)
        return key, name

    def read(self, key: str, name: str) -> Document:
        """Read a regular file; raises ImportRefused for anything else."""
        if os.path.exists(key) and not os.path.isfile(key):
            raise ImportRefused(f"{name!r} is no file")
        return read(name)


class MappedFiles:
    """Documents by path, relative to the importing document."""

    document: str | None = None

    def __init__(self, documents: Mapping[str, Loadable]) -> None:
        self.documents = {posixpath.normpath(path): what for path, what in documents.items()}

    def find(self, source: str, importing: str | None) -> tuple[str, str]:
        """Return the normalized path, as identity and as name.

        Raises:
            ImportRefused: The path is refused.
        """
        path = posixpath.normpath(posixpath.join(posixpath.dirname(importing or ""), source))
        if path.startswith(("/", "../")) or path == "..":
            raise ImportRefused(f"{source!r} leads out of the given files: {BESIDE}")
        return path, path

    def read(self, key: str, name: str) -> Document:
        """Read a document from the mapping.

        Raises:
            ImportRefused: The mapping has no such document.
        """
        if key not in self.documents:
            raise ImportRefused(f"there is no file {key!r}")
        what = self.documents[key]
        return read(what.encode() if isinstance(what, str) else what, name=name)


class ImportOptions(NamedTuple):
    """The caller's arguments about imports and parameters of a document."""

    what: Loadable
    name: str | None
    root: str | os.PathLike[str] | None
    imports: Fetch | Mapping[str, Loadable] | None
    files: Mapping[str, Loadable] | None
    parameters: Mapping[str, Json] | None

    def path(self, document: Document) -> str | None:
        """Return the path of the document's file, None without a file."""
        path = path_of(self.what) or getattr(self.what, "name", None)
        if not isinstance(path, str) or path.startswith("<"):
            return None
        return path if self.name is not None else document.source.name
