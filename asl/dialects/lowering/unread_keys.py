"""Keys of the data that no later step reads, and outputs without them."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.terms import (
    INPUT,
    Choose,
    DataPath,
    Literal,
    Record,
    Term,
    Unknown,
    paths_of,
    walk,
)

__all__ = ["Keys", "keys_read_from", "without_unread"]

Keys: TypeAlias = frozenset[str] | None
"""Keys of the data that are read; None if the data is read as a whole."""
_NO_KEYS: Final[frozenset[str]] = frozenset()
_WITHOUT_WORK: Final = frozenset(("Pass", "Choice", "Succeed", "Fail"))
"""Types of states whose input is read by their other fields only."""


def keys_read_from(flow: Flow) -> Mapping[str, Keys]:
    """Return the keys that each step, or a step behind it, reads of the data in front of it.

    Args:
        flow: The steps of a machine.

    Returns:
        The keys by the names of the steps. A step with machines within it reads everything.
    """
    found: dict[str, Keys] = dict.fromkeys(flow.steps, _NO_KEYS)
    changed = True
    while changed:
        changed = False
        for name, step in [*flow.steps.items()][::-1]:
            keys = None if step.machines else _read_by_step(step, found)
            if keys != found[name]:
                found[name] = keys
                changed = True
    return found


def _read_by_step(step: WorkStep, behind: Mapping[str, Keys]) -> Keys:
    """Return the keys that a step reads, for the keys that are read in front of each step."""
    terms = [*step.fields.values(), *step.assign.values()]
    if step.kind not in _WITHOUT_WORK:
        terms.append(step.input)
    found = _read_by_output(step.output, _read_behind(step, behind))
    for each in step.exits:
        terms += [*each.assign.values(), *([] if each.condition is None else [each.condition])]
        if each.output is not None:
            found = _union(found, _read_by_output(each.output, _at(each.target, behind)))
    for handler in step.handlers:
        terms += handler.assign.values()
        found = _union(found, _read_by_output(handler.output, _at(handler.target, behind)))
    return _union(found, *map(_read_by, terms))


def _read_behind(step: WorkStep, behind: Mapping[str, Keys]) -> Keys:
    """Return the keys that are read of the output of a step."""
    if step.kind == "Fail":
        return _NO_KEYS
    return _union(*(_at(each.target, behind) for each in step.exits)) if step.exits else None


def _at(target: str | None, behind: Mapping[str, Keys]) -> Keys:
    return None if target is None else behind[target]


def _union(*found: Keys) -> Keys:
    keys = [each for each in found if each is not None]
    return _NO_KEYS.union(*keys) if len(keys) == len(found) else None


def _read_by_output(output: Term, read: Keys) -> Keys:
    """Return the keys that an output reads of the input, for the keys that are read of it."""
    match output:
        case DataPath("input", ()):
            return read
        case Record(base, members):
            own = frozenset(key for key, _ in members)
            kept = [_read_by(each) for key, each in members if read is None or key in read]
            if base is None:
                return _union(_NO_KEYS, *kept)
            return _union(_read_by_output(base, None if read is None else read - own), *kept)
        case Choose(condition, then, otherwise):
            parts = [then] if otherwise is None else [then, otherwise]
            return _union(_read_by(condition), *(_read_by_output(each, read) for each in parts))
    return _read_by(output)


def _read_by(term: Term) -> Keys:
    """Return the keys of the input that a term reads."""
    if any(isinstance(each, Unknown) for each in walk(term)):
        return None
    first = [*_first_steps(term)]
    keys = frozenset(each for each in first if isinstance(each, str))
    return keys if all(isinstance(each, str) for each in first) else None


def _first_steps(term: Term) -> Iterator[str | int | None]:
    for path in paths_of(term):
        if path.root == INPUT:
            yield path.steps[0] if path.steps else None


def without_unread(output: Term, read: Keys) -> Term:
    """Return an output without the members that are not read behind it.

    Args:
        output: Output of a step, a rule or a catcher.
        read: The keys that are read of it.
    """
    if read is None:
        return output
    match output:
        case Record(base, members):
            kept = tuple((key, each) for key, each in members if key in read)
            whole = None if base is None else without_unread(base, read)
            if kept:
                return Record(whole, kept)
            return Literal({}) if whole is None else whole
        case Choose(condition, then, otherwise) if otherwise is not None:
            one, other = without_unread(then, read), without_unread(otherwise, read)
            return one if one == other else Choose(condition, one, other)
    return output
