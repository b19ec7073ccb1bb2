"""JSONata expressions for the data of an execution, and for changes of it."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from asl.core.values import Json
from asl.expr.jsonata.javascript import literal

__all__ = [
    "FIRST",
    "INPUT",
    "LATER",
    "PREVIOUS",
    "RESULT",
    "DataScope",
    "Part",
    "call",
    "merged",
    "path",
    "record",
]

INPUT: Final = "$states.input"
RESULT: Final = "$states.result"
PREVIOUS: Final = f"{INPUT}.previous_step"
_WORDS: Final = frozenset(("and", "or", "in", "function", "true", "false", "null"))


class DataScope(NamedTuple):
    """Expressions for the parts of the data in front of a state."""

    data: str
    context: str
    steps: str


LATER: Final = DataScope(INPUT, f"{INPUT}.context", f"{INPUT}.steps")
"""The data in front of a state behind others."""
FIRST: Final = DataScope(
    f"$flujo_data({INPUT})", f"$flujo_data({INPUT}).context", f"$flujo_data({INPUT}).steps"
)
"""The data in front of the first state, which gets the input of the execution."""


def path(base: str, *names: str) -> str:
    """Return the expression of a member of an object."""
    for name in names:
        if name.isascii() and name.isidentifier() and name not in _WORDS:
            base = f"{base}.{name}"
        elif "`" in name or not name:
            base = f"$lookup({base}, {literal(name)})"
        else:
            base = f"{base}.`{name}`"
    return base


def record(members: Mapping[str, str]) -> str:
    """Return the expression of an object."""
    return "{" + ", ".join(f"{literal(key)}: {value}" for key, value in members.items()) + "}"


Part: TypeAlias = str | Mapping[str, str]
"""An expression of an object, or its members."""


def merged(parts: Sequence[Part]) -> str:
    """Return the expression of objects that are merged; members of neighbours are joined."""
    shown: list[str] = []
    members: dict[str, str] = {}
    for part in parts:
        if isinstance(part, str):
            shown += [record(members)] if members else []
            members = {}
            shown += [part] if part != "{}" else []
        else:
            members |= part
    shown += [record(members)] if members else []
    return f"$merge([{', '.join(shown)}])" if len(shown) > 1 else "".join(shown) or "{}"


def call(function: str, *arguments: Json) -> str:
    """Return the call of a function of the dialect; None at the end is left out."""
    given = [*arguments]
    while given and given[-1] in (None, {}):
        given.pop()
    return f"$flujo_{function}({', '.join(map(str, given))})"
