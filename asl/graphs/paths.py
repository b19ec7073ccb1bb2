"""Paths and loops of directed graphs."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

__all__ = ["first_paths", "strongly_connected"]

FRUITLESS: Final = 100_000
"""Steps in a row without an end after which the search stops: there may be any number."""

N = TypeVar("N")
S = TypeVar("S", bound=Hashable)


def _once(step: object) -> int:
    return 1


def first_paths(
    start: N,
    onwards: Callable[[N], Iterable[tuple[S, N | None]]],
    limit: int,
    turns: Callable[[S], int] = _once,
) -> tuple[list[tuple[S, ...]], bool]:
    """Return the first paths from *start* to an end, and whether these are all.

    Args:
        start: The first node.
        onwards: Returns the steps from a node and their targets; None is an end.
        limit: The largest number of paths; fewer where too many steps reach no end.
        turns: Returns how often a path may take a step.
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
    """Yield the paths, and at last None if there may be more."""
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


def strongly_connected(
    starts: Iterable[str], further: Mapping[str, list[str]]
) -> Iterator[tuple[list[str], bool]]:
    """Yield the strongly connected components reachable from *starts* (Tarjan, 1972).

    Each comes with whether it is a loop: a single node is one if it leads to itself. A component
    follows all those that it leads to. Linear in the number of nodes and edges.
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_states: list[str] = []
    grouped: set[str] = set()
    for start in starts:
        way: list[tuple[str, Iterator[str]]] = []
        entered = None if start in number else start
        while entered is not None or way:
            if entered is not None:
                number[entered] = lowest[entered] = len(number)
                open_states.append(entered)
                way.append((entered, iter(further.get(entered, ()))))
            name, onwards = way[-1]
            entered = None
            for each in onwards:
                if each not in number:
                    entered = each
                    break
                if each not in grouped:
                    lowest[name] = min(lowest[name], number[each])
            if entered is not None:
                continue
            way.pop()
            if way:
                above = way[-1][0]
                lowest[above] = min(lowest[above], lowest[name])
            if lowest[name] == number[name]:
                group = [open_states.pop()]
                while group[-1] != name:
                    group.append(open_states.pop())
                grouped.update(group)
                yield group, len(group) > 1 or name in further.get(name, ())
