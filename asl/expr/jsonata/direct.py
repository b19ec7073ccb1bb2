"""Queries that are one call of a dialect's function on the input and constants: called at once.

What such a function gives is JSON, and its constants have been held against its signature before.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from inspect import unwrap
from typing import Any, Final

from asl.core.values import Json
from asl.expr.jsonata.calls import Native
from asl.expr.jsonata.faults import QueryFault
from asl.expr.jsonata.functions.dialects import PLAIN
from asl.expr.jsonata.values import UNDEFINED, Undefined

__all__ = ["Direct", "Maker", "direct"]

Node = Any
Direct = Callable[[Json], "Json | Undefined"]
"""`$states` to the result, UNDEFINED for what has to be evaluated as a query."""
Maker = Callable[[Sequence[str]], Direct]
"""The texts that were lifted out of a query to how it is called."""

_BEYOND: Final = object()


def direct(tree: Node, natives: Mapping[str, Native]) -> Maker | None:
    """Return how queries are called that are a call of a function, None for any others."""
    if tree.type != "function" or tree.predicate or tree.group is not None or not tree.arguments:
        return None
    name = tree.procedure.value if tree.procedure.type == "variable" else None
    native = natives.get(name) if type(name) is str and name.partition("_")[0] in PLAIN else None
    first, *rest = tree.arguments
    given: list[Any] = [{}, *(_constant(each, defaultdict(str)) for each in rest)]
    if native is None or not _is_input(first) or any(each is _BEYOND for each in given):
        return None
    try:
        taken = native.signature.validate(given, UNDEFINED)
    except QueryFault:
        return None
    if taken[: len(given)] != given or any(each is not UNDEFINED for each in taken[len(given) :]):
        return None  # something is completed
    call = unwrap(native.call)

    def make(texts: Sequence[str]) -> Direct:
        constants = [_constant(each, texts) for each in rest]

        def called(states: Json) -> Json | Undefined:
            data = states.get("input") if type(states) is dict else None
            return call(data, *constants) if type(data) is dict else UNDEFINED

        return called

    return make


def _is_input(node: Node) -> bool:
    """Whether a node is `$states.input`."""
    if node.type != "path" or _grows(node) or len(node.steps) != 2:
        return False
    states, member = node.steps
    named = states.type == "variable" and member.type == "name"
    return (
        named
        and (states.value, member.value) == ("states", "input")
        and not (_grows(states) or _grows(member))
    )


def _grows(node: Node) -> bool:
    return bool(node.predicate or node.stages or node.group or node.focus or node.index)


def _constant(node: Node, texts: Sequence[str] | Mapping[int, str]) -> Any:
    """Return the value of a constant, `_BEYOND` for anything else; numbers are left out."""
    if node.predicate or node.group is not None:
        return _BEYOND
    if node.type == "text":
        return texts[node.value]
    if node.type in ("string", "value"):
        return node.value
    if node.type != "unary" or node.value != "{":
        return _BEYOND
    found: dict[str, Any] = {}
    for key, each in node.lhs_object:
        value = _constant(each, texts)
        if key.type != "string" or key.value in found or value is _BEYOND:
            return _BEYOND
        found[key.value] = value
    return found
