"""Choices that compare a text that a Pass in front of them has selected."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from asl.dialects.lowering import Flow, StepExit, WorkStep
from asl.dialects.terms import (
    INPUT,
    Choose,
    Comparison,
    DataPath,
    Exists,
    Literal,
    Logic,
    Negation,
    Record,
    Term,
    Unknown,
    member,
    paths_of,
    walk,
)
from asl.dialects.terms import replace as replace_term

__all__ = ["unroll_selections"]


def unroll_selections(flow: Flow) -> Flow:
    """Return a flow whose Choices have the conditions by which the text they compare is selected.

    `(flag ? 'a' : 'b')` in a Pass and `= 'a'` in the Choice behind it are `flag` in the Choice. A
    Pass that only this exit leads to has `'a'` in its output.

    Args:
        flow: The steps of a machine.
    """
    before = Counter(target for step in flow.steps.values() for target in step.targets)
    before[flow.start] += 1
    steps = dict(flow.steps)
    for step in flow.steps.values():
        choice = steps.get(step.exits[0].target or "") if len(step.exits) == 1 else None
        if choice is None or before[choice.name] != 1:
            continue
        known = _known_exit(step, choice)
        if known is not None:
            output = step.output if known.output is None else _over(known.output, step.output, {})
            last = known._replace(condition=None, output=None)
            steps[step.name] = replace(step, output=output, exits=(last,))
            del steps[choice.name]
        if step.kind != "Pass" or known is not None:
            continue
        unrolled = _unrolled(step, choice)
        if unrolled is not None:
            exits = tuple(found for found, _ in unrolled)
            steps[choice.name] = replace(choice, exits=exits)
            for found, texts in unrolled:
                target = steps.get(found.target or "")
                if target is not None and target.kind == "Pass" and before[target.name] == 1:
                    output = _over(target.output, found.output or DataPath(INPUT), texts)
                    steps[target.name] = replace(target, output=output)
    return flow._replace(steps=steps)


def _known_exit(step: WorkStep, choice: WorkStep) -> StepExit | None:
    """Return the exit that is always taken behind a step, None if that depends on data."""
    key = _compared_key(choice)
    written = dict(step.output.members) if isinstance(step.output, Record) else {}
    text = written.get(key or "")
    if not isinstance(text, Literal) or step.kind not in ("Pass", "Task"):
        return None
    return _taken(choice, DataPath(INPUT, (str(key),)), text)


def _unrolled(
    step: WorkStep, choice: WorkStep
) -> list[tuple[StepExit, Mapping[str, Literal]]] | None:
    """Return the exits of a Choice with the conditions of a Pass, and the texts that it makes.

    Returns:
        Each exit with the texts that the Pass makes before it is taken, by their keys; None if not
        all conditions of the Choice compare a text that the Pass selects.
    """
    key = _compared_key(choice)
    written = dict(step.output.members) if isinstance(step.output, Record) else {}
    selected = written.get(key or "")
    conditions = [*_selections(selected)] if isinstance(selected, Choose) else []
    reads = {path.steps[:1] for each, _ in conditions if each for path in _read(each)}
    if not conditions or conditions[-1][0] is not None or reads & {(), *((k,) for k in written)}:
        return None
    if any(isinstance(part, Unknown) for part in walk(step.output)):
        return None
    keys = {key: _texts(term, conditions) for key, term in written.items()}
    exits: list[tuple[StepExit, Mapping[str, Literal]]] = []
    for at, (condition, text) in enumerate(conditions):
        found = _taken(choice, DataPath(INPUT, (str(key),)), text)
        if found is None:
            return None
        truth = None if condition is None else _truth(condition)
        texts = {each: known[at] for each, known in keys.items() if known}
        exits.append((found._replace(condition=truth), texts))
    return exits


def _texts(term: Term, conditions: Sequence[tuple[Term | None, Literal]]) -> Sequence[Literal]:
    """Return the literals that a term chooses by the same conditions; none if it does not."""
    found = [*_selections(term)]
    same = [each for each, _ in found] == [each for each, _ in conditions]
    return [text for _, text in found] if same else ()


def _over(term: Term, data: Term, texts: Mapping[str, Literal]) -> Term:
    """Return a term over *data* with texts in it as one over the input of *data*."""

    def known(each: Term) -> Term | None:
        if not isinstance(each, DataPath) or each.root != INPUT or not each.steps:
            return None
        first, *rest = each.steps
        return member(texts[str(first)], tuple(rest)) if first in texts else None

    def moved(each: Term) -> Term | None:
        is_input = isinstance(each, DataPath) and each.root == INPUT
        return member(data, each.steps) if is_input and isinstance(each, DataPath) else None

    return replace_term(replace_term(term, known), moved)


def _compared_key(choice: WorkStep) -> str | None:
    """Return the only key of the data that the conditions of a Choice read, None for others."""
    conditions = [each.condition for each in choice.exits if each.condition is not None]
    found = {path.steps for each in conditions for path in _read(each)}
    if choice.kind != "Choice" or choice.output != DataPath(INPUT) or len(found) != 1:
        return None
    (steps,) = found
    return steps[0] if len(steps) == 1 and isinstance(steps[0], str) else None


def _read(term: Term) -> Iterator[DataPath]:
    return (each for each in paths_of(term) if each.root == INPUT)


def _selections(term: Term | None) -> Iterator[tuple[Term | None, Literal]]:
    """Yield the conditions of a choice among literals, each with its literal; the last has none.

    Nothing follows a value that is no literal.
    """
    while isinstance(term, Choose) and isinstance(term.then, Literal):
        yield term.condition, term.then
        term = term.otherwise
    if isinstance(term, Literal):
        yield None, term


def _taken(choice: WorkStep, compared: DataPath, value: Literal) -> StepExit | None:
    """Return the exit of a Choice that is taken for a value, None if that is unknown."""
    for each in choice.exits:
        if each.condition is None:
            return each
        found = replace_term(each.condition, lambda part: value if part == compared else None)
        holds = _evaluated(found)
        if holds is not False:
            return each if holds else None
    return None


def _evaluated(condition: Term) -> bool | None:
    """Return whether a condition on literals holds, None if that is unknown."""
    match condition:
        case Comparison("=" | "!=" as operator, Literal(left), Literal(right), None):
            return bool((left == right) == (operator == "="))
        case Comparison("in", Literal(left), Literal(list(right)), None):
            return bool(left in right)
        case Negation(inner):
            found = _evaluated(inner)
            return None if found is None else not found
    return None


def _truth(condition: Term) -> Term:
    """Return a condition as true or false."""
    if isinstance(condition, Comparison | Exists | Negation | Logic):
        return condition
    return Choose(condition, Literal(True), Literal(False))
