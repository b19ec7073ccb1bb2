"""Every intrinsic function: one row each (Specification 5.2, 5.3), and those of dialects.

The JSONata function `$steps_join` of a dialect `steps` is `Steps.Join` for documents in JSONPath.
The functions of a dialect are imported on first use; AWS has no such functions.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from asl.core.dialect_parts import DialectPart
from asl.core.errors import StateError
from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.expr.intrinsics import containers, numeric, strings

__all__ = ["dialect_function", "function", "names"]

Kinds: TypeAlias = frozenset[str]
"""JSON type names that an argument may have."""

ARRAY, NUMBER, OBJECT, STRING, BOOLEAN, NULL = (
    frozenset({name}) for name in ("array", "number", "object", "string", "boolean", "null")
)
ANY = ARRAY | NUMBER | OBJECT | STRING | BOOLEAN | NULL


class IntrinsicFunction(NamedTuple):
    """One intrinsic function.

    `call` takes the profile if `needs_profile`, then the frame if `needs_frame`, then the
    arguments. `takes` lists the types of each argument; the last entry applies to all further ones.
    """

    name: str
    call: Callable[..., Json]
    takes: tuple[Kinds, ...]
    minimum: int
    maximum: int | None
    agent_native: bool = False
    needs_profile: bool = False
    needs_frame: bool = False
    counted: bool = False
    """Whether its work grows with the sizes of its arguments and of its result."""
    missing_is_null: bool = False
    """Whether a path argument without a value counts as null."""


def _function(
    name: str,
    call: Callable[..., Json],
    *takes: Kinds,
    minimum: int | None = None,
    variadic: bool = False,
    agent_native: bool = False,
    needs_profile: bool = False,
    needs_frame: bool = False,
    counted: bool = False,
    missing_is_null: bool = False,
) -> IntrinsicFunction:
    return IntrinsicFunction(
        f"States.{name}",
        call,
        takes,
        len(takes) if minimum is None else minimum,
        None if variadic else len(takes),
        agent_native,
        needs_profile,
        needs_frame,
        counted,
        missing_is_null,
    )


_ROWS = (
    _function(
        "Format",
        strings.format_,
        STRING,
        ANY,
        minimum=1,
        variadic=True,
        needs_profile=True,
        counted=True,
    ),
    _function("StringToJson", containers.string_to_json, STRING, needs_profile=True, counted=True),
    _function("JsonToString", containers.json_to_string, ANY, needs_profile=True, counted=True),
    _function("Array", containers.make, ANY, minimum=0, variadic=True),
    _function(
        "ArrayPartition", containers.partition, ARRAY, NUMBER, needs_profile=True, counted=True
    ),
    _function(
        "ArrayContains", containers.contains, ARRAY, ANY, needs_profile=True, needs_frame=True
    ),
    _function("ArrayRange", containers.span, NUMBER, NUMBER, NUMBER, minimum=2, needs_profile=True),
    _function("ArrayGetItem", containers.get_item, ARRAY, NUMBER, needs_profile=True),
    _function("ArrayLength", containers.length, ARRAY),
    _function("ArrayUnique", containers.unique, ARRAY, needs_profile=True, needs_frame=True),
    _function("Base64Encode", strings.base64_encode, STRING),
    _function("Base64Decode", strings.base64_decode, STRING, needs_profile=True),
    _function("Hash", strings.hash_, ANY, STRING, needs_profile=True, needs_frame=True),
    _function(
        "JsonMerge",
        containers.json_merge,
        OBJECT,
        OBJECT,
        BOOLEAN,
        needs_profile=True,
        counted=True,
    ),
    _function("MathAdd", numeric.add, NUMBER, NUMBER, variadic=True),
    _function(
        "MathRandom",
        numeric.random,
        NUMBER,
        NUMBER,
        NUMBER,
        minimum=0,
        needs_profile=True,
        needs_frame=True,
    ),
    _function("StringSplit", strings.split, STRING, STRING, needs_frame=True),
    _function("UUID", strings.uuid, needs_frame=True),
    _function(
        "ArrayConcat",
        containers.concat,
        ANY,
        variadic=True,
        agent_native=True,
        needs_profile=True,
        counted=True,
    ),
    _function("MathSubtract", numeric.subtract, NUMBER, NUMBER, agent_native=True),
    _function("MathMultiply", numeric.multiply, NUMBER, NUMBER, agent_native=True),
    _function(
        "TokenCount",
        numeric.token_count,
        ANY,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Truncate",
        numeric.truncate,
        ANY,
        NUMBER,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Merge",
        containers.merge,
        OBJECT | NULL,
        variadic=True,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Pick", containers.pick, OBJECT, STRING, variadic=True, agent_native=True, counted=True
    ),
    _function(
        "Omit", containers.omit, OBJECT, STRING, variadic=True, agent_native=True, counted=True
    ),
    _function("CurrentCost", numeric.current_cost, agent_native=True, needs_frame=True),
    _function("CurrentTokens", numeric.current_tokens, agent_native=True, needs_frame=True),
    _function("RemainingBudget", numeric.remaining_budget, agent_native=True, needs_frame=True),
    _function(
        "EstimateCost",
        numeric.estimate_cost,
        ANY,
        STRING,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Coalesce", containers.coalesce, ANY, variadic=True, agent_native=True, missing_is_null=True
    ),
)

FUNCTIONS: Mapping[str, IntrinsicFunction] = MappingProxyType({row.name: row for row in _ROWS})


ALLOWED_IN_ERROR_PATH = frozenset(
    {
        "States.Format",
        "States.JsonToString",
        "States.ArrayGetItem",
        "States.Base64Encode",
        "States.Base64Decode",
        "States.Hash",
        "States.UUID",
    }
)
"""The outermost functions that `ErrorPath` and `CausePath` may call (Specification 5.1)."""


FUNCTIONS_OF_DIALECTS = DialectPart[Callable[[], Mapping[str, object]]]("functions")
_INNER = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def names(namespace: str) -> tuple[str, ...]:
    """Return the functions of the dialect with this namespace, none for an unknown one."""
    functions = FUNCTIONS_OF_DIALECTS.of_namespace(namespace)
    return () if functions is None else tuple(f"{namespace}.{_camel(each)}" for each in functions())


def _camel(name: str) -> str:
    """Return the name of a function after its namespace: `prompt_to` is `PromptTo`."""
    return "".join(part.capitalize() for part in name.split("_"))


@lru_cache(maxsize=512)
def dialect_function(name: str) -> IntrinsicFunction | None:
    """Return the function of this name; None for one that no dialect has."""
    from asl.expr.jsonata.functions.dialects import dialect_functions

    namespace, _, own = name.partition(".")
    if name not in names(namespace):
        return None
    dialect = namespace.lower()
    native = dialect_functions(dialect)[f"{dialect}_{_INNER.sub('_', own).lower()}"]
    parameters = native.signature.parameters
    needed = sum(not each.pattern.endswith("?") for each in parameters)
    return IntrinsicFunction(
        name, _called(name, native), (ANY,) * len(parameters), needed, len(parameters), True
    )


def _called(name: str, native: Any) -> Callable[..., Json]:
    """Return a JSONata function as an intrinsic function, with the same argument checks."""
    from asl.expr.jsonata.faults import QueryFault
    from asl.expr.jsonata.javascript import UNDEFINED

    def called(*arguments: Json) -> Json:
        try:
            checked = native.signature.validate(list(arguments), UNDEFINED)
        except QueryFault as fault:
            raise StateError("States.IntrinsicFailure", f"{name}: {fault}") from None
        found: Json = native.call(*checked)
        return found

    return called


def function(name: str) -> IntrinsicFunction | None:
    """Return the function of this name, None for an unknown one."""
    return FUNCTIONS.get(name) if name.startswith("States.") else dialect_function(name)
