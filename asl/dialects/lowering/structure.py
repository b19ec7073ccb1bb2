"""Steps as sequences, branches and loops, for languages without jumps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from asl.dialects.lowering import Flow, StepExit, WorkStep

__all__ = ["Block", "Branch", "Loop", "structure"]


class Branch(NamedTuple):
    """A step, and what follows for each of its exits until the ways meet.

    Attributes:
        step: The step that decides.
        cases: Its exits, each with the steps behind it; none of them lead elsewhere.
    """

    step: WorkStep
    cases: tuple[tuple[StepExit, "Block"], ...]


class Loop(NamedTuple):
    """Steps that are repeated.

    Attributes:
        body: The steps of a round.
        decides: The last step of a round, whose exits lead into the next round or out.
        repeats: Its exits that lead into the next round.
        leaves: Its exits that end the loop.
    """

    body: "Block"
    decides: WorkStep
    repeats: tuple[StepExit, ...]
    leaves: tuple[StepExit, ...]


Block: TypeAlias = tuple[WorkStep | Branch | Loop, ...]
"""Steps one after another."""


class _Unstructured(Exception):
    """The ways of a flow cross."""


def structure(flow: Flow) -> Block | None:
    """Arrange the steps of a flow as sequences, branches and loops.

    Args:
        flow: The flow; its handlers are not looked at.

    Returns:
        The block, in which every reachable step occurs once; None if the ways of the flow cross.
    """
    try:
        return _Structure(flow).block(flow.start, None)
    except (_Unstructured, RecursionError):
        return None


class _Structure:
    def __init__(self, flow: Flow) -> None:
        self.steps = flow.steps
        self.order = _reverse_postorder(flow)
        self.position = {name: index for index, name in enumerate(self.order)}
        self.loops = _loops(flow, self.position)
        self.meetings = _postdominators(flow, self.order)
        self.placed: set[str] = set()

    def block(self, start: str | None, stop: str | None) -> Block:
        """Return the steps from one on, up to another one."""
        found: list[WorkStep | Branch | Loop] = []
        name = start
        while name is not None and name != stop:
            if name in self.placed:
                raise _Unstructured
            part, name = self.loop(name) if name in self.loops else self.part(name)
            found.append(part)
        return tuple(found)

    def part(self, name: str) -> tuple[WorkStep | Branch, str | None]:
        """Return a step, with its branches, and where their ways meet."""
        self.placed.add(name)
        step = self.steps[name]
        if all(each.condition is None for each in step.exits):
            return step, step.exits[0].target if step.exits else None
        meeting = self.meetings.get(name)
        cases = tuple((each, self.block(each.target, meeting)) for each in step.exits)
        return Branch(step, cases), meeting

    def loop(self, header: str) -> tuple[Loop, str | None]:
        """Return a loop, and where it leads."""
        latch, members = self.loops.pop(header)
        decides = self.steps[latch]
        repeats = tuple(each for each in decides.exits if each.target == header)
        leaves = tuple(each for each in decides.exits if each.target != header)
        targets = {each.target for each in leaves}
        inner = (self.steps[name] for name in members if name != latch)
        strays = any(self.strays(target, members) for step in inner for target in _ways(step))
        if strays or len(targets) != 1:
            raise _Unstructured
        body = self.block(header, latch) if header != latch else ()
        if latch in self.placed:
            raise _Unstructured
        self.placed.add(latch)
        return Loop(body, decides, repeats, leaves), targets.pop()

    def strays(self, target: str | None, members: frozenset[str]) -> bool:
        """Whether a way leads out of a loop, other than to a failure."""
        if target is None:
            return True
        return target not in members and self.steps[target].kind != "Fail"


def _ways(step: WorkStep) -> list[str | None]:
    """Return the targets of the exits of a step, None for the end of the machine.

    A step that fails leads nowhere: the ways of the others meet without it.
    """
    if step.kind == "Fail":
        return []
    return [each.target for each in step.exits] or [None]


def _reverse_postorder(flow: Flow) -> list[str]:
    """Return the reachable steps, each before those that it leads to except backwards."""
    found: list[str] = []
    seen = {flow.start}
    stack = [(flow.start, iter(_ways(flow.steps[flow.start])))]
    while stack:
        name, ways = stack[-1]
        target = next(ways, stack)
        if target is stack:
            found.append(name)
            stack.pop()
        elif isinstance(target, str) and target in flow.steps and target not in seen:
            seen.add(target)
            stack.append((target, iter(_ways(flow.steps[target]))))
    return found[::-1]


def _loops(flow: Flow, position: Mapping[str, int]) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the loops by their first steps: the last step, and all steps of each.

    Raises:
        _Unstructured: Two steps lead back to the same one.
    """
    before: dict[str, list[str]] = {}
    backs: dict[str, str] = {}
    for name in position:
        for target in _ways(flow.steps[name]):
            if target is None:
                continue
            before.setdefault(target, []).append(name)
            if position[target] <= position[name] and backs.setdefault(target, name) != name:
                raise _Unstructured
    found = {}
    for header, latch in backs.items():
        members, todo = {header}, [latch]
        while todo:
            name = todo.pop()
            if name not in members:
                members.add(name)
                todo += before.get(name, ())
        found[header] = (latch, frozenset(members))
    return found


def _postdominators(flow: Flow, order: Sequence[str]) -> dict[str, str | None]:
    """Return where all ways from a step meet first, None for the end of the machine."""
    position: dict[str | None, int] = {name: index for index, name in enumerate(reversed(order), 1)}
    position[None] = 0
    found: dict[str | None, str | None] = {None: None}
    changed = True
    while changed:
        changed = False
        for name in reversed(order):
            known = [each for each in _ways(flow.steps[name]) if each in found]
            if not known:
                continue
            meeting = known[0]
            for other in known[1:]:
                one: str | None = meeting
                while one != other:
                    if position[one] > position[other]:
                        one = found[one]
                    else:
                        other = found[other]
                meeting = one
            if name not in found or found[name] != meeting:
                found[name] = meeting
                changed = True
    return {name: meeting for name, meeting in found.items() if name is not None}
