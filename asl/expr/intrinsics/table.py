"""Every intrinsic function: one row each (Specification 5.2, 5.3)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from asl.core.values import Json
from asl.expr.intrinsics import agent, arrays, numeric, objects, strings

Kinds: TypeAlias = frozenset[str]
"""JSON type names that an argument may have."""

ARRAY, NUMBER, OBJECT, STRING, BOOLEAN, NULL = (
    frozenset({name}) for name in ("array", "number", "object", "string", "boolean", "null")
)
ANY = ARRAY | NUMBER | OBJECT | STRING | BOOLEAN | NULL


class Function(NamedTuple):
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
) -> Function:
    return Function(
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
    _function("StringToJson", objects.string_to_json, STRING, needs_profile=True, counted=True),
    _function("JsonToString", objects.json_to_string, ANY, needs_profile=True, counted=True),
    _function("Array", arrays.make, ANY, minimum=0, variadic=True),
    _function("ArrayPartition", arrays.partition, ARRAY, NUMBER, needs_profile=True, counted=True),
    _function("ArrayContains", arrays.contains, ARRAY, ANY, needs_profile=True, needs_frame=True),
    _function("ArrayRange", arrays.span, NUMBER, NUMBER, NUMBER, minimum=2, needs_profile=True),
    _function("ArrayGetItem", arrays.get_item, ARRAY, NUMBER, needs_profile=True),
    _function("ArrayLength", arrays.length, ARRAY),
    _function("ArrayUnique", arrays.unique, ARRAY, needs_profile=True, needs_frame=True),
    _function("Base64Encode", strings.base64_encode, STRING),
    _function("Base64Decode", strings.base64_decode, STRING, needs_profile=True),
    _function("Hash", strings.hash_, ANY, STRING, needs_profile=True, needs_frame=True),
    _function(
        "JsonMerge", objects.json_merge, OBJECT, OBJECT, BOOLEAN, needs_profile=True, counted=True
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
        arrays.concat,
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
        agent.token_count,
        ANY,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Truncate",
        agent.truncate,
        ANY,
        NUMBER,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Merge",
        objects.merge,
        OBJECT | NULL,
        variadic=True,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function("Pick", objects.pick, OBJECT, STRING, variadic=True, agent_native=True, counted=True),
    _function("Omit", objects.omit, OBJECT, STRING, variadic=True, agent_native=True, counted=True),
    _function("CurrentCost", agent.current_cost, agent_native=True, needs_frame=True),
    _function("CurrentTokens", agent.current_tokens, agent_native=True, needs_frame=True),
    _function("RemainingBudget", agent.remaining_budget, agent_native=True, needs_frame=True),
    _function(
        "EstimateCost",
        agent.estimate_cost,
        ANY,
        STRING,
        agent_native=True,
        needs_profile=True,
        needs_frame=True,
    ),
    _function(
        "Coalesce", objects.coalesce, ANY, variadic=True, agent_native=True, missing_is_null=True
    ),
)

FUNCTIONS: Mapping[str, Function] = MappingProxyType({row.name: row for row in _ROWS})


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
