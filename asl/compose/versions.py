"""Registry sources and their versions: `registry://org/name@^1.2.0` (Specification 9.1)."""

import re
from dataclasses import dataclass

__all__ = ["LATEST", "Registered", "is_registry", "registered"]

LATEST = "latest"
_SOURCE = re.compile(r"registry://([\w.-]+(?:/[\w.-]+)+)(?:@(.+))?", re.ASCII)
_VERSION = re.compile(r"(\^|~|>=)?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[0-9A-Za-z.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registered:
    """An entry of a registry, and which of its versions are meant.

    `relation` is `^`, `~`, `>=`, `latest`, or empty for exactly this version.
    """

    name: str
    relation: str
    version: tuple[int, int, int] = (0, 0, 0)
    tag: str = ""

    @property
    def exact(self) -> bool:
        """Whether only one version is meant."""
        return not self.relation

    def admits(self, other: "Registered") -> bool:
        """Whether an exact version of the same entry is one of those that are meant."""
        if other.name != self.name or not other.exact:
            return False
        if self.relation == LATEST:
            return True
        if self.exact or other.tag:
            return (self.version, self.tag) == (other.version, other.tag)
        return self.version <= other.version < self._end()

    def _end(self) -> tuple[float, float, float]:
        """The first version that is not meant any more."""
        major, minor, patch = self.version
        if self.relation == ">=":
            return (float("inf"), 0, 0)
        if self.relation == "~" or (major == 0 and minor > 0):
            return (major, minor + 1, 0)
        return (0, 0, patch + 1) if major == 0 else (major + 1, 0, 0)


def is_registry(source: str) -> bool:
    """Whether a source says that it is an entry of a registry."""
    return source.startswith("registry:")


def registered(source: str) -> Registered | None:
    """Read the source of an entry; None for a malformed one."""
    found = _SOURCE.fullmatch(source)
    if found is None:
        return None
    name, wanted = found.groups()
    if wanted is None or wanted == LATEST:
        return Registered(name, LATEST)
    version = _VERSION.fullmatch(wanted)
    if version is None:
        return None
    relation, major, minor, patch, tag = version.groups()
    return Registered(name, relation or "", (int(major), int(minor), int(patch)), tag or "")
