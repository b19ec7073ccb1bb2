"""Rendering of the templates of transform nodes, within limits of work and length.

Values are JSON; Jinja executes nothing.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.core.work import WorkMeter, count_values
from asl.dialects.codemie.functions.conditions import (
    COMPARISONS,
    MAX_BITS,
    METHODS,
    CodemieConditionError,
)
from asl.dialects.codemie.functions.outputs import as_bounded_text
from asl.dialects.codemie.functions.template_filters import FILTERS, TESTS, UNDEFINED
from asl.dialects.codemie.functions.template_syntax import (
    Application,
    Assignment,
    Condition,
    Constant,
    Expression,
    ForEach,
    Node,
    TemplateOperation,
    TemplateOutput,
    Variable,
    parse_template,
)
from asl.expr.python_grammar import COMPARED

__all__ = ["render"]

MAX_LENGTH: Final = 1_000_000
"""Characters of a rendered template."""


def render(text: str, names: Mapping[str, Json], meter: WorkMeter) -> str:
    """Return the text of a template; a name without a value is shown as nothing.

    Args:
        text: The template.
        names: The values by name.
        meter: Counts the work.

    Raises:
        CodemieConditionError: An expression fails, or the text becomes too long.
        WorkExceeded: There is too much work.
    """
    try:
        nodes = parse_template(text)
        rendering = _Rendering(names, meter)
        rendering.nodes(nodes)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise CodemieConditionError(str(error)) from None
    except ExpressionFault as fault:
        raise CodemieConditionError(fault.message) from None
    except RecursionError:
        raise CodemieConditionError("too deep") from None
    return "".join(rendering.shown)


class _Rendering:
    def __init__(self, names: Mapping[str, Json], meter: WorkMeter) -> None:
        self.names: dict[str, Any] = dict(names)
        self.meter = meter
        self.shown: list[str] = []
        self.left = MAX_LENGTH
        """Characters that may still be added."""

    def nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.meter.spend(4)
            match node:
                case str(text):
                    self.show(text)
                case TemplateOutput(value):
                    self.show(self.text(self.value(value)))
                case Assignment(name, value):
                    self.names[name] = self.value(value)
                case Condition(test, body, otherwise):
                    self.nodes(body if self.value(test) else otherwise)
                case ForEach():
                    self.loop(node)

    def text(self, value: Any) -> str:
        return "" if value is UNDEFINED else as_bounded_text(value, self.meter)

    def show(self, text: str) -> None:
        self.left -= len(text)
        self.meter.spend_bytes(len(text))
        if self.left < 0:
            raise CodemieConditionError(f"a template gives more than {MAX_LENGTH} characters")
        self.shown.append(text)

    def loop(self, node: ForEach) -> None:
        outer = self.names
        items = self.value(node.items)
        listed = [] if items is UNDEFINED else list(items)
        self.meter.spend(len(listed))
        entered = []
        for item in listed:
            scope = {**outer, **_targets(node.targets, item)}
            self.meter.spend(4 + (len(scope) >> 2))
            self.names = scope
            if node.test is None or self.value(node.test):
                entered.append(scope)
        for index, scope in enumerate(entered):
            last = index == len(entered) - 1
            scope["loop"] = {
                "index": index + 1,
                "index0": index,
                "first": index == 0,
                "last": last,
                "length": len(entered),
                "revindex": len(entered) - index,
            }
            self.names = scope
            self.nodes(node.body)
        self.names = outer
        if not entered:
            self.nodes(node.otherwise)

    # Values

    def value(self, node: Expression) -> Any:
        self.meter.spend(4)
        match node:
            case Constant(value):
                return value
            case Variable(name):
                return self.names.get(name, UNDEFINED)
            case TemplateOperation("if", (test, then, last)):
                chosen = then if self.optional(test) else last
                return UNDEFINED if chosen is None else self.value(chosen)
            case TemplateOperation("and" | "or" as word, (left, right)):
                found = self.optional(left)
                return found if bool(found) is (word == "or") else self.optional(right)
            case TemplateOperation(sign, operands):
                return self.operated(sign, [self.optional(each) for each in operands])
            case Application(kind, name, arguments, named):
                listed = [self.value(each) for each in arguments]
                by_name = {key: self.value(each) for key, each in named}
                for each in (*listed, *by_name.values()):
                    self.count(each)
                return self.applied(kind, name, listed, by_name)

    def optional(self, node: Expression | None) -> Any:
        return None if node is None else self.value(node)

    def count(self, value: Any) -> None:
        """Count the work of reading a value."""
        if value is not UNDEFINED:
            count_values(value, self.meter)

    def operated(self, sign: str, values: list[Any]) -> Any:
        match sign, values:
            case "not", [value]:
                return not value
            case "list", _:
                return values
            case "dict", _:
                return {str(key): each for key, each in zip(values[::2], values[1::2], strict=True)}
            case "~", _:
                return self.computed("+", *map(self.text, values))
            case "member", [value, step]:
                return _member(value, step)
            case "slice", [value, *ends]:
                self.count(value)
                return value[slice(*ends)]
            case _, [left, right]:
                self.count(left)
                self.count(right)
                return self.computed(sign, left, right)
        raise CodemieConditionError(sign)

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        compare = _COMPARISONS.get(sign)
        if compare is not None:
            return compare(left, right)
        numbers = all(isinstance(each, int | float) for each in (left, right))
        if not numbers and not (sign == "+" and isinstance(left, str | list)):
            raise CodemieConditionError(f"{sign} takes numbers")
        if not numbers and len(left) + len(right) > MAX_LENGTH:
            raise CodemieConditionError("too long")
        found = _COMPUTED[sign](left, right)
        if isinstance(found, int) and found.bit_length() > MAX_BITS:
            raise CodemieConditionError("too large")
        return found

    def applied(self, kind: str, name: str, values: list[Any], named: Mapping[str, Any]) -> Any:
        value, *arguments = values
        if kind == "test":
            return TESTS[name](value, *arguments)
        if kind == "filter":
            found = FILTERS[name](value, *arguments, **named)
            self.count(found)
            return found
        held = "text" if isinstance(value, str) else "object" if isinstance(value, dict) else "list"
        method = METHODS[name].get(held)
        if method is None:
            raise CodemieConditionError(f"no method {name}")
        found = method(value, *arguments)
        return found if isinstance(found, str | int | float | dict | list | None) else list(found)


_COMPARISONS: Final = {COMPARISONS[kind]: compare for kind, compare in COMPARED.items()}
_COMPUTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _targets(targets: tuple[str, ...], item: Any) -> dict[str, Any]:
    if len(targets) == 1:
        return {targets[0]: item}
    return dict(zip(targets, item, strict=True))


def _member(value: Any, step: Any) -> Any:
    if value is UNDEFINED:
        raise CodemieConditionError(f"nothing has a member {step!r}")
    if isinstance(value, dict):
        return value.get(str(step), UNDEFINED)
    if isinstance(value, str | list | tuple) and type(step) is int:
        return value[step] if -len(value) <= step < len(value) else UNDEFINED
    return UNDEFINED
