"""Events in the form in which AWS's `GetExecutionHistory` gives them."""

import re

from asl.core.values import Json, compact
from asl.engine.events import Event
from asl.expr.times import format_timestamp

__all__ = ["exported"]

_OF_STATE = re.compile(r"[A-Z][a-z]+State(Entered|Exited)")
_BESIDE = ("itemCounts", "failures")
"""Details of a distributed Map that AWS has in its API for Map runs, not in the history."""
_TEXTS = ("input", "output")
_WHOLE = {"truncated": False}


def exported(event: Event) -> dict[str, Json]:
    """Return one event; JSON values in it are texts of compact JSON, as AWS has them.

    Types that AWS has not are written by the same rule.
    """
    written: dict[str, Json] = {
        "timestamp": format_timestamp(event.timestamp),
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
    }
    details = _details(event.details)
    if details:
        written[_key(event.type)] = details
    return written


def _key(kind: str) -> str:
    of_state = _OF_STATE.fullmatch(kind)
    name = kind if of_state is None else f"State{of_state.group(1)}"
    return f"{name[0].lower()}{name[1:]}EventDetails"


def _details(details: dict[str, Json]) -> dict[str, Json]:
    written: dict[str, Json] = {}
    for name, value in details.items():
        if name in _BESIDE:
            continue
        if name in _TEXTS:
            written |= {name: compact(value), f"{name}Details": _WHOLE}
        elif name == "parameters":
            written[name] = compact(value)
        elif name == "assignedVariables":
            texts = {variable: compact(given) for variable, given in value.items()}
            written |= {name: texts, "assignedVariablesDetails": _WHOLE}
        else:
            written[name] = value
    return written
