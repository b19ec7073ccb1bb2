"""Templates whose parameters have no values: where one stands for more than a value."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.pointers import escape
from asl.states.machines import nested_machines

__all__ = ["unfilled"]

_PARTS: Final = (
    *("Branches", "Choices", "Retry", "Catch", "Options", "Consensus", "Communication"),
    *("ItemProcessor", "Iterator"),
)
"""The fields of states whose members are read by whoever writes a state in another language."""


def unfilled(machine: Mapping[str, Any], pointer: str = "") -> Iterator[str]:
    """Yield the places of states, machines, rules and handlers that only a parameter knows."""
    states = machine["States"]
    if type(states) is not dict:
        yield f"{pointer}/States"
        return
    for name, state in states.items():
        place = f"{pointer}/States/{escape(name)}"
        if type(state) is not dict or _is_open(state["Type"]):
            yield place
            continue
        yield from (f"{place}/{field}" for field in _PARTS if _is_open(state.get(field)))
        for steps, inner in nested_machines(state):
            yield from unfilled(inner, place + "".join(f"/{step}" for step in steps))


def _is_open(value: Any) -> bool:
    parts = value if type(value) is list else (value,)
    return any(type(part) is str and "{{" in part for part in parts)
