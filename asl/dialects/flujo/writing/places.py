"""Places of a blueprint as paths of terms: the context, the outputs of steps, the current value.

A document hands its data from state to state. A blueprint has a context that all steps share, and
the outputs of steps by their names. So the data of a state is a term over these places, and what a
state reads is that term with the paths of the state put in.
"""

from collections.abc import Mapping
from keyword import iskeyword
from typing import Final, TypeAlias

from asl.dialects.terms import DataPath, Record, Step, Term, Unknown, member, replace

__all__ = [
    "CONTEXT",
    "FLOW",
    "PREVIOUS",
    "STEPS",
    "Environment",
    "forget",
    "is_in_context",
    "join",
    "output_of",
    "print_path",
    "resolve",
]

CONTEXT: Final = "{context}"
"""Root of a path: the context of the run."""
STEPS: Final = "{steps}"
"""Root of a path: the outputs of steps by their names."""
PREVIOUS: Final = "{previous_step}"
"""Root of a path: the output of the step before."""
FLOW: Final = "{flow}"
"""Key of an environment: the value that a step without `input` gets."""

Environment: TypeAlias = Mapping[str, Term]
"""Terms over places, by the roots and variables of a document that stand for them."""


def output_of(step: str) -> DataPath:
    """Return the place of the output of a step."""
    return DataPath(STEPS, (step,))


def resolve(term: Term, environment: Environment) -> Term:
    """Return a term of a state as a term over places; Unknown for what is in no place."""

    def place(each: Term) -> Term | None:
        if not isinstance(each, DataPath) or each.root in (CONTEXT, STEPS, PREVIOUS):
            return None
        if each.root not in environment:
            return Unknown(".".join(map(str, (each.root, *each.steps))))
        found = environment[each.root]
        return found if isinstance(found, Unknown) else member(found, each.steps)

    return replace(term, place)


def is_in_context(data: Term) -> bool:
    """Whether data is the context, but for members that are elsewhere."""
    return data == DataPath(CONTEXT) or (
        isinstance(data, Record) and data.base == DataPath(CONTEXT)
    )


def forget(environment: Environment, place: DataPath) -> dict[str, Term]:
    """Return an environment in which nothing refers to a place that is about to be written."""

    def lost(each: Term) -> Term | None:
        if isinstance(each, DataPath) and each.root == place.root:
            length = min(len(each.steps), len(place.steps))
            if length and each.steps[:length] == place.steps[:length]:
                return Unknown("a value that is written anew")
        return None

    return {key: replace(value, lost) for key, value in environment.items()}


def join(one: Term, other: Term) -> Term:
    """Return where data is behind two ways that meet; what is elsewhere on each is Unknown."""
    if one == other:
        return one
    bases = [each.base if isinstance(each, Record) else each for each in (one, other)]
    if bases[0] is None or bases[0] != bases[1] or isinstance(bases[0], Unknown):
        return Unknown("data that is in several places")
    members = [dict(each.members) if isinstance(each, Record) else {} for each in (one, other)]
    keys = (*members[0], *(key for key in members[1] if key not in members[0]))
    made = []
    for key in keys:
        usual = member(bases[0], (key,))
        made.append((key, join(members[0].get(key, usual), members[1].get(key, usual))))
    return Record(bases[0], tuple(made))


def print_path(path: DataPath) -> str | None:
    """Return a place as conditions and templates name it, None for one that they cannot name."""
    if path.root not in (CONTEXT, STEPS, PREVIOUS):
        return None
    steps = [_step(each) for each in path.steps]
    if None in steps:
        return None
    return path.root[1:-1] + "".join(map(str, steps))


def _step(step: Step) -> str | None:
    if isinstance(step, int):
        return f"[{step}]" if step >= 0 else None
    if step.isidentifier() and step.isascii() and not iskeyword(step):
        return f".{step}"
    return None if any(each in step for each in "'\"\\{}\n") or not step else f"['{step}']"
