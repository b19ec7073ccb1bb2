"""The exits of a step as branches: by a text of the data, or by a label.

A branch compares the text that a task evaluates to, and a template makes that text. A decision
about one text of the data compares that text itself, any other decision a label that the template
computes.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from asl.core.values import Json
from asl.dialects.contenox.writing.templates import Printer, escaped, parses
from asl.dialects.names import FreshNames
from asl.dialects.terms import (
    Comparison,
    DataPath,
    Literal,
    Logic,
    Negation,
    Term,
)

__all__ = ["BranchRule", "Selection", "default", "select"]

NO_EXIT: Final = "otherwise"
"""The label where no rule holds and there is no default."""
_AMBIGUOUS: Final = re.compile(r"[-+.\d\[{<].*|map\[.*|true|false|NaN", re.DOTALL)
"""Texts that a template may show for a value that is no text."""


class BranchRule(NamedTuple):
    """A way out of a task.

    Attributes:
        condition: When it is taken; None for the default.
        goto: The task that follows.
    """

    condition: Term | None
    goto: str


class Selection(NamedTuple):
    """How a task selects among its branches.

    Attributes:
        template: The text that the task evaluates to.
        branches: The branches that compare it.
    """

    template: str
    branches: list[Json]


class _Test(NamedTuple):
    value: DataPath
    operator: str
    when: str


def default(goto: str) -> dict[str, Json]:
    """Return the branch that is taken when no other is."""
    return {"operator": "default", "when": "", "goto": goto}


def select(rules: Sequence[BranchRule], printer: Printer) -> Selection | None:
    """Return how a text selects among branches.

    Args:
        rules: The ways out.
        printer: The printer of the template that makes the text.

    Returns:
        The selection; None if a condition has no form in a template.
    """
    return _compared(_inverted(rules), printer) or _labelled(rules, printer)


def _labelled(rules: Sequence[BranchRule], printer: Printer) -> Selection | None:
    """Return a selection by a label for each target, which the template computes."""
    text = ""
    names: dict[str, str] = {}
    taken = FreshNames([NO_EXIT], "_")
    branches: dict[str, Json] = {}
    for condition, goto in rules:
        if goto not in names:
            names[goto] = taken.new(re.sub(r"[\s{}]+", "_", goto))
        if condition is None:
            branches.pop(goto, None)
            branches[goto] = default(goto)
            return Selection(_closed(text, names[goto]), [*branches.values()])
        test = printer.condition(condition)
        if test is None or not parses(f"{{{{if {test}}}}}{{{{end}}}}"):
            return None
        branches.setdefault(goto, {"operator": "equals", "when": names[goto], "goto": goto})
        text += f"{{{{{'else if' if text else 'if'} {test}}}}}{escaped(names[goto])}"
    return Selection(_closed(text, NO_EXIT), [*branches.values()])


def _closed(text: str, last: str) -> str:
    return f"{text}{{{{else}}}}{escaped(last)}{{{{end}}}}" if text else escaped(last)


def _inverted(rules: Sequence[BranchRule]) -> Sequence[BranchRule]:
    """Return two ways out with the condition that is not negated."""
    match rules:
        case [BranchRule(Negation(condition), goto), BranchRule(None, other)]:
            return [BranchRule(condition, other), BranchRule(None, goto)]
    return rules


def _compared(rules: Sequence[BranchRule], printer: Printer) -> Selection | None:
    """Return a selection by one text of the data, None if the rules are about more."""
    found: list[Json] = []
    values: set[DataPath] = set()
    for condition, goto in rules:
        if condition is None:
            found.append(default(goto))
            continue
        tests = _tests(condition)
        if tests is None:
            return None
        for each in tests:
            values.add(each.value)
            found.append({"operator": each.operator, "when": each.when, "goto": goto})
    shown = printer.text(values.pop()) if len(values) == 1 else None
    return None if shown is None else Selection(shown, found)


def _tests(condition: Term) -> list[_Test] | None:
    """Return the comparisons that a condition joins by `or`, None for any other condition."""
    match condition:
        case Comparison("=", DataPath() as value, Literal(str(text)), None | "string"):
            return _equal(value, [text])
        case Comparison("in", DataPath() as value, Literal(list(texts)), None | "string"):
            return _equal(value, texts)
        case Logic("or", parts):
            found = [_tests(each) for each in parts]
            return None if None in found else [test for each in found for test in each or ()]
    return None


def _equal(value: DataPath, texts: Sequence[Json]) -> list[_Test] | None:
    """Return comparisons with texts, None if a template may show another value like one."""
    found = [each for each in texts if isinstance(each, str) and not _AMBIGUOUS.fullmatch(each)]
    if len(found) < len(texts):
        return None
    return [_Test(value, "equals", each) for each in found]
