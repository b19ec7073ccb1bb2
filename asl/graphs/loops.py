"""Which states lead back to each other, and in which order the rest follows (Tarjan, 1972)."""

from collections.abc import Iterable, Iterator, Mapping

__all__ = ["loops"]


def loops(
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
