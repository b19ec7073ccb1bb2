"""States that ask nobody: Pass and Fail become transformations, others nothing."""

from typing import Final

from asl.core.codes import is_anonymous
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.codemie.config import END
from asl.dialects.codemie.writing.machine import Machine, State, copies, passes
from asl.dialects.codemie.writing.results import key_of
from asl.dialects.codemie.writing.tasks import stored
from asl.dialects.codemie.writing.texts import filled
from asl.dialects.expressions import computes

__all__ = ["fail", "failing", "pass_", "skipped", "succeed"]

_SKIPPED: Final = {
    "Wait": ("L-WAIT", "no state waits, or fails because it cannot"),
    "Checkpoint": ("L-CHECKPOINT", "the platform keeps runs by itself"),
}


def pass_(machine: Machine, name: str, state: State) -> None:
    """Write a Pass that makes something."""
    if copies(state):
        _copy(machine, name, state)
        return
    if passes(state):
        if state.get("ResultPath", "$") not in ("$", None):
            where = machine.at(name, "ResultPath")
            machine.lost("L-TRANSFORM", "no copy of the data stands within it", where)
        return
    if "Output" in state:
        machine.lost(
            "L-JSONATA",
            "a workflow has no JSONata",
            machine.at(name, "Output"),
            "nothing is written",
        )
    given = state.get("Result", state.get("Parameters"))
    where = machine.at(name, "Result" if "Result" in state else "Parameters")
    mappings: list[Json] = []
    field = key_of(state)
    if field is not None and "Result" in state and type(given) is not dict:
        constant = {"output_field": field, "type": "constant", "value": given}
        machine.node(name, {"mappings": [constant]}, machine.going(name, state, {}))
        return
    if type(given) is dict:
        mappings = [
            _mapping(machine, key, each, where, "Result" in state) for key, each in given.items()
        ]
    elif given is not None or "Result" in state:
        mappings = [{"output_field": "value", "type": "constant", "value": given}]
        message = "what a transformation gives is an object"
        machine.lost("L-DEEP", message, where, "under 'value'")
    to = machine.going(name, state, stored(machine, name, state))
    machine.node(name, {"mappings": mappings}, to)


def _copy(machine: Machine, name: str, state: State) -> None:
    """Write a Pass that puts a part of the data under a key."""
    copied: list[Json] = []
    way = machine.way(state["InputPath"])
    if way:
        path = ".".join(way)
        copied = [{"output_field": key_of(state), "type": "extract", "source_path": path}]
    else:
        message = "no transformation reads the item of an iteration as a whole"
        machine.lost("L-TRANSFORM", message, machine.at(name, "InputPath"))
    machine.node(name, {"mappings": copied}, machine.going(name, state, {}))


def _mapping(
    machine: Machine, key: str, value: Json, where: str, constant: bool
) -> dict[str, Json]:
    """Return what gives one field of a Pass."""
    plain = key if constant else key.removesuffix(".$")
    if constant or (plain == key and not computes(value, jsonata=False)):
        return {"output_field": plain, "type": "constant", "value": value}
    way = machine.way(value) if plain != key else None
    if way:
        return {"output_field": plain, "type": "extract", "source_path": ".".join(way)}
    text = filled(machine, value, f"{where}/{escape(key)}", dynamic=plain != key)
    return {"output_field": plain, "type": "template", "template": text}


def fail(machine: Machine, name: str, state: State) -> None:
    """Write a Fail as a transformation that needs what nobody gives."""
    error, cause = str(state.get("Error", "Failed")), str(state.get("Cause", ""))
    machine.lost(
        "L-FAIL",
        "no state fails on purpose",
        machine.at(name),
        "a transformation that cannot succeed",
    )
    told = [cause] if is_anonymous(error) else [error, cause]
    machine.node(name, _never(": ".join(filter(None, told)) or error), {"state_id": END})


def failing(machine: Machine, name: str, error: str) -> str:
    """Put a state that fails behind the one that is being written; return its name."""
    workflow = machine.workflow
    id = workflow.id(name)
    machine.behind.append(workflow.transforming(id, _never(error), {"state_id": END}))
    return id


def _never(needed: str) -> dict[str, Json]:
    return {"mappings": [], "on_error": "fail", "output_schema": {"required": [needed]}}


def skipped(machine: Machine, name: str, state: State) -> None:
    """Report a state that has no counterpart; transitions to it lead on."""
    code, message = _SKIPPED[state["Type"]]
    machine.lost(code, message, machine.at(name), "it is left out")


def succeed(machine: Machine, name: str, state: State) -> None:
    """Write nothing: a transition to it ends the run."""
