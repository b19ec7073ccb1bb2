"""Documents in any language: other ones are read as documents of Agent State Language."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from asl.compose import load as load_document
from asl.compose import load_each as load_documents
from asl.compose.files import DiskFiles, Files, MappedFiles
from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, Loadable, path_of
from asl.core.lazy import lazy_pattern
from asl.core.source import Limits, Source
from asl.engine.definitions import AgentDefinition, NoDefinitions
from asl.sources import Foreign

__all__ = ["agent_definitions", "is_native", "load", "load_each"]


def is_native(what: Source | Document) -> bool:
    """Return whether the shape of a document is enough to say that it is of this language."""
    if isinstance(what, Document):
        return type(what.value) is not dict or "States" in what.value
    if what.text is None:
        return True
    if what.format == "json":
        return '"States"' in what.text
    return _NATIVE_KEY.search(what.text) is not None


_NATIVE_KEY: Final = lazy_pattern(r"""^["']?(?:States|StartAt)["']?[ \t]*:""", re.MULTILINE)
"""A field of the language at the root of a YAML text."""


def agent_definitions(document: Mapping[str, Any]) -> Mapping[str, AgentDefinition]:
    """Return the agents that a document defines in the language that it was read from.

    Args:
        document: Value of a document of Agent State Language.

    Returns:
        The definitions by the names of the agents; none for a document that defines none.
    """
    if type(document.get("Metadata")) is not dict:
        return NoDefinitions
    from asl.dialects.registry import agent_definitions as definitions

    return definitions(document)


def load(
    what: Loadable,
    *,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> Document:
    """Read a document in any dialect, found out by its shape where it is not named.

    `reading` are options of the dialect's reader; raises AslError for one that it does not have.
    Everything else is as in `asl.compose.load`.
    """
    return load_document(what, foreign=_reader(what, dialect, reading, options), **options)


def load_each(
    what: Loadable,
    *,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Document | InvalidDocument]:
    """Read a document in any dialect, or all that a template holds: each, or why it cannot be."""
    return load_documents(what, foreign=_reader(what, dialect, reading, options), **options)


def _reader(
    what: Loadable, name: str | None, reading: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> Foreign:
    """Return what reads the text of *what*; *options* say where further files lie."""
    files = partial(_files, what, options.get("root"), options.get("files"))
    return partial(_foreign, name, reading or {}, files)


def _files(what: Loadable, root: Any, files: Mapping[str, Loadable] | None) -> Files:
    return DiskFiles(path_of(what), root) if files is None else MappedFiles(files)


def _foreign(
    name: str | None,
    reading: Mapping[str, Any],
    files: Callable[[], Files],
    what: Source | Document,
    limits: Limits,
) -> Document | None:
    """Read what is of another language; None for what is not."""
    if name is None and not reading and is_native(what):
        return None
    from asl.dialects.registry import read_foreign

    return read_foreign(name, reading, files, what, limits)
