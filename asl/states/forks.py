"""Forks: the children of a state, and what a Map that is distributed draws and runs."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from asl.core.errors import StateError
from asl.core.values import Json

if TYPE_CHECKING:
    from asl.states.effects import Frame

__all__ = ["Entry", "Fan", "Joined", "Run", "Source"]


class Entry(NamedTuple):
    """One member of an object over which a Map runs."""

    key: str
    value: Json

    @property
    def input(self) -> Json:
        """What an iteration gets for it, where nothing else is said (AWS)."""
        return {"Key": self.key, "Value": self.value}


class Source(Protocol):
    """The items of a distributed Map, drawn one by one."""

    name: str
    """Where the item drawn last comes from, in AWS's words."""
    length: int | None
    """How many there are; None while only the end, where it is set, can show it."""

    def __iter__(self) -> Iterator[Json]: ...

    def close(self) -> None:
        """Read no more."""
        ...


class Fan:
    """Children that one state starts. They are made when a worker takes them, never before."""

    __slots__ = (
        "aborted", "child", "ended", "failed", "held", "length", "limit", "series", "timed",
    )  # fmt: skip

    def __init__(
        self,
        length: int | None,
        child: Callable[[int], "Frame | None"],
        limit: int = 0,
        *,
        failed: Callable[["Frame", StateError], StateError | None] = lambda frame, error: error,
        ended: Callable[["Frame", Json], object] | None = None,
        aborted: Callable[["Frame"], object] = lambda frame: None,
        series: "Iterator[Frame] | None" = None,
        held: Iterable[Json] = (),
        timed: bool = False,
    ) -> None:
        self.length = length
        """How many there are; None where that shows only when `child` returns None."""
        self.child = child
        """Makes the children in their order. What it raises is the failure of the whole."""
        self.limit = limit
        """How many may be in flight at once; 0 for no limit."""
        self.failed = failed
        """Takes the failure of a child; returns that of the whole, None where it is tolerated."""
        self.ended = ended
        """Takes a child's output as soon as it is there; None: the fork keeps them all."""
        self.aborted = aborted
        """Takes a child that is given up because the whole has failed."""
        self.series = series
        """The same children, where they reach no world and leave no records: nobody would do
        anything while one waits, so they run one after the other as they come from here."""
        self.held = held
        """The results so far that are held in memory, where the fork does not keep them."""
        self.timed = timed
        """Whether they are executions that may take only so long."""

    @property
    def together(self) -> bool:
        """Whether several children may be in flight at once, and do anything meanwhile."""
        return self.series is None and self.limit != 1 and self.length not in (0, 1)


class Joined:
    """What a fan came to: values in order, `ABSENT` for each tolerated failure.

    They are not there where the fan took them itself.
    """

    __slots__ = ("failed", "values")

    def __init__(self, values: list[Json], failed: int) -> None:
        self.values = values
        self.failed = failed


class Run(Protocol):
    """One run of a distributed Map: its name, and the executions that are its children."""

    arn: str
    id: str
    pure: bool
    """Whether its children reach no world and tell nobody anything."""
    begun: int
    """How many children have begun, where they are not pure."""

    def selected(self, index: int, item: Json, source: str) -> "Frame":
        """Return the state's own machine as `ItemSelector` sees it with an item."""
        ...

    def child(self, index: int, data: Json, item: Json, source: str) -> "Frame":
        """Return the frame of a child execution, standing at its start."""
        ...

    def children(self, source: Source) -> "Iterator[Frame]":
        """Yield a child for each item, which is its input; pure ones share a frame.

        At its end the length of the source is known.
        """
        ...

    def told(self, fan: Fan, source: Source) -> Fan:
        """Return a fan of which is told how each child has ended, where anybody wants to know."""
        ...

    def shown(self, child: "Frame", error: StateError) -> str:
        """Return what may be said of the failure of a child outside of it."""
        ...

    def pause(self) -> None:
        """Tell them that those which have not ended wait for people."""
        ...
