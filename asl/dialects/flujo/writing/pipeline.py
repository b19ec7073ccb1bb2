"""A line of states as a list of steps."""

from collections.abc import Mapping
from typing import Any

from asl.core.values import Json
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.states import Steps, steps_of_line

__all__ = ["is_line", "written_line"]

_PLAIN = ("Task", "Pass", "Parallel", "Map", "Succeed")


def is_line(machine: Mapping[str, Any]) -> bool:
    """Whether states follow each other, and each is given what the one before came to."""
    states, name = machine["States"], machine["StartAt"]
    seen: set[str] = set()
    while isinstance(name, str) and name in states and name not in seen:
        seen.add(name)
        state = states[name]
        if state["Type"] not in _PLAIN or "Catch" in state or not _moves(state):
            return False
        name = state.get("Next")
    return name not in seen and len(seen) == len(states)


def _moves(state: Mapping[str, Any]) -> bool:
    """Whether the result of a state is all that is left, and its input all that there is."""
    keys = {"Parameters", "Arguments", "Output", "ResultSelector", "Result", "Assign"}
    paths = ("InputPath", "ResultPath", "OutputPath")
    return (
        state["Type"] != "Map"
        and not state.keys() & keys
        and all(state.get(path, "$") == "$" for path in paths)
    )


def written_line(value: Mapping[str, Any], losses: Losses) -> list[Json]:
    """Return the steps of a document that is one line."""
    steps = Steps(losses, value.get("QueryLanguage", "JSONPath"), line=True)
    made = steps_of_line(value, "", steps)
    if made:
        losses.add("FL-OUTPUT", "a run comes to its output and its context", "")
        message = "an agent is given its input beside the context, not as its parameters"
        losses.add("FL-PAYLOAD", message, "")
    return made
