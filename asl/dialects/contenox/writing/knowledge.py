"""What is known of all data in front of a step, and how that changes from task to task.

A chain has no document that all tasks share: what moves along is the output of the task before, and
every task leaves its own under its name. So the data of a document is followed as terms whose paths
begin at variables of the chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from asl.dialects.terms import (
    DataPath,
    Literal,
    Record,
    Term,
    Unknown,
    member,
    paths_of,
    replace,
    walk,
)

__all__ = [
    "GIVEN",
    "STALE",
    "Cause",
    "Knowledge",
    "Lost",
    "assign",
    "causes",
    "enter",
    "is_moving",
    "is_variable",
    "join",
    "moving",
    "name_flow",
    "renew",
    "variable",
]


class Cause(NamedTuple):
    """Why a chain cannot express a value: the code of the loss, and its place in the document."""

    code: str
    pointer: str


@dataclass(frozen=True, slots=True)
class Lost(Unknown):
    """A value that no variable of the chain holds.

    Attributes:
        cause: Where it was lost; None if that is where it is read.
    """

    cause: Cause | None = None


STALE: Final = Lost("")
_VARIABLE: Final = "."
_MOVING: Final = ">"


def variable(name: str) -> DataPath:
    """Return the variable of a chain with this name."""
    return DataPath(f"{_VARIABLE}{name}")


def moving(state: str) -> DataPath:
    """Return what moves along into a state that several tasks lead to."""
    return DataPath(f"{_MOVING}{state}")


def is_variable(term: Term) -> bool:
    """Return whether a term is a variable of the chain as a whole."""
    return isinstance(term, DataPath) and term.root.startswith(_VARIABLE) and not term.steps


def is_moving(term: Term) -> bool:
    """Return whether a term lies in what moves along, whichever task has made it."""
    return isinstance(term, DataPath) and term.root.startswith(_MOVING)


GIVEN: Final = variable("input")
"""The input of a chain."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known in front of a step.

    Attributes:
        data: The data of the document.
        flow: What moves along in the chain.
        variables: The variables of the document by their names, in order.
    """

    data: Term
    flow: Term
    variables: tuple[tuple[str, Term], ...] = ()

    def variable(self, name: str) -> Term:
        """Return a variable of the document."""
        return dict(self.variables).get(name, STALE)


def causes(term: Term) -> list[Cause | None]:
    """Return why parts of a value are lost, None for a reason where it is read."""
    found = (each for each in walk(term) if isinstance(each, Unknown))
    return [*dict.fromkeys(each.cause if isinstance(each, Lost) else None for each in found)]


def assign(known: Knowledge, new: Mapping[str, Term]) -> tuple[tuple[str, Term], ...]:
    """Return the variables of the document after an assignment."""
    return tuple(sorted({**dict(known.variables), **new}.items()))


def enter(known: Knowledge, data: Term, flow: Term, new: Mapping[str, Term]) -> Knowledge:
    """Return what is known behind a step that makes this data, and assigns variables."""
    return Knowledge(data, flow, assign(known, new))


def _forget(term: Term, root: str) -> Term:
    """Return a term without what reads a variable that is about to be something else."""
    return replace(term, lambda each: STALE if _has_root(each, root) else None)


def _has_root(term: Term, root: str) -> bool:
    if isinstance(term, Record):
        return False  # what else it holds is still known
    return any(each.root == root for each in paths_of(term))


def _replaced(known: Knowledge, old: Term, new: DataPath) -> Knowledge:
    """Return what is known when a value is found elsewhere, with everything within it."""

    def change(term: Term) -> Term | None:
        if term == old:
            return new
        if isinstance(term, DataPath) and isinstance(old, DataPath) and term.root == old.root:
            length = len(old.steps)
            if term.steps[:length] == old.steps:
                return DataPath(new.root, (*new.steps, *term.steps[length:]))
        return None

    return _changed(known, lambda term: replace(term, change))


def _changed(known: Knowledge, change: Callable[[Term], Term]) -> Knowledge:
    variables = tuple((name, change(each)) for name, each in known.variables)
    return Knowledge(change(known.data), change(known.flow), variables)


def name_flow(known: Knowledge, task: str) -> Knowledge:
    """Return what is known once what moves along is the output of a task that hands it on."""
    own, between = variable(task), moving(f"{task} after")
    found = _replaced(known, known.flow, between)
    found = _changed(found, lambda term: _forget(term, own.root))
    return _replaced(found, between, own)


def renew(known: Knowledge, task: str) -> Knowledge:
    """Return what is known before a task makes its variable again."""
    own = variable(task)
    if known.flow == own:  # its old value still moves along
        known = _replaced(known, own, moving(f"{task} before"))
    return _changed(known, lambda term: _forget(term, own.root))


def join(state: str, old: Knowledge, new: Knowledge) -> Knowledge:
    """Return what is known in a state that two transitions lead to."""
    arriving = moving(state)
    same = old.flow == new.flow and not _has_root(new.flow, arriving.root)
    flow: Term = old.flow if same else arriving

    def both(one: Term, other: Term) -> Term:
        if one == old.flow and other == new.flow:
            return flow
        if one == other and not any(each.root == arriving.root for each in paths_of(one)):
            return one
        one, other = _opened(one), _opened(other)
        if isinstance(one, Record) != isinstance(other, Record):
            # What has grown is still based on what it was.
            one = Record(one, ()) if isinstance(one, DataPath) else one
            other = Record(other, ()) if isinstance(other, DataPath) else other
        if isinstance(one, Record) and isinstance(other, Record):
            base = None
            if one.base is not None or other.base is not None:
                base = both(one.base or STALE, other.base or STALE)
            names = dict.fromkeys(key for key, _ in (*one.members, *other.members))
            pairs = ((each, both(member(one, (each,)), member(other, (each,)))) for each in names)
            return Record(base, tuple(pairs))
        found = [each for each in (*causes(one), *causes(other)) if each is not None]
        return Lost("", found[0] if found else None)

    names = dict(old.variables).keys() & dict(new.variables).keys()
    variables = ((name, both(old.variable(name), new.variable(name))) for name in sorted(names))
    return Knowledge(both(old.data, new.data), flow, tuple(variables))


def _opened(term: Term) -> Term:
    """Return an object that is written out as a record."""
    if isinstance(term, Literal) and isinstance(term.value, dict):
        return Record(None, tuple((key, Literal(each)) for key, each in term.value.items()))
    return term
