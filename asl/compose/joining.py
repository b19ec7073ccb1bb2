"""Documents that are put together from parts: imported when one of them comes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from asl.compose.expansion import expanded
from asl.compose.files import Files, Folder, Kept
from asl.compose.given import Given
from asl.compose.imports import linked
from asl.compose.lock import LOCK
from asl.core.document import Document
from asl.core.values import Json
from asl.sources import load as read

__all__ = ["expanded", "joined", "unlocked"]


def joined(document: Document, given: Given) -> Document:
    """Return a document with its imports, and with the machines that its Includes run."""
    imports: Any = given.imports
    fetch = imports.__getitem__ if isinstance(imports, Mapping) else imports
    files: Files = Folder(given.path(document), given.root)
    if given.files is not None:
        files = Kept(given.files)
    return expanded(linked(document, files, fetch), given.parameters)


def unlocked(path: str, root: str | None) -> tuple[Document, Mapping[str, Json]]:
    """Read a document and its imports whatever its lock says; return that as well."""
    document = read(path)
    lock = document.value.get(LOCK)
    bare = {key: value for key, value in document.value.items() if key != LOCK}
    found = linked(replace(document, value=bare), Folder(path, root))
    return replace(found, value=document.value), lock if type(lock) is dict else {}
