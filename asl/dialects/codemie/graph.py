"""Where control goes: which states can follow, where branches meet, how far iterations reach."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from asl.dialects.codemie.config import END, CodemieState

__all__ = ["Ambiguous", "Graph"]


class Ambiguous(Exception):
    """The last states of an iteration go to different states."""


class Graph:
    """The states of a workflow and their transitions; all targets must be there."""

    def __init__(self, states: Mapping[str, CodemieState]) -> None:
        self.states = states
        self.edges = {
            name: tuple(dict.fromkeys(target for target, _ in state.targets()))
            for name, state in states.items()
        }

    @cached_property
    def entries(self) -> Counter[str]:
        """How many states lead to each."""
        return Counter(target for targets in self.edges.values() for target in targets)

    def reachable(self, start: Iterable[str], stop: str = END) -> set[str]:
        """Return the states that can be reached without passing *stop*, those at the start too."""
        found: set[str] = set()
        todo = [each for each in start if each not in (stop, END)]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += [each for each in self.edges[name] if each not in (stop, END)]
        return found

    def is_repeated(self, name: str) -> bool:
        """Whether a state can be entered again."""
        return name in self.reachable(self.edges[name])

    def counted(self, limit: int) -> set[str]:
        """Return the states behind which a run may have entered as many states as the limit.

        These are the states of cycles and those behind; before a cycle a path is short enough.
        """
        if self.longest <= limit:
            return set()
        found = self.reachable(each for each in self.states if self.is_repeated(each))
        return found if len(self.states) - len(found) < limit else {*self.states}

    @cached_property
    def longest(self) -> float:
        """How many states a run can enter at most: infinitely many where transitions go round."""
        length: dict[str, float] = {END: 0}
        under_way: set[str] = set()
        todo = list(self.states)
        while todo:
            name = todo[-1]
            open_ = [each for each in self.edges[name] if each not in length]
            if name in length:
                todo.pop()
            elif not open_:
                length[name] = 1 + max((length[each] for each in self.edges[name]), default=0)
                under_way.discard(name)
            elif name in under_way and under_way.intersection(open_):
                return float("inf")
            else:
                under_way.add(name)
                todo += open_
        return max(length.values())

    @cached_property
    def _ending(self) -> set[str]:
        """The states from which the end can be reached."""
        before: dict[str, list[str]] = {}
        for name, targets in self.edges.items():
            for target in targets or (END,):
                before.setdefault(target, []).append(name)
        found: set[str] = set()
        todo = [END]
        while todo:
            new = [each for each in before.get(todo.pop(), ()) if each not in found]
            found.update(new)
            todo += new
        return found

    @cached_property
    def _behind(self) -> dict[str, int]:
        """The post-dominators of each state as a set of bits; those of the end are itself.

        An endless loop joins no other branch: it counts as if it could end.
        """
        numbers = {name: 1 << index for index, name in enumerate([END, *self.states])}
        everything = (1 << len(numbers)) - 1
        behind = dict.fromkeys(self.states, everything)
        behind[END] = numbers[END]
        order = list(self.states)[::-1]
        changed = True
        while changed:
            changed = False
            for name in order:
                common = everything if name in self._ending else behind[END]
                for target in self.edges[name] or (END,):
                    common &= behind[target]
                common |= numbers[name]
                if common != behind[name]:
                    behind[name], changed = common, True
        return behind

    def meeting(self, heads: Iterable[str]) -> str:
        """Return the nearest state that every way from all of these states passes."""
        behind = self._behind
        common = (1 << (len(self.states) + 1)) - 1
        for head in heads:
            common &= behind[head]
        names = [END, *self.states]
        met = [names[index] for index in range(len(names)) if common >> index & 1]
        return max(met, key=lambda name: (behind[name].bit_count(), name != END), default=END)

    def after(self, name: str) -> str:
        """Return the nearest state that every way on from a state passes."""
        return self.meeting(self.edges[name])

    def join(self, worker: str) -> str:
        """Return where an iteration meets again that begins with this state.

        Raises Ambiguous where its marked last states disagree.
        """
        seen: set[str] = set()
        name = worker
        while name != END and name not in seen:
            seen.add(name)
            state = self.states[name]
            to = state.next
            if "condition" in to or "switch" in to:
                return self.parting(name)
            if "state_ids" in to:
                name = self.meeting(to["state_ids"])
            elif state.iter_key is None:
                return str(to.get("state_id", END))
            else:
                name = to["state_id"]
        return END

    def parting(self, name: str) -> str:
        """Return where items meet again that part at this state.

        Raises Ambiguous where the marked last states behind it disagree.
        """
        return self._marked(name) or self.after(name)

    def _marked(self, name: str) -> str | None:
        """Return the common target of the marked states that a routing state leads to."""
        found: set[str] = set()
        seen: set[str] = set()
        todo = [*self.edges[name]]
        while todo:
            each = todo.pop()
            if each == END or each in seen:
                continue
            seen.add(each)
            state = self.states[each]
            if state.finishes and state.iter_key is None:
                found |= set(self.edges[each])
            else:
                todo += self.edges[each]
        if len(found) > 1:
            raise Ambiguous(", ".join(sorted(found)))
        return next(iter(found), None)
