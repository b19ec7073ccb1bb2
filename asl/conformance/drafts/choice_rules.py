"""Data that make a Choice state take a given transition."""

import re
from collections.abc import Mapping, Sequence

from asl.conformance.drafts.facts import ABSENT, Facts, place_of
from asl.core.values import Json

__all__ = ["rule_facts"]

_CONDITION = re.compile(
    r"\$states\.input\.([\w.]+)\s*(?:(=|!=|>=|<=|>|<)\s*"
    r"(?:\"([^\"]*)\"|'([^']*)'|(-?\d+(?:\.\d+)?)|(true|false)))?"
)


def rule_facts(rules: Sequence[Mapping[str, Json]], index: int | None) -> Facts:
    """Return facts that make the rule of this index match first; None for the Default."""
    facts: Facts = {}
    for rule in rules[:index]:
        facts |= _holds(rule, False)
    return facts if index is None else facts | _holds(rules[index], True)


def _holds(rule: Mapping[str, Json], wanted: bool) -> Facts:
    """Return facts that make a rule hold, or not hold."""
    if "Condition" in rule:
        return _condition(rule["Condition"], wanted)
    if "Not" in rule:
        return _holds(rule["Not"], not wanted)
    for field, all_of in (("And", wanted), ("Or", not wanted)):
        if field in rule:
            parts = rule[field] if all_of else rule[field][:1]
            return {at: value for part in parts for at, value in _holds(part, wanted).items()}
    place = place_of(rule.get("Variable"))
    operator = next(key for key in rule if key not in ("Variable", "Next", "Assign", "Comment"))
    operand = rule[operator]
    if place is None:
        return {}
    if operator.endswith("Path"):
        other = place_of(operand)
        operand = next(value for kind, value in _SAMPLES.items() if operator.startswith(kind))
        operator = operator.removesuffix("Path")
        facts = {} if other is None else {other: operand}
        return {**facts, place: _compared(operator, operand, wanted)}
    return {place: _compared(operator, operand, wanted)}


_SAMPLES: Mapping[str, Json] = {
    "String": "m",
    "Numeric": 5,
    "Boolean": True,
    "Timestamp": "2024-06-01T00:00:00Z",
}
_TESTS: Mapping[str, tuple[Json, Json]] = {
    "IsPresent": ("present", ABSENT),
    "IsNull": (None, "value"),
    "IsString": ("text", 1),
    "IsNumeric": (1, "text"),
    "IsBoolean": (True, "text"),
    "IsTimestamp": ("2024-01-01T00:00:00Z", "text"),
}


def _compared(operator: str, operand: Json, wanted: bool) -> Json:
    """Return a value that satisfies a comparison, or violates it."""
    if operator in _TESTS:
        return _TESTS[operator][0 if operand is wanted else 1]
    if operator == "StringMatches":
        return re.sub(r"\\?\*", "", operand) if wanted else f"no {operand}".replace("*", "-")
    kind = next(kind for kind in _SAMPLES if operator.startswith(kind))
    relation = operator.removeprefix(kind).removesuffix("Equals")
    equal = operator.endswith("Equals")
    if kind == "Boolean":
        return operand if wanted else not operand
    if wanted and equal:
        return operand
    above = (relation == "GreaterThan") == wanted
    if not wanted and not equal and relation:
        return operand
    return _neighbour(kind, operand, above)


def _neighbour(kind: str, operand: Json, above: bool) -> Json:
    """Return a value above or below another one of its kind."""
    if kind == "Numeric":
        return operand + 1 if above else operand - 1
    if kind == "Timestamp":
        return "9998-01-01T00:00:00Z" if above else "0002-01-01T00:00:00Z"
    return f"{operand}~" if above else operand[:-1]


def _condition(text: Json, wanted: bool) -> Facts:
    """Return facts for a condition in JSONata that compares input with constants."""
    inner = text.removeprefix("{%").removesuffix("%}").strip() if type(text) is str else ""
    word = " and " if wanted else " or "
    parts = inner.split(word) if f" {'or' if wanted else 'and'} " not in inner else []
    first = re.split(r" (?:and|or) ", inner)[:1]
    facts: Facts = {}
    for part in parts or first:
        match = _CONDITION.fullmatch(part.strip(" ()"))
        if match is None:
            continue
        path, relation, *quoted, number, truth = match.groups()
        place = tuple(path.split("."))
        if relation is None:
            facts[place] = wanted
            continue
        text_ = next((each for each in quoted if each is not None), None)
        kind = "Boolean" if truth else "Numeric" if number else "String"
        operand = truth == "true" if truth else _number(number) if number else text_
        name = {"=": "Equals", "!=": "Equals", ">": "GreaterThan", "<": "LessThan"}.get(
            relation, "GreaterThanEquals" if relation == ">=" else "LessThanEquals"
        )
        facts[place] = _compared(f"{kind}{name}", operand, wanted != (relation == "!="))
    return facts


def _number(text: str) -> Json:
    return float(text) if "." in text else int(text)
