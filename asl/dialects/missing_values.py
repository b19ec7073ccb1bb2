"""The loss of a document in which a value may be missing that another language does not require."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.pointers import escape
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["missing_value_loss"]

_VARIABLE: Final = re.compile(r"\$[A-Za-z_]")
_HARMLESS: Final = frozenset(("Comment", "Agent", "Resource", "Type", "Next"))


def missing_value_loss(value: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a loss, once, for a document in which a value may be missing.

    Its place is the first such value.
    """
    place = next(_reading_places(value, ""), None)
    if place is not None:
        message = "a missing value fails no run there, here and wherever data is read"
        hint = "it becomes empty, null, or stays unchanged"
        yield Finding("L-MISSING", message, place, hint, at_key=True)


def _reading_places(machine: Mapping[str, Any], pointer: str) -> Iterator[str]:
    """Yield where the states of a machine read data that may not be there."""
    for name, state in machine["States"].items():
        place = f"{pointer}/States/{escape(name)}"
        inner = [*nested_machines(state)]
        within = {steps[0] for steps, _ in inner}
        for key, each in state.items():
            if key not in _HARMLESS and key not in within and _reads_data(each):
                yield f"{place}/{escape(key)}"
        if "Choices" in state and "Default" not in state and state["Type"] == "Choice":
            yield f"{place}/Choices"
        for steps, each in inner:
            yield from _reading_places(each, place + "".join(f"/{step}" for step in steps))


def _reads_data(value: Json) -> bool:
    """Whether a field has a path, an intrinsic function or a query."""
    if isinstance(value, dict):
        return any(key.endswith(".$") or _reads_data(each) for key, each in value.items())
    if isinstance(value, list):
        return any(map(_reads_data, value))
    if not isinstance(value, str):
        return False
    return value.startswith(("$.", "$[", "$$.", "{%")) or _VARIABLE.match(value) is not None
