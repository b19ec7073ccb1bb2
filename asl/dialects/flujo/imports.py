"""Imports: blueprints that a blueprint names, and those that they name, read below its folder."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from asl.compose.files import Files, ImportRefused
from asl.core.diagnostics import Finding, InvalidDocument, Severity, is_error
from asl.core.document import Document
from asl.core.errors import DocumentNotFound
from asl.core.pointers import escape
from asl.core.source import Limits
from asl.core.values import Json
from asl.dialects.flujo import schema
from asl.dialects.flujo.blueprint import Blueprint
from asl.dialects.foreign_documents import as_platform

__all__ = ["Linker"]

CODE: Final = "FL-IMPORT"
FAULT: Final = "FL-YAML"
MAX_NESTED: Final = 16
MAX_DOCUMENTS: Final = 100


class Linker:
    """Reads what is imported; findings and steps of it stand below `/imports/NAME`."""

    def __init__(self, files: Files | None, limits: Limits) -> None:
        self.files = files
        self.limits = limits
        self.findings: list[Finding] = []
        self.homes: dict[str, tuple[Document, str]] = {}
        """The documents that are imported, by where they stand."""
        self.kept: dict[str, Json] = {}
        """Their values, by their paths from the folder of the first blueprint."""
        self.read = 0

    def blueprint(
        self,
        value: Mapping[str, Any],
        base: str = "",
        at: str | None = None,
        path: str = "",
        around: Any = None,
    ) -> Blueprint:
        """Return a blueprint with what it imports, as far as that can be read.

        *at* is its own name among the files and *path* its path from the first one, *around* what
        identifies those that import it.
        """
        found = Blueprint(value, base)
        if self.files is None:
            return found
        if around is None:
            around = () if self.files.document is None else (self.files.document,)
        for alias, source in found.imports.items():
            place = f"{base}/imports/{escape(alias)}"
            below = posixpath.normpath(posixpath.join(posixpath.dirname(path), str(source)))
            child = self.imported(str(source), place, at, below, around)
            if child is not None:
                found.imported[alias] = child
        return found

    def imported(
        self, source: str, place: str, at: str | None, path: str, around: tuple[str, ...]
    ) -> Blueprint | None:
        files = self.files
        assert files is not None
        try:
            key, name = files.find(source, at)
        except ImportRefused as refusal:
            if getattr(files, "root", "") is not None:
                self.refuse(str(refusal), place, refusal.hint)
            return None
        if key in around:
            message = f"{source!r} imports this blueprint, directly or through others"
            self.refuse(message, place, "move what both need into a third blueprint")
            return None
        if len(around) > MAX_NESTED or self.read >= MAX_DOCUMENTS:
            message = f"more than {MAX_NESTED} imports in each other, or {MAX_DOCUMENTS} together"
            self.refuse(message, place, "bind an agent of its name instead")
            return None
        try:
            document = files.read(key, name)
            if document.source.text is not None:
                document = as_platform(document.source, self.limits, FAULT)
        except (DocumentNotFound, ImportRefused):
            return None
        except InvalidDocument as refusal:
            first = refusal.report.errors[0]
            message = f"{source!r} cannot be read: {first.message}"
            self.refuse(message, place, f"see {first.where}")
            return None
        self.read += 1
        document = replace(document, dialect="flujo")
        self.homes[place] = (document, "")
        found = [
            each._replace(pointer=f"{place}{each.pointer}") for each in schema.check(document.value)
        ]
        self.findings += found
        if any(map(is_error, found)):
            return None
        self.kept[path] = document.value
        return self.blueprint(document.value, place, name, path, (*around, key))

    def refuse(self, message: str, place: str, hint: str | None) -> None:
        self.findings.append(Finding(CODE, message, place, hint, severity=Severity.ERROR))
