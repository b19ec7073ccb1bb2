"""The ways through a machine, or anything that has steps and ends."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, TypeVar

__all__ = ["first_ways"]

FRUITLESS: Final = 100_000
"""So many steps in a row that lead to no end are looked at: there may be as many as one likes."""

N = TypeVar("N")
S = TypeVar("S", bound=Hashable)


def first_ways(
    start: N, onwards: Callable[[N], Iterable[tuple[S, N | None]]], limit: int
) -> tuple[list[tuple[S, ...]], bool]:
    """Return the first ways from *start* to an end, and whether these are all.

    None takes a step twice.
    *onwards* tells which steps lead on, and where to: None is an end. No more than *limit* are
    returned, fewer where too many steps lead to no end.
    """
    found: list[tuple[S, ...]] = []
    for way in _ways(start, onwards):
        if way is None or len(found) == limit:
            return found, False
        found.append(way)
    return found, True


def _ways(
    start: N, onwards: Callable[[N], Iterable[tuple[S, N | None]]]
) -> Iterator[tuple[S, ...] | None]:
    """Yield the ways, and None at last where there may be more."""
    way: dict[S, None] = {}
    waiting, fruitless = [iter(onwards(start))], 0
    while waiting:
        for step, following in waiting[-1]:
            fruitless += 1
            if step in way:
                continue
            if following is None:
                fruitless = 0
                yield (*way, step)
            else:
                way[step] = None
                waiting.append(iter(onwards(following)))
                break
        else:
            waiting.pop()
            if way:
                way.popitem()
        if fruitless > FRUITLESS:
            yield None
            return
