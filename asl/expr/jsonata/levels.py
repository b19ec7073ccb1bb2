"""How deep a result can hold anything but JSON; only so far is it walked when it leaves."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from asl.expr.jsonata.functions.dialects import PLAIN
from asl.expr.jsonata.results import EVERYWHERE

Node = Any
"""A node of the library's tree."""

_SELECTING = {"name", "variable", "wildcard", "descendant", "sort"}
"""Steps that give parts of what they are applied to."""

_SCALAR = {
    *("string", "length", "substring", "substringBefore", "substringAfter", "lowercase", "trim"),
    *("uppercase", "pad", "contains", "replace", "join", "number", "sum", "max", "min", "average"),
    *("count", "abs", "floor", "ceil", "round", "power", "sqrt", "exists", "boolean", "not"),
    *("keys", "split", "type", "hash", "uuid", "random", "now", "millis", "fromMillis", "toMillis"),
}
"""Functions that give a scalar, or an array of texts."""

_PASSING = {"filter", "distinct", "single", "lookup", "sift"}
"""Functions that give parts of their first argument."""

_WRAPPING = {"append", "reverse", "sort", "shuffle"}
"""Functions that give an array, in which an argument may stand that is none itself."""

_CONSTANT = ("string", "text", "number", "value")


def levels(tree: Node, bound: Container[str], natives: Container[str]) -> int:
    """How many levels of a result, below the top, can hold anything but parts of the input.

    *bound* are the names that the query binds itself, *natives* those of the functions.
    """
    return min(_Levels(bound, natives).of(tree), EVERYWHERE)


@dataclass(frozen=True, slots=True)
class _Levels:
    bound: Container[str]
    natives: Container[str]

    def of(self, node: Node) -> int:
        """The levels of what a node gives; whether the value itself is JSON, they do not tell."""
        if node.group is not None or (node.keep_array and node.type != "path"):
            return EVERYWHERE
        match node.type:
            case "string" | "text" | "number" | "value" | "binary":
                return 0
            case "variable" if node.value not in self.bound:
                return 0
            case "path" if all(
                step.type in _SELECTING and not step.group and not (step.focus or step.index)
                for step in node.steps
            ):
                first = 0 if node.steps[0].type != "variable" else self.of(node.steps[0])
                sorts = any(step.type == "sort" for step in node.steps)
                return max(first, 1) if sorts else first  # of nothing, a filter may leave items
            case "unary" if node.value == "[":
                return 1 + max(map(self.of, node.expressions), default=0)
            case "unary" if node.value == "{":
                return 1 + max((self.of(value) for _, value in node.lhs_object), default=0)
            case "unary":
                return 0
            case "condition":
                branches = [node.then] if node._else is None else [node.then, node._else]
                return max(map(self.of, branches))
            case "function" if node.procedure.type == "variable":
                return self._of_call(node.procedure.value, node.arguments)
        return EVERYWHERE

    def _of_call(self, name: str, arguments: list[Node]) -> int:
        if name in self.bound:
            return EVERYWHERE
        if name in _SCALAR:
            return 0
        inner = [self.of(each) for each in arguments]
        if name.partition("_")[0] in PLAIN and not any(map(_made, arguments, inner)):
            return 0
        if name in _PASSING and inner:
            return inner[0]
        if name in _WRAPPING:
            return max(map(self._wrapped, arguments, inner), default=0)
        if name == "merge" and inner:
            listed = arguments[0].type == "unary" and arguments[0].value == "["
            return max(inner[0] - 1, 0) if listed else inner[0]
        return EVERYWHERE

    def _wrapped(self, node: Node, levels: int) -> int:
        """The levels of an array around a value that is perhaps none; what was found is JSON."""
        found = node.type == "path" or (node.type == "variable" and node.value not in self.natives)
        return levels if found and not levels else levels + 1


def _made(node: Node, levels: int) -> bool:
    """Whether a value may hold anything but JSON; constants do not."""
    if node.type == "unary" and node.value == "{":
        values = [value for _, value in node.lhs_object]
        return node.group is not None or any(each.type not in _CONSTANT for each in values)
    return levels > 0
