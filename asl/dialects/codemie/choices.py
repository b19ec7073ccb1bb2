"""Choice rules as conditions: the names that they read, and what they compare."""

import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.values import Json

__all__ = ["Reads", "expression"]

Lost = Callable[[str, str, str], None]

_VARIABLE = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\])+)")
_SIGNS: Final = {
    "Equals": "==",
    "LessThan": "<",
    "LessThanEquals": "<=",
    "GreaterThan": ">",
    "GreaterThanEquals": ">=",
}
_OPERATOR = re.compile(
    r"(String|Numeric|Boolean|Timestamp)(Equals|LessThanEquals|GreaterThanEquals|LessThan|GreaterThan)(Path)?"
)
_TYPES: Final = {"IsString": "str", "IsNumeric": "(int, float)", "IsBoolean": "bool"}
NEVER: Final = "False"


class Reads:
    """The paths that the conditions of one Choice read, and the names that they have there."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def name(self, path: str) -> str:
        """Return the name of a path."""
        if path not in self.names:
            base = re.sub(r"\W+", "_", path).strip("_")
            found, number = base, 1
            while found in self.names.values() or found in _KEYWORDS:
                number += 1
                found = f"{base}_{number}"
            self.names[path] = found
        return self.names[path]

    def mappings(self) -> list[Json]:
        """Return the mappings of a transformation that gives them all."""
        return [
            {"output_field": name, "type": "extract", "source_path": path}
            for path, name in self.names.items()
        ]


_KEYWORDS: Final = frozenset((*keyword.kwlist, "keys", "true", "false"))


def expression(rule: Mapping[str, Any], pointer: str, reads: Reads, lost: Lost) -> str:
    """Return a choice rule as a condition; one that cannot be said is never true."""
    if "Condition" in rule:
        if type(rule["Condition"]) is bool:
            return str(rule["Condition"])
        lost("L-CONDITION", "a condition has no JSONata; it is never true", pointer)
        return NEVER
    for key, word in (("And", "and"), ("Or", "or")):
        if type(rule.get(key)) is list:
            parts = [
                expression(each, f"{pointer}/{key}/{index}", reads, lost)
                for index, each in enumerate(rule[key])
            ]
            return f" {word} ".join(
                f"({part})" if " or " in part or " and " in part else part for part in parts
            )
    if type(rule.get("Not")) is dict:
        return f"not ({expression(rule['Not'], f'{pointer}/Not', reads, lost)})"
    path = _path(rule.get("Variable"))
    operators = [
        key for key in rule if key not in ("Variable", "Next", "Comment", "Assign", "Output")
    ]
    if path is None or len(operators) != 1:
        lost("L-CONDITION", "no condition says this; it is never true", pointer)
        return NEVER
    return _compared(reads.name(path), operators[0], rule[operators[0]], pointer, reads, lost)


def _path(variable: Json) -> str | None:
    match = _VARIABLE.fullmatch(variable) if type(variable) is str else None
    return None if match is None else match[1].lstrip(".").replace("[", ".").replace("]", "")


def _compared(name: str, operator: str, value: Json, pointer: str, reads: Reads, lost: Lost) -> str:
    if operator == "IsPresent":
        lost("L-PRESENT", "what is missing is null there", pointer)
        return f"{name} is not None" if value is True else f"{name} is None"
    if operator == "IsNull":
        return f"{name} is None" if value is True else f"{name} is not None"
    if operator in _TYPES:
        lost("L-COERCE", "a text that says a number or a boolean is one there", pointer)
        text = f"isinstance({name}, {_TYPES[operator]})"
        return text if value is True else f"not {text}"
    if operator == "StringMatches" and type(value) is str:
        return _matched(name, value, pointer, lost)
    match = _OPERATOR.fullmatch(operator)
    if match is None:
        lost("L-CONDITION", f"no condition has {operator!r}; it is never true", pointer)
        return NEVER
    if match[1] == "Timestamp":
        lost("L-TIMESTAMP", "times are compared as texts there", pointer)
    if match[3]:
        other = _path(value)
        if other is None:
            lost("L-CONDITION", "no condition says this; it is never true", pointer)
            return NEVER
        return f"{name} {_SIGNS[match[2]]} {reads.name(other)}"
    if type(value) is str and _coerced(value):
        lost("L-COERCE", f"the text {value!r} is a value there", pointer)
        return f"{name} {_SIGNS[match[2]]} {_coerced(value)}"
    return f"{name} {_SIGNS[match[2]]} {value!r}"


def _coerced(text: str) -> str:
    """Return what a text is read as where it is not a text, else nothing."""
    from asl.expr.codemie.outputs import coerced

    found = coerced({"text": text})["text"]
    return "" if type(found) is str else repr(found)


def _matched(name: str, pattern: str, pointer: str, lost: Lost) -> str:
    parts = pattern.split("*")
    if "\\" in pattern or len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])):
        lost("L-PATTERN", f"no condition says the pattern {pattern!r}; it is never true", pointer)
        return NEVER
    if len(parts) == 1:
        return f"{name} == {pattern!r}"
    if len(parts) == 3:
        return f"{parts[1]!r} in {name}"
    said = [f"{name}.startswith({parts[0]!r})"] if parts[0] else []
    said += [f"{name}.endswith({parts[1]!r})"] if parts[1] else []
    return " and ".join(said) or f"isinstance({name}, str)"
