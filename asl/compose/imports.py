"""Load the imports of a document, and their imports (Specification 9.1)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from asl.compose.expansion import expand
from asl.compose.files import (
    BESIDE,
    DiskFiles,
    Fetch,
    Files,
    ImportOptions,
    ImportRefused,
    MappedFiles,
)
from asl.compose.lock import LATEST, LOCK, Pin, digest, is_registry, parse_registry_source
from asl.core.diagnostics import Finding, InvalidDocument, did_you_mean
from asl.core.document import Composition, Document, read
from asl.core.errors import AslError
from asl.core.pointers import escape
from asl.core.source import Place, Span
from asl.core.values import Json
from asl.sources import load
from asl.states.machines import include_states

__all__ = ["compose_imports", "link_imports", "load_unlocked"]

MAX_NESTED: Final = 16
MAX_DOCUMENTS: Final = 1000
MAX_CHARACTERS: Final = 64 * 1024 * 1024
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def link_imports(document: Document, files: Files, fetch: Fetch | None = None) -> Document:
    """Return a document with all of its imports; the same object if it has none.

    An import that cannot be loaded is a finding.
    """
    if "Imports" not in document.value and LOCK not in document.value:
        return document
    linker = _Linker(files, fetch)
    around = () if files.document is None else (files.document,)
    found = linker.link(document, "", around, None)
    assert found.composition is not None
    composition = found.composition._replace(origins=linker.origins)
    findings = (*document.findings, *linker.findings)
    return replace(found, composition=composition, findings=findings)


class _Linker:
    """The import graph of one document. Findings are at `/Imports/NAME/Imports/NAME`."""

    def __init__(self, files: Files, fetch: Fetch | None) -> None:
        self.files = files
        self.fetch = fetch
        self.findings: list[Finding] = []
        self.origins: dict[str, tuple[Document, str]] = {}
        self.documents: dict[str, Document] = {}
        """The documents read so far, by identity."""
        self.open: dict[str, Document] = {}
        """The documents whose imports are being read, by identity."""
        self.characters = 0

    def link(
        self, document: Document, pointer: str, around: tuple[str, ...], at: str | None
    ) -> Document:
        """Return a document with its imports; *at* is its own name among the files."""
        if around:
            self.open[around[-1]] = document
        if pointer:
            for key in ("Imports", LOCK):
                self.origins[f"{pointer}/{key}"] = document, f"/{key}"
        imports, pins = document.value.get("Imports"), document.value.get(LOCK)
        imports = imports if type(imports) is dict else {}
        pins = pins if type(pins) is dict else {}
        documents: dict[str, Document] = {}
        for name, source in imports.items():
            place = f"{pointer}/Imports/{escape(name)}"
            pin = pins.get(name)
            if type(source) is not str:
                continue  # a matter of the document's shape
            one = _Import(
                source,
                Pin.read(pin) if type(pin) is str else None,
                place,
                f"{pointer}/{LOCK}/{escape(name)}",
            )
            try:
                documents[name] = self._imported(one, around, at)
            except ImportRefused as refusal:
                self._found("V-IMP-01", place, str(refusal), refusal.hint)
            except _Faulty:
                pass
        self.findings += _unused(document.value, imports, pins, pointer)
        return replace(document, composition=Composition(document.value, documents, {}))

    def _imported(self, one: "_Import", around: tuple[str, ...], at: str | None) -> Document:
        """Return an imported document; raises ImportRefused, or _Faulty once reported."""
        if one.pin is not None and (reason := one.pin.contradicts(one.source)) is not None:
            self._found("V-IMP-04", one.locked_at, f"the lock contradicts the import: {reason}")
            raise _Faulty
        key, document, name = self._read(one, around, at)
        if key in around:  # an Include of it will be found to lead back
            return document
        if key not in self.documents:
            if not _importable(document.value):
                message = f"{one.source!r} is no template, no module and no workflow"
                hint = "a workflow has 'StartAt' and 'States', a module 'Module' and 'States'"
                self._found("V-IMP-02", one.place, message, hint)
                raise _Faulty
            self.documents[key] = self.link(document, one.place, (*around, key), name)
        found = self.documents[key]
        if one.pin is not None and one.pin.digest not in (None, digest(found)):
            message = f"{one.source!r} has changed since it was locked"
            hint = "review the change, then run asl lock"
            self._found("V-IMP-04", one.locked_at, message, hint)
        return found

    def _read(
        self, one: "_Import", around: tuple[str, ...], at: str | None
    ) -> tuple[str, Document, str | None]:
        """Return the identity of a document, the document, and its name among the files."""
        source = one.source if one.pin is None else one.pin.source
        name: str | None = None
        if is_registry(source) or _SCHEME.match(source):
            key = source
            if is_registry(source):
                self._check_registry(one)
        elif at is None and one.place.count("/") > 2:
            raise ImportRefused("a document without a file cannot import files")
        else:
            key, name = self.files.find(source, at)
        if key in around:
            message = f"{one.source!r} imports this document, directly or through others"
            hint = "move what both need into a third document"
            self._found("V-IMP-03", one.place, message, hint)
            return key, self.open[key], name
        if key in self.documents:
            return key, self.documents[key], name
        if len(around) > MAX_NESTED:
            raise ImportRefused(
                f"imports are nested more than {MAX_NESTED} deep",
                "import the innermost ones here, or run them with Workflow states",
            )
        document = self._document(key, name, one)
        self.characters += len(document.source.text or "")
        if len(self.documents) >= MAX_DOCUMENTS or self.characters > MAX_CHARACTERS:
            raise ImportRefused(
                f"more than {MAX_DOCUMENTS} documents, or more than {MAX_CHARACTERS} characters "
                "are imported all together"
            )
        return key, document, name

    def _document(self, key: str, name: str | None, one: "_Import") -> Document:
        try:
            return self._fetched(key) if name is None else self.files.read(key, name)
        except InvalidDocument as refusal:
            self._unreadable(one, refusal)
            raise _Faulty from None
        except ImportRefused:
            raise
        except AslError as error:
            raise ImportRefused(str(error)) from None

    def _fetched(self, source: str) -> Document:
        if self.fetch is None:
            raise ImportRefused(
                f"{source!r} is not read: {BESIDE}",
                "give imports= a function, or a mapping, that provides other sources",
            )
        try:
            return read(self.fetch(source), name=source)
        except (LookupError, OSError) as error:
            raise ImportRefused(
                f"{source!r} cannot be fetched: {error or type(error).__name__}"
            ) from None

    # Findings

    def _found(self, code: str, place: str, message: str, hint: str | None = None) -> None:
        self.findings.append(Finding(code, message, place, hint))

    def _check_registry(self, one: "_Import") -> None:
        wanted = parse_registry_source(one.source)
        if wanted is None:
            raise ImportRefused(
                f"{one.source!r} names nothing in a registry",
                "a source is written registry://org/name@1.2.0, with ^, ~ or >= before a version",
            )
        if one.pin is None or wanted.relation == LATEST:
            which = (
                "whatever version is newest" if wanted.relation == LATEST else "no fixed version"
            )
            hint = "lock it: asl lock"
            self._found("V-IMP-06", one.place, f"this import takes {which}", hint)

    def _unreadable(self, one: "_Import", refusal: InvalidDocument) -> None:
        """Report the syntax errors of an import, in its text and at the import."""
        faults = refusal.report.errors
        (first, *_) = faults
        message = f"{one.source!r} cannot be read: {first.message}"
        related = ((f"{one.place}/0", "it is wrong here"),)
        self.findings.append(Finding("V-IMP-01", message, one.place, related=related))
        home = refusal.report.document
        assert home is not None
        for index, fault in enumerate(faults):
            span = Span(home.source.offset(Place(fault.line, fault.column)))
            place = f"{one.place}/{index}"
            self.origins[place] = Document(home.value, home.source, _spans=[span]), ""
            self._found(fault.code, place, fault.message, fault.hint)


class _Faulty(Exception):
    """An import is wrong and already reported."""


@dataclass(frozen=True, slots=True)
class _Import:
    """One entry of `Imports`, with the pointers of the entry and of its lock."""

    source: str
    pin: Pin | None
    place: str
    locked_at: str


def _importable(value: Mapping[str, Json]) -> bool:
    """Return whether a document can be included."""
    return "States" in value and ("StartAt" in value or value.get("Module") is True)


def _unused(
    document: Mapping[str, Json],
    imports: Mapping[str, Json],
    pins: Mapping[str, Json],
    pointer: str,
) -> Iterator[Finding]:
    """Yield imports without an Include, and locks without an import (V-IMP-05)."""
    templates = (state.get("Template") for state in include_states(document))
    included = {each for each in templates if type(each) is str}
    for name in imports if not any("{{" in each for each in included) else ():
        if name not in included:
            message = f"no Include names the import {name!r}"
            place = f"{pointer}/Imports/{escape(name)}"
            near = did_you_mean(name, included - imports.keys())
            hint = near or "remove it, or add an Include of it"
            yield Finding("V-IMP-05", message, place, hint, at_key=True)
    for name in pins:
        if name not in imports:
            message = f"nothing is imported as {name!r}, so nothing is locked"
            place = f"{pointer}/{LOCK}/{escape(name)}"
            hint = did_you_mean(name, imports) or "remove it, or import what it names"
            yield Finding("V-IMP-05", message, place, hint, at_key=True)


def compose_imports(document: Document, given: ImportOptions) -> Document:
    """Return a document with its imports loaded and its Includes expanded."""
    imports: Any = given.imports
    fetch = imports.__getitem__ if isinstance(imports, Mapping) else imports
    files: Files = DiskFiles(given.path(document), given.root)
    if given.files is not None:
        files = MappedFiles(given.files)
    return expand(link_imports(document, files, fetch), given.parameters)


def load_unlocked(path: str, root: str | None) -> tuple[Document, Mapping[str, Json]]:
    """Read a document and its imports without checking its lock; also return the lock."""
    document = load(path)
    lock = document.value.get(LOCK)
    bare = {key: value for key, value in document.value.items() if key != LOCK}
    found = link_imports(replace(document, value=bare), DiskFiles(path, root))
    return replace(found, value=document.value), lock if type(lock) is dict else {}
