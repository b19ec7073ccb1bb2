"""Locks: the exact source and content of each import (Specification 9.1).

An entry of `_lock` is the exact source of an import, optionally with a digest of the content:
`registry://org/name@1.2.0#sha256=...`. The digest covers the imports of the imported document, too.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json, compact, type_name

__all__ = [
    "LATEST",
    "LOCK",
    "Pin",
    "RegistrySource",
    "current_lock",
    "digest",
    "is_registry",
    "parse_registry_source",
]

LATEST = "latest"
_SOURCE = re.compile(r"registry://([\w.-]+(?:/[\w.-]+)+)(?:@(.+))?", re.ASCII)
_VERSION = re.compile(r"(\^|~|>=)?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[0-9A-Za-z.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RegistrySource:
    """An entry of a registry with a version constraint.

    `relation` is `^`, `~`, `>=`, `latest`, or empty for exactly this version.
    """

    name: str
    relation: str
    version: tuple[int, int, int] = (0, 0, 0)
    tag: str = ""

    @property
    def exact(self) -> bool:
        """Whether the constraint admits one version only."""
        return not self.relation

    def admits(self, other: "RegistrySource") -> bool:
        """Return whether an exact version of the same entry meets the constraint."""
        if other.name != self.name or not other.exact:
            return False
        if self.relation == LATEST:
            return True
        if self.exact or other.tag:
            return (self.version, self.tag) == (other.version, other.tag)
        return self.version <= other.version < self._end()

    def _end(self) -> tuple[float, float, float]:
        """Return the first version beyond the constraint."""
        major, minor, patch = self.version
        if self.relation == ">=":
            return (float("inf"), 0, 0)
        if self.relation == "~" or (major == 0 and minor > 0):
            return (major, minor + 1, 0)
        return (0, 0, patch + 1) if major == 0 else (major + 1, 0, 0)


def is_registry(source: str) -> bool:
    """Return whether a source uses the registry scheme."""
    return source.startswith("registry:")


def parse_registry_source(source: str) -> RegistrySource | None:
    """Parse the source of a registry entry; None for a malformed one."""
    found = _SOURCE.fullmatch(source)
    if found is None:
        return None
    name, wanted = found.groups()
    if wanted is None or wanted == LATEST:
        return RegistrySource(name, LATEST)
    version = _VERSION.fullmatch(wanted)
    if version is None:
        return None
    relation, major, minor, patch, tag = version.groups()
    return RegistrySource(name, relation or "", (int(major), int(minor), int(patch)), tag or "")


LOCK: Final = "_lock"
_PIN = re.compile(r"(.*?)(?:#sha256=([0-9a-f]{64}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pin:
    """One entry of a lock; `digest` is None for an entry with a source only."""

    source: str
    digest: str | None

    @classmethod
    def read(cls, text: str) -> "Pin":
        """Parse an entry."""
        found = _PIN.fullmatch(text)
        assert found is not None  # everything is a source
        return cls(*found.groups())

    def contradicts(self, source: str) -> str | None:
        """Return why an import does not admit the locked source; None if it does."""
        if not is_registry(source):
            return None if self.source == source else f"it locks {self.source!r}, not {source!r}"
        wanted, exact = parse_registry_source(source), parse_registry_source(self.source)
        if exact is None or not exact.exact:
            return f"{self.source!r} is no exact version in a registry"
        if wanted is None or not wanted.admits(exact):
            return f"{self.source!r} is not what {source!r} admits"
        return None


def digest(document: Document) -> str:
    """Return the SHA-256 of a document's text, in hexadecimal digits.

    With imports it covers the text followed by their names and digests.
    """
    text = document.source.text
    content = [compact(document.value) if text is None else text]
    composition = document.composition
    for name, each in sorted(composition.imports.items() if composition is not None else ()):
        content.append(f"\n{name} {digest(each)}")
    return sha256("".join(content).encode()).hexdigest()


def current_lock(document: Document) -> dict[str, Json]:
    """Return the present lock of a document: one entry for each import, by name.

    Locked sources are kept.

    Raises:
        AslError: An import of a registry has no exact version and no lock, or could not be read.
    """
    composition = document.composition
    if composition is None:
        return {}
    written = composition.written
    sources = written["Imports"]
    if type(sources) is not dict:
        raise AslError(f"'Imports' must be an object, not {type_name(sources)}: run asl check")
    given = written.get(LOCK)
    locked = given if type(given) is dict else {}
    found: dict[str, Json] = {}
    for name, source in sources.items():
        if name not in composition.imports:
            raise AslError(f"the import {name!r} could not be read: run asl check")
        entry = locked.get(name)
        exact = Pin.read(entry).source if is_registry(source) and type(entry) is str else source
        version = parse_registry_source(exact)
        if version is not None and not version.exact:
            raise AslError(f"the import {name!r} names no version: write it into {LOCK!r}")
        found[name] = f"{exact}#sha256={digest(composition.imports[name])}"
    return found
