"""Choice rules as conditions of templates.

A condition that cannot be said is `false`. What is missing equals nothing there, and a comparison
of numbers ends the run where it is given something else.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.dialects.contenox.writing.inputs import REACHING
from asl.dialects.contenox.writing.meanings import Reader
from asl.dialects.contenox.writing.templates import operand
from asl.dialects.contenox.writing.values import Constant, Unknown, Value, reaches
from asl.expr.jsonata.parser import parse
from asl.expr.query_protocol import query_source
from asl.expr.text_matching import literal_pieces

__all__ = ["NEVER", "condition"]

Lost = Callable[[str, str, str], None]
NEVER: Final = "false"
_WORDS: Final[Mapping[str, str]] = {
    "LessThan": "lt",
    "LessThanEquals": "le",
    "GreaterThan": "gt",
    "GreaterThanEquals": "ge",
}
_SIGNS: Final[Mapping[str, str]] = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_OPERATOR: Final = re.compile(
    r"(String|Numeric|Boolean)(Equals|LessThanEquals|GreaterThanEquals|LessThan|GreaterThan)(Path)?"
)
_ABOUT: Final = ("Next", "Comment", "Assign", "Output", "Variable")


def condition(rule: Mapping[str, Any], where: str, reader: Reader, lost: Lost) -> str:
    """Return a choice rule as a condition of a template."""
    return _Conditions(reader, lost).rule(rule, where)


class _Conditions:
    def __init__(self, reader: Reader, lost: Lost) -> None:
        self.reader = reader
        self.lost = lost
        self.jsonata = False
        """Whether the condition is a query."""

    def never(self, what: str, where: str, code: str = "CX-OPERATOR") -> str:
        self.lost(code, f"{what}; it is never true", where)
        return NEVER

    def rule(self, rule: Mapping[str, Any], where: str) -> str:
        if "Condition" in rule:
            self.jsonata = True
            said = rule["Condition"]
            source = query_source(said) if isinstance(said, str) else None
            if isinstance(said, bool):
                return "true" if said else NEVER
            try:
                return self.node(parse(source or "false").tree, where)
            except (ExpressionFault, RecursionError):
                return self.never("no condition says this", where)
        for key, word in (("And", "and"), ("Or", "or")):
            if key in rule:
                parts = [
                    self.rule(each, f"{where}/{key}/{index}")
                    for index, each in enumerate(rule[key])
                ]
                return f"{word} {' '.join(map(_grouped, parts))}"
        if "Not" in rule:
            return f"not {_grouped(self.rule(rule['Not'], f'{where}/Not'))}"
        if "Variable" not in rule:
            return self.never("no condition asks for what is no data", where)
        value = self.reader.expression(rule["Variable"])
        operators = [key for key in rule if key not in _ABOUT]
        parts = [self.compared(value, each, rule, where) for each in operators]
        return parts[0] if len(parts) == 1 else f"and {' '.join(map(_grouped, parts))}"

    def compared(self, value: Value, operator: str, rule: Mapping[str, Any], where: str) -> str:
        operand_ = rule[operator]
        said = self.said(value, where)
        if said is None:
            return NEVER
        if operator == "StringMatches":
            return self.matched(said, operand_, where)
        if operator in ("IsNull", "IsPresent"):
            self.lost("CX-CHOICE", "what is missing and what is null are the same there", where)
            wanted = operand_ is (operator == "IsNull")
            return f"{'eq' if wanted else 'ne'} {said} nil"
        match = _OPERATOR.fullmatch(operator)
        if match is None:
            return self.never(f"no condition has {operator!r}", where)
        other = self.reader.expression(operand_) if match[3] else Constant(operand_)
        against = self.said(other, where)
        if against is None:
            return NEVER
        if match[2] != "Equals":
            return self.ordered(_WORDS[match[2]], said, against, where)
        if match[1] == "Numeric":
            return self.same_number(said, against, where)
        if match[3]:
            self.lost("CX-CHOICE", "values that are no texts may be equal there as well", where)
        return f"eq {said} {against}"

    def said(self, value: Value, where: str) -> str | None:
        found = None if isinstance(value, Unknown) else operand(value, self.reader.env)
        if found is None:
            self.never("what is asked about is no variable of the chain", where, "CX-CHOICE")
        elif self.jsonata and reaches(value):
            self.lost("L-REQUIRED", REACHING, where)
        return None if found is None else _grouped(found)

    def ordered(self, word: str, said: str, against: str, where: str) -> str:
        self.lost("CX-NUMERIC", "what cannot be compared ends the run there", where)
        return f"{word} {said} {against}"

    def same_number(self, said: str, against: str, where: str) -> str:
        self.lost("CX-NUMERIC", "what cannot be compared ends the run there", where)
        return f"and (ge {said} {against}) (le {said} {against})"

    def matched(self, said: str, pattern: str, where: str) -> str:
        parts = literal_pieces(pattern)
        if len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])):
            return self.never(f"no condition says the pattern {pattern!r}", where)
        if len(parts) == 1:
            return f"eq {said} {self.text(parts[0])}"
        self.lost("CX-CHOICE", "what is no text ends the run there", where)
        if len(parts) == 3:
            return f"contains {self.text(parts[1])} {said}"
        begins = f"hasPrefix {self.text(parts[0])} {said}"
        ends = f"hasSuffix {self.text(parts[1])} {said}"
        if not parts[0] or not parts[1]:
            return ends if not parts[0] else begins
        return f"and ({begins}) ({ends}) (ge (len {said}) {len(parts[0]) + len(parts[1])})"

    def text(self, value: str) -> str:
        return str(operand(Constant(value), self.reader.env))

    # Queries

    def node(self, node: Any, where: str) -> str:
        if node.type == "block" and len(node.expressions) == 1:
            return self.node(node.expressions[0], where)
        if node.type == "binary" and node.value in ("and", "or"):
            parts = [self.node(each, where) for each in (node.lhs, node.rhs)]
            return f"{node.value} {' '.join(map(_grouped, parts))}"
        if node.type == "binary" and node.value in ("=", "!=", "in", *_SIGNS):
            return self.relation(node, where)
        if node.type == "function" and node.procedure.type == "variable":
            found = self.called(node.procedure.value, node.arguments, where)
            if found is not None:
                return found
        if node.type == "value" and isinstance(node.value, bool):
            return "true" if node.value else NEVER
        return self.never("no condition says this query", where)

    def called(self, name: str, arguments: list[Any], where: str) -> str | None:
        if name == "not" and len(arguments) == 1:
            return f"not {_grouped(self.node(arguments[0], where))}"
        if name == "exists" and len(arguments) == 1:
            said = self.said(self.reader.node(arguments[0]), where)
            self.lost("CX-CHOICE", "what is missing and what is null are the same there", where)
            return NEVER if said is None else f"ne {said} nil"
        if name == "contains" and len(arguments) == 2:
            value, part = map(self.reader.node, arguments)
            if isinstance(part, Constant) and isinstance(part.value, str):
                said = self.said(value, where)
                self.lost("CX-CHOICE", "what is no text ends the run there", where)
                return NEVER if said is None else f"contains {self.text(part.value)} {said}"
        return None

    def relation(self, node: Any, where: str) -> str:
        left, right = self.reader.node(node.lhs), self.reader.node(node.rhs)
        if node.value == "in":
            if not isinstance(right, Constant) or not isinstance(right.value, list):
                return self.never("no condition says this query", where)
            said = self.said(left, where)
            if said is None or not right.value:
                return NEVER
            each = [f"({self.equal(said, Constant(item), where)})" for item in right.value]
            return f"or {' '.join(each)}"
        said = self.said(left, where)
        if said is None:
            return NEVER
        if node.value in _SIGNS:
            against = self.said(right, where)
            return (
                NEVER if against is None else self.ordered(_SIGNS[node.value], said, against, where)
            )
        same = self.equal(said, right, where)
        return same if node.value == "=" or same == NEVER else f"not ({same})"

    def equal(self, said: str, other: Value, where: str) -> str:
        against = self.said(other, where)
        if against is None:
            return NEVER
        number = isinstance(other, Constant) and type(other.value) in (int, float)
        return self.same_number(said, against, where) if number else f"eq {said} {against}"


def _grouped(part: str) -> str:
    return f"({part})" if " " in part and not part.startswith(("(", '"')) else part
