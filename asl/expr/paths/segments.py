"""The parsed form of a path: a plain string names a member, a plain integer an array element."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from asl.core.values import Json

__all__ = ["Descend", "Filter", "Path", "Pick", "Segment", "Slice", "Test", "Union", "Wildcard"]


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`[*]` or `.*`: every member of an object, every element of an array."""


class Slice(NamedTuple):
    """`[start:stop:step]`, with Python's meaning of negative and absent bounds."""

    bounds: slice


class Union(NamedTuple):
    """`[0,2]` or `['a','b']`: the listed members that exist, in the order listed."""

    members: tuple[str | int, ...]


class Pick(NamedTuple):
    """`['a','b']` at the end of a path, as AWS reads it: an object of those members that exist."""

    members: tuple[str, ...]


class Filter(NamedTuple):
    """`[?(...)]`: the elements for which the test holds."""

    test: "Test"


@dataclass(frozen=True, slots=True)
class Descend:
    """`..`: the node and everything below it, in document order."""


Segment: TypeAlias = str | int | Wildcard | Slice | Union | Pick | Filter | Descend
Test: TypeAlias = Callable[[Json, Json], bool]
"""A compiled filter: `(candidate, root) -> holds`."""


class Path(NamedTuple):
    """A parsed path. `root` is `$` (data), `$$` (context object) or a variable's name."""

    text: str
    root: str
    segments: tuple[Segment, ...]
    definite: bool

    @property
    def reference(self) -> bool:
        """Whether this is a reference path: it names exactly one node (Specification 3.2)."""
        return self.definite and not any(type(s) is int and s < 0 for s in self.segments)

    @property
    def keys(self) -> tuple[str | int, ...]:
        """The steps of a definite path."""
        return tuple(s for s in self.segments if isinstance(s, str | int))

    @property
    def merged(self) -> "Path":
        """The same path with several names at its end read as one object (`Pick`)."""
        *before, last = self.segments or (None,)
        if type(last) is not Union:
            return self
        names = tuple(name for name in last.members if type(name) is str)
        if len(names) < len(last.members):
            return self
        definite = all(type(key) is str or type(key) is int for key in before)
        return self._replace(segments=(*before, Pick(names)), definite=definite)

    @property
    def variable(self) -> str | None:
        """The variable that the path reads, None for data and the context object."""
        return None if self.root in ("$", "$$") else self.root
