"""The ways through a machine, or anything that has steps and ends."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

__all__ = ["first_paths", "strongly_connected"]

FRUITLESS: Final = 100_000
"""So many steps in a row that lead to no end are looked at: there may be as many as one likes."""

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


def strongly_connected(
    starts: Iterable[str], further: Mapping[str, list[str]]
) -> Iterator[tuple[list[str], bool]]:
    """Yield all that is reached from *starts*, in groups that lead back to each other.

    Each is told whether it is a loop: a state alone is one if it leads to itself. A group comes
    after all to which it leads. Takes as many steps as there are states and transitions.
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
