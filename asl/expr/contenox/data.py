"""The data of an execution: the output that moves along, and the variables of the chain.

`input` is the chain's input, `output` what moves along, `eval` what the last task evaluated to
(behind a failure there is `failure` instead, the message of the first one), `variables` what tasks
have left under their names, `vars` what the caller has given for `{{var:name}}`, and `edges` how
often transitions were made, where somebody asks. An execution's own input is the chain's input, or
an object of just `input` and `vars`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json

__all__ = [
    "Data",
    "after",
    "counted",
    "done",
    "failed",
    "input_of",
    "opened",
    "refusal",
    "traversals",
    "variable",
    "variables",
]

Data: TypeAlias = dict[str, Any]


def refusal(cause: str) -> StateError:
    """The error of what is no failure of a task: nobody tries it again or catches it."""
    return StateError("States.Runtime", cause)


def opened(data: Json) -> Data:
    """Return the data of an execution; an input becomes what a chain begins with."""
    if isinstance(data, dict):
        if "input" in data and "output" in data and isinstance(data.get("variables"), dict):
            return data
        if data.keys() == {"input", "vars"} and isinstance(data["vars"], dict):
            given = data["input"]
            return {"input": given, "output": given, "variables": {}, "vars": data["vars"]}
    return {"input": data, "output": data, "variables": {}}


def input_of(data: Json) -> Json:
    """Return what moves along."""
    found: Json = opened(data)["output"]
    return found


def variables(data: Json) -> dict[str, Json]:
    """Return all variables that templates may name."""
    found = opened(data)
    named = {"input": found["input"], **found["variables"]}
    if found["variables"]:
        named["previous_output"] = found["output"]
    return named


def variable(data: Json, name: str) -> Json:
    """Return a variable; one that is not there ends the run."""
    named = variables(data)
    if name not in named:
        raise refusal(f"there is no variable {name!r} yet")
    return named[name]


def done(data: Json, task: str, handled: Mapping[str, Json]) -> Data:
    """Return the data after a task: *handled* is its `output` and what it evaluates to, `eval`."""
    found = opened(data)
    named = {**found["variables"], task: handled["output"]}
    new = {**found, "output": handled["output"], "eval": handled["eval"], "variables": named}
    new.pop("failure", None)  # a success forgets it
    return new


def failed(data: Json, task: str, error: Json, given: Json) -> Data:
    """Return the data behind a task that failed: its input moves on, and the message is kept."""
    message = _message(task, error)
    found = {key: value for key, value in opened(data).items() if key != "eval"}
    found.setdefault("failure", message)
    errors = {"last_error": message, f"{task}_error": message}
    return {**found, "output": given, "variables": {**found["variables"], task: given, **errors}}


def after(data: Json, task: str, error: Json) -> Json:
    """Return the error that ends a run; behind a failure its cause leads with the first one."""
    first = opened(data).get("failure")
    if first is None or not isinstance(error, dict):
        return error
    return {**error, "Cause": f"{first}; then {_message(task, error)}"}


def _message(task: str, error: Json) -> str:
    told = error if isinstance(error, dict) else {}
    return f"task {task}: {told.get('Cause') or told.get('Error') or 'failed'}"


def counted(data: Json, edge: str) -> Data:
    """Return the data after a transition that somebody counts."""
    found = opened(data)
    edges = found.get("edges", {})
    return {**found, "edges": {**edges, edge: edges.get(edge, 0) + 1}}


def traversals(data: Json, edge: str) -> int:
    """Return how often a transition was made."""
    found: int = opened(data).get("edges", {}).get(edge, 0)
    return found
