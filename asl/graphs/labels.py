"""Labels of drawings: one line for a state's work or a transition's condition."""

import re
from collections.abc import Callable, Iterator, Mapping

from asl.core.printable import printable
from asl.core.values import Json, compact
from asl.states import type_of
from asl.states.base import expression_text

__all__ = [
    "Words",
    "catcher_label",
    "details",
    "distinguish",
    "no_words",
    "rule_words",
    "shorten",
    "title",
]

Words = Callable[[Mapping[str, Json], str], str | None]
"""Describes a state or a choice rule (by its JSON Pointer) in another language."""


def no_words(part: Mapping[str, Json], pointer: str) -> str | None:
    """Return None: no description in another language."""
    return None


SHORTEST = 44
"""Characters of a label that every kind of drawing shows."""
_SPACE = re.compile(r"\s+")
_OPERATOR = re.compile(
    r"(?:String|Numeric|Boolean|Timestamp)"
    r"(Equals|LessThanEquals|GreaterThanEquals|LessThan|GreaterThan|Matches)(Path)?"
)
_SIGNS = {
    "Equals": "=",
    "LessThan": "<",
    "LessThanEquals": "≤",
    "GreaterThan": ">",
    "GreaterThanEquals": "≥",
    "Matches": "matches",
}
_KINDS = {
    "IsPresent": ("is present", "is absent"),
    "IsNull": ("is null", "is not null"),
    "IsString": ("is a string", "is no string"),
    "IsNumeric": ("is a number", "is no number"),
    "IsBoolean": ("is a boolean", "is no boolean"),
    "IsTimestamp": ("is a timestamp", "is no timestamp"),
}


def shorten(text: str, length: int) -> str:
    """Return a printable text on one line, at most *length* characters of it."""
    line = printable(_SPACE.sub(" ", text).strip())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def distinguish(labels: list[str]) -> list[str]:
    """Return labels without a long common beginning: shortened ones would look alike."""
    found = [_SPACE.sub(" ", label).strip() for label in labels]
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(found):
        if len(label) > SHORTEST:
            groups.setdefault(label[: SHORTEST - 1], []).append(index)
    for group in groups.values():
        first, last = min(found[each] for each in group), max(found[each] for each in group)
        if first == last:
            continue
        pairs = enumerate(zip(first, last, strict=False))
        shared = next((at for at, (one, other) in pairs if one != other), len(first))
        begin = first.rfind(" ", 0, shared) + 1 or shared
        for index in group:
            found[index] = f"…{found[index][begin:]}"
    return found


# When a transition is taken


def rule_words(rule: Mapping[str, Json]) -> str:
    """Return a choice rule in short form: `$.score ≥ 7 and $.kind = "fast"`."""
    condition = rule.get("Condition")
    if condition is not None:
        return expression_text(condition)
    for word in ("And", "Or"):
        parts = rule.get(word)
        if type(parts) is list:
            return f" {word.lower()} ".join(_part(part) for part in parts)
    if type(rule.get("Not")) is dict:
        return f"not {_part(rule['Not'])}"
    return _comparison(rule)


def _part(rule: Json) -> str:
    if type(rule) is not dict:
        return "?"
    words = rule_words(rule)
    return f"({words})" if "And" in rule or "Or" in rule else words


def _comparison(rule: Mapping[str, Json]) -> str:
    variable = str(rule.get("Variable", rule.get("Variable.$", "?")))
    for field, operand in rule.items():
        if field in _KINDS:
            return f"{variable} {_KINDS[field][operand is not True]}"
        operator = _OPERATOR.fullmatch(field)
        if operator is not None:
            written = str(operand) if operator[2] else compact(operand)
            return f"{variable} {_SIGNS[operator[1]]} {written}"
    return variable


def catcher_label(catcher: Mapping[str, Json]) -> str:
    """Return the errors of a catcher: `catch States.Timeout`."""
    names = catcher.get("ErrorEquals")
    if type(names) is not list or not names or "States.ALL" in names:
        return "catch"
    return f"catch {', '.join(map(str, names))}"


# What a state does


def title(state: Mapping[str, Json], steps: tuple[str | int, ...]) -> str:
    """Return the title of a machine within a state."""
    if steps[0] == "Branches":
        return f"branch {int(steps[1]) + 1}"
    if steps[0] == "Template":
        return "included"
    return "each item"


def details(state: Mapping[str, Json], words: str | None = None) -> Iterator[str]:
    """Yield a line or two on a state's work, beyond its name and type.

    *words* replace the first one for a state read from another language.
    """
    lines = iter(type_of(state).describe(state))
    if words is not None:
        next(lines, None)
        yield words
    yield from lines
    retriers = state.get("Retry")
    if type(retriers) is list and retriers:
        yield "Retry"
