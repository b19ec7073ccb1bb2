"""Where the data of a machine is in the context of a run."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.names import FreshNames
from asl.dialects.terms import (
    INPUT,
    ITEM,
    RESULT,
    Choose,
    Comparison,
    DataPath,
    FunctionCall,
    Items,
    Literal,
    Record,
    Step,
    Term,
    member,
    merge,
    paths_of,
    placement,
    replace,
)

__all__ = [
    "TASK",
    "ContextScope",
    "Places",
    "is_merged",
    "is_replaced",
    "key_of",
    "keys_of",
    "keys_written",
    "without_merges",
]

Steps: TypeAlias = tuple[Step, ...]
TASK: Final = "task"
"""The placeholder of an item and, outside of iterations, of the output before."""


@dataclass(slots=True)
class Places:
    """Places below a key of the data that have a key of their own in the context.

    A result is written under one key. So what is deeper, and each result of a Parallel, gets
    a key of its own, and reading the place reads that key.
    """

    keys: dict[Steps, str] = field(default_factory=dict)

    @classmethod
    def of(cls, flow: Flow) -> "Places":
        """Return the places of a flow and of all flows within it."""
        found = cls()
        taken = FreshNames({str(path.steps[0]) for path in _paths(flow) if path.steps}, "_")
        for step in _steps(flow):
            place = placement(step.output)
            if place is None or not place.steps:
                continue
            branches = len(step.machines) if step.kind == "Parallel" else 0
            wanted: list[Steps] = [(*place.steps, index) for index in range(branches)]
            if not branches and len(place.steps) > 1:
                wanted = [place.steps]
            for each in wanted:
                if each not in found.keys:
                    name = re.sub(r"\W+", "_", "_".join(map(str, each)), flags=re.ASCII)
                    found.keys[each] = taken.new(name)
        return found

    def key(self, steps: Steps) -> str | None:
        """Return the key of the context at which a place is, None if it has none."""
        if steps in self.keys:
            return self.keys[steps]
        return steps[0] if len(steps) == 1 and isinstance(steps[0], str) else None

    def resolve(self, steps: Steps) -> Steps | None:
        """Return where a place is in the context, None if its parts are in several places."""
        for end in range(len(steps), 0, -1):
            if steps[:end] in self.keys:
                return (self.keys[steps[:end]], *steps[end:])
        if any(each[: len(steps)] == steps for each in self.keys):
            return None
        return steps


def _steps(flow: Flow) -> Iterator[WorkStep]:
    for step in flow.steps.values():
        yield step
        for inner in step.machines.values():
            yield from _steps(inner)


def _paths(flow: Flow) -> Iterator[DataPath]:
    for step in _steps(flow):
        conditions = [each.condition for each in step.exits if each.condition is not None]
        for term in (step.input, step.output, *step.fields.values(), *conditions):
            yield from paths_of(term)


_OBJECT: Final = Comparison("=", FunctionCall("type", (DataPath(RESULT),)), Literal("object"))
_MERGED: Final = (
    merge(DataPath(INPUT), DataPath(RESULT)),
    merge(DataPath(INPUT), Choose(_OBJECT, DataPath(RESULT), Literal({}))),
)
"""The data behind a step whose answer is merged into it, if it is an object."""


def is_merged(output: Term) -> bool:
    """Whether the members of an answer become members of the data: the platform does that."""
    return output in _MERGED


def without_merges(flow: Flow) -> Flow:
    """Return a flow in which an answer that is merged and has a key is only put under its key.

    The platform merges the members of every answer into the context.
    """
    steps = {
        name: dataclasses.replace(
            step,
            output=_unmerged(step.output),
            machines={at: without_merges(inner) for at, inner in step.machines.items()},
        )
        for name, step in flow.steps.items()
    }
    return flow._replace(steps=steps)


def _unmerged(output: Term) -> Term:
    match output:
        case Record(base, ((_, DataPath("result", ())),) as members) if base in _MERGED:
            return Record(DataPath(INPUT), members)
    return output


def key_of(step: WorkStep) -> Steps | None:
    """Return where the result of a step is in the data, None if it is not there as it is."""
    place = placement(step.output)
    return None if place is None or place.value != DataPath(RESULT) else place.steps


def is_replaced(step: WorkStep) -> bool:
    """Whether the data behind a step is not that in front of it, with something written to it."""
    return not _keeps(step.output)


def _keeps(term: Term) -> bool:
    match term:
        case DataPath(root, steps):
            return root == INPUT and not steps
        case Record(base, _):
            return base is not None and _keeps(base)
        case FunctionCall("merge", (Items(items),)):
            return any(map(_keeps, items))
    return False


def keys_written(steps: Iterable[WorkStep]) -> set[Step]:
    """Return the keys of the data that steps write."""
    found: set[Step] = set()
    for step in steps:
        place = placement(step.output)
        if place is not None and place.steps:
            found.add(place.steps[0])
        elif place is not None and isinstance(place.value, Record):
            found |= {key for key, _ in place.value.members}
    return found


_ANSWERING: Final = frozenset(("Task", "Approval", "Debate", "Include", "Workflow"))
"""Types of states whose results are answers."""


def keys_of(flow: Flow, places: Places) -> tuple[set[str], set[str]]:
    """Return the keys of the data of a flow, and those under which an answer is as text."""
    keys = {str(path.steps[0]) for path in _paths(flow) if path.steps} | {*places.keys.values()}
    answers: set[str] = set()
    for step in _steps(flow):
        place = placement(step.output)
        if place is None:
            continue
        written = places.key(place.steps) if place.steps else None
        keys |= {str(key) for key in keys_written([step])}
        if written is not None and step.kind in _ANSWERING:
            answers.add(written)
        if step.kind == "Parallel":
            answers |= {key for steps, key in places.keys.items() if steps[:-1] == place.steps}
    return keys, answers


class ContextScope(NamedTuple):
    """What the paths of one machine lead to in the context.

    Attributes:
        places: Places with a key of their own.
        data: What the input of the machine's first state is, over the context and the item.
        written: Keys that its states write: they stand in the context, whatever `data` says.
        item: Whether the machine runs for an item.
        answer: Whether the data is what the state in front has answered.
        transforming: Whether a transformation reads it, which knows no item and no last output.
    """

    places: Places
    data: Term = DataPath(INPUT)
    written: frozenset[Step] = frozenset()
    item: bool = False
    answer: bool = False
    transforming: bool = False

    def meant(self, term: Term) -> Term:
        """Return a term over the context and the item."""

        def change(part: Term) -> Term | None:
            if not isinstance(part, DataPath) or part.root != INPUT:
                return None
            if part.steps and part.steps[0] in self.written:
                return part
            return member(self.data, part.steps)

        return term if self.data == DataPath(INPUT) else replace(term, change)

    def place(self, path: DataPath) -> Steps | None:
        """Return the keys and positions that a path leads along in the context.

        Args:
            path: The path, as `meant` returns it.

        Returns:
            The way to it, None if nothing in the context is just that.
        """
        if self.transforming:
            return self.key(path)
        if path.root == ITEM and self.item:
            return (TASK, *path.steps)
        if path.root != INPUT:
            return None
        if not path.steps:
            return (TASK,) if self.answer else None
        found = self.places.resolve(path.steps)
        return found if found and isinstance(found[0], str) else None

    def key(self, path: DataPath) -> Steps | None:
        """Return the way to a path for a transformation: the keys of an item are keys there."""
        if not path.steps or path.root != (ITEM if path.root == ITEM and self.item else INPUT):
            return None
        found = path.steps if path.root == ITEM else self.places.resolve(path.steps)
        return found if found and isinstance(found[0], str) else None
