"""Choice rules as conditions: the names that they read, and what they compare."""

import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from asl.core.values import Json
from asl.dialects.codemie.writing.results import Result

__all__ = ["Extracted", "Output", "Reads", "expression", "variables"]

Lost = Callable[[str, str, str], None]

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
_BESIDE: Final = frozenset(("Variable", "Next", "Comment", "Assign", "Output"))
"""Fields of a rule that compare nothing."""
NEVER: Final = "False"
_KEYWORDS: Final = frozenset((*keyword.kwlist, "keys", "true", "false"))


class Reads(Protocol):
    """How conditions name what the paths of one Choice lead to."""

    def name(self, path: Json) -> str | None:
        """Return the name of a path; None if it has none."""

    def present(self, path: Json) -> tuple[str, bool] | None:
        """Return the condition that something is there, and whether that is just the same."""

    def coerces(self, path: Json) -> bool:
        """Whether a text that says a value is that value there."""


class Extracted:
    """Names of a transformation that extracts everything from the context."""

    def __init__(self, way: Callable[[Json], tuple[str, ...] | None]) -> None:
        self.way = way
        self.names: dict[str, str] = {}

    def name(self, path: Json) -> str | None:
        """Return the name of a path, which is a new one when it is met first."""
        found = self.way(path)
        if not found:
            return None
        dotted = ".".join(found)
        if dotted not in self.names:
            base = re.sub(r"\W+", "_", dotted).strip("_") or "value"
            base = f"at_{base}" if base[:1].isdecimal() else base
            name, number = base, 1
            while name in self.names.values() or name in _KEYWORDS:
                number += 1
                name = f"{base}_{number}"
            self.names[dotted] = name
        return self.names[dotted]

    def present(self, path: Json) -> tuple[str, bool] | None:
        """What is missing is extracted as null."""
        name = self.name(path)
        return None if name is None else (f"{name} is not None", False)

    def coerces(self, path: Json) -> bool:
        """Everything stands at the root of what the transformation gives."""
        return True

    def mappings(self) -> list[Json]:
        """Return the mappings of the transformation."""
        return [
            {"output_field": name, "type": "extract", "source_path": path}
            for path, name in self.names.items()
        ]


class Output:
    """Names in the output of the state that decides itself."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def name(self, path: Json) -> str | None:
        """Return where a path leads in the output: `kind`, `user['age']`."""
        way = self.result.within(path)
        if not way or way[0] in _KEYWORDS or way[0].isdecimal():
            return None
        return way[0] + "".join(f"[{_index(step)}]" for step in way[1:])

    def present(self, path: Json) -> tuple[str, bool] | None:
        """Each step must be there for the next one to be looked for."""
        way = self.result.within(path)
        if self.name(path) is None or not way or any(step.isdecimal() for step in way):
            return None
        said, holder = [f"{way[0]!r} in keys"], way[0]
        for step in way[1:]:
            said.append(f"{step!r} in {holder}")
            holder += f"[{step!r}]"
        return " and ".join(said), True

    def coerces(self, path: Json) -> bool:
        """Only texts at the root of an output are read."""
        return len(self.result.within(path) or ()) == 1


def _index(step: str) -> str:
    plain = step.isascii() and step.isdecimal() and step in ("0", step.lstrip("0"))
    return step if plain else repr(step)


def variables(rule: Any) -> Iterator[tuple[Json, bool]]:
    """Yield the paths that a rule reads, each with whether only its presence counts."""
    if type(rule) is not dict:
        return
    for key, value in rule.items():
        if key in ("And", "Or", "Not"):
            for each in value if type(value) is list else [value]:
                yield from variables(each)
        elif key == "Variable":
            yield value, "IsPresent" in rule
        elif key.endswith("Path"):
            yield value, False
        elif key == "Condition" and type(value) is str:
            yield None, False


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
    operators = [key for key in rule if key not in _BESIDE]
    if reads.name(rule.get("Variable")) is None or len(operators) != 1:
        lost("L-CONDITION", "no condition says this; it is never true", pointer)
        return NEVER
    return _compared(rule["Variable"], operators[0], rule[operators[0]], pointer, reads, lost)


def _compared(path: str, operator: str, value: Json, pointer: str, reads: Reads, lost: Lost) -> str:
    name = reads.name(path)
    assert name is not None
    if operator == "IsPresent":
        said, same = reads.present(path) or (NEVER, False)
        if not same:
            lost("L-PRESENT", "what is missing is null there", pointer)
        return said if value is True else f"not ({said})"
    if operator == "IsNull":
        return f"{name} is None" if value is True else f"{name} is not None"
    if operator in _TYPES:
        if reads.coerces(path):
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
    sign = _SIGNS[match[2]]
    if match[3]:
        other = reads.name(value)
        if other is None:
            lost("L-CONDITION", "no condition says this; it is never true", pointer)
            return NEVER
        return f"{name} {sign} {other}"
    if type(value) is str and reads.coerces(path) and (read := _coerced(value)):
        lost("L-COERCE", f"the text {value!r} is a value there", pointer)
        return f"{name} {sign} {read}"
    return f"{name} {sign} {value!r}"


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
