"""The ways through a machine, or anything that has steps and ends."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, TypeVar

__all__ = ["first_ways"]

FRUITLESS: Final = 100_000
"""So many steps in a row that lead to no end are looked at: there may be as many as one likes."""

N = TypeVar("N")
S = TypeVar("S", bound=Hashable)


def _once(step: object) -> int:
    return 1


def first_ways(
    start: N,
    onwards: Callable[[N], Iterable[tuple[S, N | None]]],
    limit: int,
    turns: Callable[[S], int] = _once,
) -> tuple[list[tuple[S, ...]], bool]:
    """Return the first ways from *start* to an end, and whether these are all.

    Args:
        start: Where the ways begin.
        onwards: Returns the steps that lead on, and where to: None is an end.
        limit: How many ways are returned; fewer where too many steps lead to no end.
        turns: Returns how often a way may take a step.
    """
    found: list[tuple[S, ...]] = []
    for way in _ways(start, onwards, turns):
        if way is None or len(found) == limit:
            return found, False
        found.append(way)
    return found, True


def _ways(
    start: N, onwards: Callable[[N], Iterable[tuple[S, N | None]]], turns: Callable[[S], int]
) -> Iterator[tuple[S, ...] | None]:
    """Yield the ways, and None at last where there may be more."""
    way: list[S] = []
    taken: Counter[S] = Counter()
    waiting, fruitless = [iter(onwards(start))], 0
    while waiting:
        for step, following in waiting[-1]:
            fruitless += 1
            if taken[step] >= turns(step):
                continue
            if following is None:
                fruitless = 0
                yield (*way, step)
            else:
                way.append(step)
                taken[step] += 1
                waiting.append(iter(onwards(following)))
                break
        else:
            waiting.pop()
            if way:
                taken[way.pop()] -= 1
        if fruitless > FRUITLESS:
            yield None
            return
