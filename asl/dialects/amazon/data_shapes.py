"""Which states of a machine are sure to get an object as their input."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from asl.checks.workflow import handlers, objects

__all__ = ["states_with_objects"]

_PASSING: Final = ("Choice", "Wait", "Checkpoint")
"""Types of states whose output is their input."""


def states_with_objects(machine: Mapping[str, Any], language: str) -> frozenset[str]:
    """Return the states whose input is an object whenever that of the machine is one.

    Args:
        machine: The machine.
        language: Query language of states that name none.
    """
    states = machine["States"]
    exits = {
        name: [*_exits(state, state.get("QueryLanguage", language) == "JSONata")]
        for name, state in states.items()
    }
    other: set[str] = set()
    changed = True
    while changed:
        found = {
            target
            for name, listed in exits.items()
            for target, is_object in listed
            if is_object is False or (is_object is None and name in other)
        }
        changed = not found <= other
        other |= found
    return frozenset(states.keys() - other)


def _exits(state: Mapping[str, Any], jsonata: bool) -> Iterator[tuple[str, bool | None]]:
    """Yield where a state leads, and whether there is an object; None if it is its input."""
    output = _queried(state) if jsonata else _placed(state)
    for field in ("Next", "Default"):
        if field in state:
            yield state[field], output
    for _, rule in objects(state, "Choices"):
        if "Next" in rule:
            yield rule["Next"], _queried(rule) if "Output" in rule else output
    for _, catcher in handlers(state, "Catch"):
        # Without a ResultPath or an Output the error is the data, which is an object.
        shape = _queried(catcher) if "Output" in catcher else True
        yield catcher["Next"], None if catcher.get("ResultPath", "") is None else shape


def _queried(state: Mapping[str, Any]) -> bool | None:
    """Return whether a state or a rule in JSONata makes an object."""
    if "Output" in state:
        output = state["Output"]
        return isinstance(output, dict) or str(output).startswith("{% $merge([$states.input, ")
    return None if state.get("Type") in (*_PASSING, "Pass") else False


def _placed(state: Mapping[str, Any]) -> bool | None:
    """Return whether a state in JSONPath makes an object."""
    if state.get("OutputPath", "$") not in ("$", None):
        return False
    kind, path = state["Type"], state.get("ResultPath", "$")
    through = None if state.get("InputPath", "$") == "$" else False
    if "OutputPath" in state and state["OutputPath"] is None:
        return True
    if kind in _PASSING and "ResultPath" not in state:
        return through
    if path is None:
        return None
    if path != "$" or (kind == "Approval" and "ResultPath" not in state):
        return True
    if kind == "Pass":
        made = state.get("Result", state.get("Parameters"))
        return through if made is None else isinstance(made, dict)
    return isinstance(state.get("ResultSelector"), dict)
