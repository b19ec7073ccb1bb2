"""What stands behind a machine that may fail: steps that ask in which state it has ended.

A blueprint has no other way to fail a run at its end. Said again, the end states succeed and fail
by themselves, so a document that goes there and back has nothing around it that it had not before.
"""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.plain.terms import INPUT, Call, Literal, Operation, Way, term_of
from asl.expr.jsonata.javascript import literal

__all__ = ["NO_BRANCH", "unframed"]

NO_BRANCH: Final = "Flujo.NoBranch"
"""The error of a run whose machine has ended in a state that fails it."""
_ASKED: Final = "{{ context.current_state }}"


def unframed(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document in which the end states of a framed machine end the run themselves."""
    states: dict[str, Any] = {**value["States"]}
    for name, state in value["States"].items():
        match term_of(state["Output"]) if "Output" in state else None:
            case Call("left", (_, *ends)) if state.get("Next") in states:
                succeeding = _succeeding(value["States"], state["Next"])
                end = ends[0].value if ends and isinstance(ends[0], Literal) else None
                if succeeding is not None:
                    states[name] = _ended(end) if end in succeeding else _failed(end)
    return {**value, "States": states}


def _ended(end: Json) -> dict[str, Json]:
    return {"Type": "Succeed", "Output": query(f"$flujo_ended($states.input, {literal(end)})")}


def _failed(end: Json) -> dict[str, Json]:
    cause = "" if end is None else f"No branch found for {end}"
    return {"Type": "Fail", "Error": NO_BRANCH, "Cause": cause}


def _succeeding(states: Mapping[str, Any], name: str) -> set[Json] | None:
    """Return the ends of the machine in front of a state that succeed, None if it asks nothing."""
    match term_of(states[name].get("Output", "")):
        case Call("done", (Way(("input",)), _, Call("stringify", (Call("text") as text,)))):
            asks = text.literal(1) == _ASKED
        case _:
            return None
    choice = states.get(states[name].get("Next"), {})
    if not asks or choice.get("Type") != "Choice" or "Output" in choice:
        return None
    if states[choice["Default"]].get("Error") != NO_BRANCH:
        return None
    found: set[Json] = set()
    for rule in choice["Choices"]:
        match term_of(rule["Condition"]):
            case Operation("=", Call("key", (_, Literal("previous_step"), *_)), Literal(end)):
                if "Output" in rule or not _ends(states, rule["Next"]):
                    return None
                found.add(end)
            case _:
                return None
    return found


def _ends(states: Mapping[str, Any], name: str) -> bool:
    """Whether a state does nothing, and then the run has succeeded."""
    match term_of(states[name].get("Output", "")):
        case Call("close", (Call("done", (given, _, Way(("input", "previous_step")), *_)), _)):
            last = states.get(states[name].get("Next"), {})
            return given == INPUT and last.get("Type") == "Succeed"
    return False
