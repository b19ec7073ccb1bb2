"""Choice rules as conditions.

A rule does not hold for a value of another type. A condition that orders such a value, or looks
for a text in it, fails, which makes all of it false. So where more is asked than that, the type is
asked for first. What is told is how values are read, and compared, otherwise there.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding, Severity
from asl.core.values import Json
from asl.dialects.codemie.functions.outputs import read_literal
from asl.dialects.codemie.writing.reads import READ, Loss, Reads
from asl.expr.text_matching import literal_pieces

__all__ = ["Conditions", "variables"]

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
_TYPES: Final = {
    "String": "str",
    "Timestamp": "str",
    "Numeric": "(int, float)",
    "Boolean": "bool",
}
_BESIDE: Final = frozenset(("Variable", "Next", "Comment", "Assign", "Output"))
"""Fields of a rule that compare nothing."""
NEVER: Final = "False"
_UNQUOTED: Final = Loss("L-COERCE", "a text in quotes is the text within them there", Severity.INFO)
_TIMES: Final = Loss("L-TIMESTAMP", "times are compared as texts there")
_UNSAID: Final = Loss("L-CONDITION", "no condition says this; it is never true")
_JSONATA: Final = Loss("L-CONDITION", "a condition has no JSONata; it is never true")


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


class Conditions:
    """The conditions of one Choice."""

    def __init__(self, reads: Reads, report: Callable[[Finding], None]) -> None:
        self.reads = reads
        self.report = report

    def lost(self, loss: Loss, where: str) -> None:
        found = Finding(loss.code, loss.message, where, severity=loss.severity, at_key=True)
        self.report(found)

    def unsaid(self, loss: Loss, where: str) -> str:
        self.lost(loss, where)
        return NEVER

    def said(self, rule: Mapping[str, Any], where: str, *, guarded: bool = False) -> str:
        """Return a rule as a condition; one that cannot be said is never true.

        With *guarded* it fails for no type, as what it comes to is not all that is asked.
        """
        if "Condition" in rule:
            held = rule["Condition"]
            return str(held) if type(held) is bool else self.unsaid(_JSONATA, where)
        for key in ("And", "Or"):
            if type(rule.get(key)) is list:
                return _joined(key.lower(), [*self.parts(rule[key], key, where, guarded)])
        if type(rule.get("Not")) is dict:
            return f"not ({self.said(rule['Not'], f'{where}/Not', guarded=True)})"
        operators = [key for key in rule if key not in _BESIDE]
        name = self.reads.name(rule.get("Variable"))
        if name is None or len(operators) != 1:
            return self.unsaid(_UNSAID, where)
        (operator,) = operators
        if operator == "IsPresent":
            return self.present(rule, where)
        test = _Test(self, name, self.reads.coerces(rule["Variable"]), where, guarded)
        return test.said(operator, rule[operator])

    def parts(self, rules: list[Any], key: str, where: str, guarded: bool) -> Iterator[str]:
        """Yield what And or Or joins; behind a part of an Or that does not hold comes the next."""
        for index, each in enumerate(rules):
            more = key == "Or" and index < len(rules) - 1
            yield self.said(each, f"{where}/{key}/{index}", guarded=guarded or more)

    def present(self, rule: Mapping[str, Any], where: str) -> str:
        found = self.reads.present(rule["Variable"])
        if found is None:
            return self.unsaid(_UNSAID, where)
        said, loss = found
        if loss is not None:
            self.lost(loss, where)
        return said if rule["IsPresent"] is True else f"not ({said})"


def _joined(word: str, parts: list[str]) -> str:
    return f" {word} ".join(
        f"({part})" if " or " in part or " and " in part else part for part in parts
    )


class _Test:
    """One comparison of a name, which *coerces* where a text that says a value is that value."""

    def __init__(
        self, conditions: Conditions, name: str, coerces: bool, where: str, guarded: bool
    ) -> None:
        self.conditions = conditions
        self.name = name
        self.coerces = coerces
        self.where = where
        self.guarded = guarded

    def lost(self, loss: Loss) -> None:
        self.conditions.lost(loss, self.where)

    def unsaid(self, loss: Loss) -> str:
        return self.conditions.unsaid(loss, self.where)

    def said(self, operator: str, value: Json) -> str:
        """Return the condition for an operator and what it compares with."""
        if operator == "StringMatches" and type(value) is str:
            return self.matched(value)
        if operator in ("IsNull", "IsString", "IsNumeric", "IsBoolean"):
            if self.coerces:
                self.lost(READ)
            test = self.typed(operator.removeprefix("Is"))
            return test if value is True else f"not ({test})"
        match = _OPERATOR.fullmatch(operator)
        if match is None:
            return self.unsaid(
                Loss("L-CONDITION", f"no condition has {operator!r}; it is never true")
            )
        kind, sign = match[1], _SIGNS[match[2]]
        if kind == "Timestamp":
            self.lost(_TIMES)
        if match[3]:
            return self.beside(kind, sign, value)
        if sign == "==":
            return self.equal(value)
        if self.coerces or kind == "Numeric":
            self.lost(READ)
        return self.of(kind, f"{self.name} {sign} {value!r}", guarded=self.guarded)

    def of(self, kind: str, said: str, *, guarded: bool = True) -> str:
        """Return a condition that is only asked about values of a type."""
        return f"isinstance({self.name}, {_TYPES[kind]}) and {said}" if guarded else said

    def typed(self, kind: str) -> str:
        if kind == "Null":
            return f"{self.name} is None"
        test = f"isinstance({self.name}, {_TYPES[kind]})"
        return f"{test} and not isinstance({self.name}, bool)" if kind == "Numeric" else test

    def beside(self, kind: str, sign: str, path: Json) -> str:
        """Compare with another name: both must be of the type."""
        other = self.conditions.reads.name(path)
        if other is None:
            return self.unsaid(_UNSAID)
        if self.coerces or self.conditions.reads.coerces(path) or _TYPES[kind] != "str":
            self.lost(READ)
        test = f"{self.name} {sign} {other}"
        if sign != "==":
            test = f"isinstance({other}, {_TYPES[kind]}) and {test}"
        return self.of(kind, test)

    def equal(self, value: Json) -> str:
        """Compare with a constant, which fails for no type."""
        if type(value) is str:
            found = read_literal(value) if self.coerces else value
            if self.coerces:
                self.lost(_UNQUOTED if found == value else READ)
            return f"{self.name} == {found!r}"
        if self.coerces or value in (0, 1):  # a boolean, too
            self.lost(READ)
        return f"{self.name} == {value!r}"

    def matched(self, pattern: str) -> str:
        first, *rest = literal_pieces(pattern)
        if not rest:
            return self.equal(first)
        *middle, last = rest
        if len(middle) > 1 or (middle and (first or last)):
            message = f"no condition says the pattern {pattern!r}; it is never true"
            return self.unsaid(Loss("L-PATTERN", message))
        if self.coerces:
            self.lost(READ)
        if middle:  # there may be a list, which has it as an item
            return self.of("String", f"{middle[0]!r} in {self.name}")
        tests = [f"{self.name}.startswith({first!r})"] if first else []
        tests += [f"{self.name}.endswith({last!r})"] if last else []
        if len(tests) > 1:
            tests.append(f"len({self.name}) >= {len(first) + len(last)}")
        if not tests:
            return self.typed("String")
        return self.of("String", " and ".join(tests), guarded=self.guarded)
