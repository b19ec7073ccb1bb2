"""The parsed form of a path: a plain string names a member, a plain integer an array element."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from asl.core.values import Json
from asl.core.work import WorkMeter

__all__ = [
    "ComputedSegment",
    "Descend",
    "Filter",
    "Path",
    "PathEvaluation",
    "Pick",
    "Segment",
    "Slice",
    "Test",
    "Union",
    "Wildcard",
]


class PathEvaluation:
    """One evaluation of a path: its root document and its work meter.

    Args:
        root: The document that `$` names within filters.
        meter: A meter shared with other evaluations, to limit all of them together.
    """

    __slots__ = ("found", "meter", "root")

    def __init__(self, root: Json, meter: WorkMeter | None = None) -> None:
        self.root = root
        self.meter = WorkMeter() if meter is None else meter
        self.found: dict[int, list[Json]] = {}
        """Cached nodes of filter queries from the root, by the identity of the query."""


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`[*]` or `.*`: every member of an object, every element of an array."""


class Slice(NamedTuple):
    """`[start:stop:step]`, with Python's meaning of negative and absent bounds."""

    bounds: slice


class Union(NamedTuple):
    """`[0,2]` or `['a','b']`: the listed members that exist, in the order listed."""

    members: tuple[str | int, ...]


class Filter(NamedTuple):
    """`[?(...)]`: the members for which the test holds."""

    test: "Test"


@dataclass(frozen=True, slots=True)
class Descend:
    """`..`: the node and everything below it, in document order."""


class Pick(NamedTuple):
    """`['a','b']` at the end of an AWS path: an object of those members that exist."""

    members: tuple[str, ...]


class ComputedSegment(NamedTuple):
    """`[(@.length-1)]` in an AWS path: the element at the length plus an offset."""

    offset: int


Segment: TypeAlias = (
    str | int | Wildcard | Slice | Union | Filter | Descend | Pick | ComputedSegment
)
Test: TypeAlias = Callable[[Json, PathEvaluation], bool]
"""A compiled filter: `(candidate, evaluation) -> holds`."""


class Path(NamedTuple):
    """A parsed path. `root` is `$` (data), `$$` (context object) or a variable's name."""

    text: str
    root: str
    segments: tuple[Segment, ...]
    definite: bool

    @property
    def plain(self) -> bool:
        """Whether the path has names and indices from 0 up only, the same in every engine."""
        return all(type(s) is str or (type(s) is int and s >= 0) for s in self.segments)

    @property
    def reference(self) -> bool:
        """Whether this is a reference path: it names exactly one node (Specification 3.2)."""
        return self.plain

    @property
    def keys(self) -> tuple[str | int, ...]:
        """The steps of a definite path."""
        return tuple(s for s in self.segments if isinstance(s, str | int))

    @property
    def variable(self) -> str | None:
        """The variable that the path reads, None for data and the context object."""
        return None if self.root in ("$", "$$") else self.root
