"""Functions of dialects, `$steps_join` of a dialect `steps`, and direct calls of them.

Documents converted from a dialect use them; AWS has no such functions. They are imported when a
query first uses the dialect. A query that consists of one call is not evaluated: the function is
called directly with data, constants or results of other such calls. Constant arguments are checked
against the signature once, all others at each call.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from inspect import unwrap
from typing import Any, Final

from asl.core.dialect_parts import DialectFunction, DialectPart
from asl.core.values import Json
from asl.expr.jsonata.calls import NativeFunction, parse_parameters
from asl.expr.jsonata.faults import QueryFault
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.jsonata.javascript import UNDEFINED, Undefined, Value

__all__ = [
    "DirectCall",
    "DirectCallFactory",
    "dialect_functions",
    "direct_call",
    "function_names",
    "is_function",
    "named_functions",
]

FUNCTIONS: Final = DialectPart[Callable[[], Mapping[str, DialectFunction]]]("functions")


@lru_cache(maxsize=64)
def dialect_functions(dialect: str) -> Mapping[str, NativeFunction]:
    """Return the functions of a dialect by their names in a query, none for an unknown dialect."""
    functions = FUNCTIONS.of_name(dialect)
    rows = {} if functions is None else functions()
    return {f"{dialect}_{name}": _make_native(f"{dialect}_{name}", rows[name]) for name in rows}


def _functions_of(name: str) -> Mapping[str, NativeFunction]:
    """Return the functions of the dialect that a name belongs to, else none."""
    prefix, mark, _ = name.partition("_")
    return dialect_functions(prefix) if mark else _NONE


_NONE: Final[Mapping[str, NativeFunction]] = {}


def named_functions(names: Iterable[str]) -> dict[str, NativeFunction]:
    """Return the named functions that belong to a dialect."""
    tables = [(name, _functions_of(name)) for name in names]
    return {name: table[name] for name, table in tables if name in table}


def function_names(like: str) -> tuple[str, ...]:
    """Return the built-in functions, and those of the dialect with the prefix of a name."""
    return (*NATIVES, *_functions_of(like))


def is_function(name: str, *, of_dialects: bool) -> bool:
    """Return whether a query may call a function.

    Args:
        name: The name without its `$`.
        of_dialects: Whether functions that belong to a dialect are allowed.
    """
    return name in NATIVES or (of_dialects and name in _functions_of(name))


def _make_native(name: str, function: DialectFunction) -> NativeFunction:
    parameters = parse_parameters(function.signature)
    required = sum(not each.pattern.endswith("?") for each in parameters)
    call = function.call

    @wraps(call)
    def called(*arguments: Value) -> Value:
        for each in arguments:
            if each is UNDEFINED or (isinstance(each, list) and type(each) is not list):
                break
        else:
            return call(*arguments)
        while arguments and arguments[-1] is UNDEFINED:
            arguments = arguments[:-1]
        if len(arguments) < required or UNDEFINED in arguments[:required]:
            return UNDEFINED
        return call(*map(_listed, arguments))

    return NativeFunction(name, function.signature, called, len(parameters), json=function.json)


def _listed(value: Value) -> Value:
    """Return a sequence as a list, since it becomes part of a result."""
    if isinstance(value, list) and type(value) is not list:
        return [None if each is UNDEFINED else each for each in value]
    return value


Node = Any
DirectCall = Callable[[Json], "Json | Undefined"]
"""From `$states` to the result; UNDEFINED if the query must be evaluated."""
DirectCallFactory = Callable[[Sequence[str]], DirectCall]
"""From the lifted texts of a query to its call."""

_BEYOND: Final = object()


def direct_call(tree: Node, natives: Mapping[str, NativeFunction]) -> DirectCallFactory | None:
    """Return how to call the function that makes up a query, None for any other query."""
    native = _native(tree, natives)
    return None if native is None else _on_input(tree, native) or _on_data(tree, natives)


def _native(tree: Node, natives: Mapping[str, NativeFunction]) -> NativeFunction | None:
    """Return the function called by a node, None for any other node."""
    if tree.type != "function" or tree.predicate or tree.group is not None or not tree.arguments:
        return None
    name = tree.procedure.value if tree.procedure.type == "variable" else None
    native = natives.get(name) if type(name) is str else None
    return native if native is not None and native.json else None


def _on_input(tree: Node, native: NativeFunction) -> DirectCallFactory | None:
    """Return how to call a function on the input and constants, None for other arguments."""
    first, *rest = tree.arguments
    given: list[Any] = [{}, *(_constant(each, defaultdict(str)) for each in rest)]
    if _keys(first) != ["input"] or any(each is _BEYOND for each in given):
        return None
    try:
        taken = native.signature.validate(given, UNDEFINED)
    except QueryFault:
        return None
    if taken[: len(given)] != given or any(each is not UNDEFINED for each in taken[len(given) :]):
        return None  # the signature completes an argument
    call = unwrap(native.call)

    def make(texts: Sequence[str]) -> DirectCall:
        constants = [_constant(each, texts) for each in rest]

        def called(states: Json) -> Json | Undefined:
            data = states.get("input") if type(states) is dict else None
            return call(data, *constants) if type(data) is dict else UNDEFINED

        return called

    return make


def _on_data(tree: Node, natives: Mapping[str, NativeFunction]) -> DirectCallFactory | None:
    """Return how to call a function on parts of the data and results of other functions."""
    native = _native(tree, natives)
    if native is None:
        return None
    makers = [_argument(each, natives) for each in tree.arguments]
    if any(each is None for each in makers):
        return None
    call, validate = unwrap(native.call), native.signature.validate

    def make(texts: Sequence[str]) -> DirectCall:
        takes: list[
            DirectCall
        ] = []  # created on first use: most queries of a document are never called

        def called(states: Json) -> Json | Undefined:
            if not takes:
                takes[:] = [each(texts) for each in makers if each is not None]
            given = [take(states) for take in takes]
            for each in given:
                if each is UNDEFINED:
                    return UNDEFINED
            try:
                taken = validate(given, UNDEFINED)
            except QueryFault:
                return UNDEFINED
            return call(*given) if taken is given else UNDEFINED

        return called

    return make


def _argument(node: Node, natives: Mapping[str, NativeFunction]) -> DirectCallFactory | None:
    """Return how to compute an argument, None if it needs the evaluator."""
    if node.type == "function":
        return _on_data(node, natives)
    keys = _keys(node)
    if keys is not None:
        return lambda texts: partial(_at, keys)
    if _constant(node, defaultdict(str)) is _BEYOND:
        return None
    return lambda texts: partial(_fixed, _constant(node, texts))


def _at(keys: Sequence[str], states: Json) -> Json | Undefined:
    for key in keys:
        if type(states) is not dict or key not in states:
            return UNDEFINED
        states = states[key]
    return UNDEFINED if type(states) is list else states  # a path looks into lists


def _fixed(value: Json, states: Json) -> Json:
    return value


def _keys(node: Node) -> list[str] | None:
    """Return `["input", "a"]` for `$states.input.a`, None for anything but such a path."""
    if node.type != "path" or _grows(node) or len(node.steps) < 2:
        return None
    states, *members = node.steps
    if (states.type, states.value) != ("variable", "states") or any(map(_grows, node.steps)):
        return None
    if members[0].value not in ("input", "result", "errorOutput"):
        return None  # the context object is computed on demand
    keys = [each.value for each in members]
    return keys if all(each.type == "name" for each in members) else None


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
