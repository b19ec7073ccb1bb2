"""Values that may not be there, or may not be computed: the state language fails, others do not."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.core.diagnostics import Finding
from asl.core.pointers import escape
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["missing", "reads"]

_VARIABLE: Final = re.compile(r"\$[A-Za-z_]")
_HARMLESS: Final = frozenset(("Comment", "Agent", "Resource", "Type", "Next"))


def missing(value: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what there is to say, once, of a document in which a value may be missing.

    It stands where the first such value is read.
    """
    place = next(_read(value, ""), None)
    if place is not None:
        message = "here, and wherever data is read, what is missing fails no run there"
        hint = "it is nothing, null, or left as it stands"
        yield Finding("L-MISSING", message, place, hint, at_key=True)


def _read(machine: Mapping[str, Any], pointer: str) -> Iterator[str]:
    """Yield where the states of a machine read data that may not be there."""
    for name, state in machine["States"].items():
        place = f"{pointer}/States/{escape(name)}"
        inner = [*nested_machines(state)]
        within = {steps[0] for steps, _ in inner}
        for field, each in state.items():
            if field not in _HARMLESS and field not in within and reads(each):
                yield f"{place}/{escape(field)}"
        if "Choices" in state and "Default" not in state and state["Type"] == "Choice":
            yield f"{place}/Choices"
        for steps, each in inner:
            yield from _read(each, place + "".join(f"/{step}" for step in steps))


def reads(value: Json) -> bool:
    """Whether a field has a path, an intrinsic function or a query."""
    if isinstance(value, dict):
        return any(key.endswith(".$") or reads(each) for key, each in value.items())
    if isinstance(value, list):
        return any(map(reads, value))
    if not isinstance(value, str):
        return False
    return value.startswith(("$.", "$[", "$$.", "{%")) or _VARIABLE.match(value) is not None
