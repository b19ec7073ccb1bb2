"""Templates of transform nodes as terms, for other languages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from asl.core.errors import ExpressionFault
from asl.dialects.codemie.functions.template_syntax import (
    Application,
    Condition,
    Constant,
    Expression,
    Node,
    TemplateOperation,
    TemplateOutput,
    Variable,
    parse_template,
)
from asl.dialects.terms import (
    Choose,
    Comparison,
    Exists,
    FunctionCall,
    Literal,
    Logic,
    Negation,
    Term,
    Text,
    Unknown,
    concatenate,
    member,
)

__all__ = ["template_term"]

LookUp = Callable[[Sequence[str]], Term]
_RENAMED: Final[Mapping[str, str]] = {
    "count": "count",
    "length": "count",
    "lower": "lowercase",
    "max": "max",
    "min": "min",
    "string": "string",
    "sum": "sum",
    "trim": "trim",
    "upper": "uppercase",
}
_COMPARED: Final = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "in": "in"}


class _NoTerm(Exception):
    """A template has no form as a term."""


def template_term(text: str, look_up: LookUp) -> Term:
    """Return the text of a template as a term, Unknown for one with a loop or an assignment.

    Args:
        text: The template.
        look_up: Returns the value of a name.
    """
    try:
        found = _Terms(look_up).text(parse_template(text))
    except (ExpressionFault, _NoTerm):
        return Unknown(text)
    return found if isinstance(found, Literal | Text) else Text((found,))


class _Terms:
    def __init__(self, look_up: LookUp) -> None:
        self.look_up = look_up

    def text(self, nodes: Sequence[Node]) -> Term:
        return concatenate(*(self.node(each) for each in nodes))

    def node(self, node: Node) -> Term:
        match node:
            case str(text):
                return Literal(text)
            case TemplateOutput(value):
                return self.value(value)
            case Condition(test, body, otherwise):
                return Choose(self.condition(test), self.text(body), self.text(otherwise))
        raise _NoTerm

    def value(self, node: Expression | None) -> Term:
        match node:
            case Constant(value):
                return Literal(value)
            case Variable(name):
                return self.look_up((name,))
            case TemplateOperation("member", (holder, Constant(str() | int() as step))):
                return member(self.value(holder), (step,))
            case TemplateOperation("~", (left, right)):
                return concatenate(self.value(left), self.value(right))
            case TemplateOperation("+" | "-" | "*" | "/" | "%" as sign, (left, right)):
                return FunctionCall(sign, (self.value(left), self.value(right)))
            case TemplateOperation("if", (test, then, otherwise)):
                last = Literal("") if otherwise is None else self.value(otherwise)
                return Choose(self.condition(test), self.value(then), last)
            case Application("filter", "default" | "d", (value, default), ()):
                found = self.value(value)
                return Choose(Exists(found), found, self.value(default))
            case Application("filter", "join", (value, *between), ()):
                mark = self.value(between[0]) if between else Literal("")
                return FunctionCall("join", (self.value(value), mark))
            case Application("filter", name, (value,), ()) if name in _RENAMED:
                return FunctionCall(_RENAMED[name], (self.value(value),))
            case Application("filter", "first" | "last" as name, (value,), ()):
                return member(self.value(value), (0 if name == "first" else -1,))
        raise _NoTerm

    def condition(self, node: Expression | None) -> Term:
        match node:
            case TemplateOperation("and" | "or" as word, (left, right)):
                return Logic(word, (self.condition(left), self.condition(right)))
            case TemplateOperation("not", (value,)):
                return Negation(self.condition(value))
            case TemplateOperation(sign, (left, right)) if sign in _COMPARED:
                return Comparison(_COMPARED[sign], self.value(left), self.value(right))
            case Application("test", "defined", (value,), ()):
                return Exists(self.value(value))
            case Constant(value):
                return Literal(bool(value))
        found = self.value(node)
        return Logic("and", (Exists(found), FunctionCall("boolean", (found,))))
