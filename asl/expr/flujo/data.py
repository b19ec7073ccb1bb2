"""The data of an execution: what moves along, the context, and what steps have come to.

`previous_step` is what moves along, `context` the context, `steps` the outputs of steps by name,
and `resume_input` the latest answer of people. Inside a state machine `output` is what rules see of
the last step, and `machine` what `asl.expr.flujo.machines` keeps. An execution's own input moves
along first, or is an object of just `input` and `context`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.expr.flujo.conditions import Failure, Names, expression
from asl.expr.flujo.templates import Scope, rendered

__all__ = [
    "MAX_PATH",
    "Data",
    "answered",
    "asked_for",
    "closed",
    "decided",
    "done",
    "failed",
    "filled",
    "key",
    "merged_at",
    "names_of",
    "opened",
    "put",
    "result",
    "scope_of",
    "stored",
    "text_of",
    "until",
    "value_at",
]

Data: TypeAlias = dict[str, Any]

MAX_PATH = 50
"""Names of a dotted path."""


def opened(data: Json) -> Data:
    """Return the data of an execution; an input becomes what a pipeline begins with."""
    if isinstance(data, dict):
        if "previous_step" in data and isinstance(data.get("steps"), dict):
            return data
        if "context" in data and data.keys() <= {"input", "context"}:
            context = data["context"]
            if isinstance(context, dict):
                return {"previous_step": data.get("input"), "context": context, "steps": {}}
    return {"previous_step": data, "context": {}, "steps": {}}


def result(data: Json) -> Data:
    """Return what a pipeline comes to: the last output, and the context."""
    found = opened(data)
    return {"output": found["previous_step"], "context": found["context"]}


def names_of(data: Data, output: Json) -> Names:
    """Return what an expression may name."""
    return Names(output, data["context"], data["steps"], data.get("resume_input"))


# --------------------------------------------------------------------------------------------
# Steps


def done(data: Json, step: str, output: Json, flags: Mapping[str, Json] | None = None) -> Data:
    """Return the data after a step.

    With the flag `updates_context` an object is merged into the context; `sink_to` names a path of
    the context where the output goes.
    """
    found = opened(data)
    after = {**found, "previous_step": output, "steps": {**found["steps"], step: output}}
    if flags:
        after["context"] = stored(found["context"], output, flags)
    machine = found.get("machine")
    if machine is not None:
        if output is None:
            after["previous_step"] = found["previous_step"]
        elif type(output) is dict:
            following = asked_for(output)
            if following is not None:
                after["machine"] = {**machine, "next": following}
        last = {"name": step, "success": True, "feedback": None}
        after["output"] = {"event": "success", "last_output": output, "last_step": last}
    return after


def stored(context: Data, output: Json, flags: Mapping[str, Json]) -> Data:
    """Return the context after a step that writes into it."""
    if flags.get("updates_context") and isinstance(output, dict):
        context = {**context, **output}
    path = flags.get("sink_to")
    return put(context, path, output, parents=False) if isinstance(path, str) else context


def asked_for(values: Mapping[str, Json]) -> str | None:
    """Return the state that an object asks for by `next_state`, in either spelling."""
    found = values.get("next_state")
    if isinstance(found, str):
        return found
    scratchpad = values.get("scratchpad")
    found = scratchpad.get("next_state") if isinstance(scratchpad, dict) else None
    return found if isinstance(found, str) else None


def failed(data: Json, step: str, error: Json) -> Data:
    """Return the data behind a step that failed: nothing of it moves on but the message."""
    told = error if isinstance(error, dict) else {}
    feedback = told.get("Cause") or told.get("Error") or "failed"
    last = {"name": step, "success": False, "feedback": feedback}
    return {
        **opened(data),
        "output": {"event": "failure", "last_output": None, "last_step": last},
    }


def answered(data: Json, step: str, answer: Json, flags: Mapping[str, Json] | None = None) -> Data:
    """Return the data behind a question: the answer is the output of its step."""
    return {**done(data, step, answer, flags), "resume_input": answer}


def closed(data: Data, steps: list[str]) -> Data:
    """Return the data behind steps that end with one of their own: its output is theirs, too."""
    output = data["previous_step"]
    after = {**data, "steps": {**data["steps"], **dict.fromkeys(steps, output)}}
    if "machine" in data and "output" in data:
        last = {**data["output"]["last_step"], "name": steps[-1]}
        after["output"] = {**data["output"], "last_step": last}
    return after


def decided(data: Json, decision: Json) -> Data:
    """Return the data with what a function has decided: the name of a branch, or yes and no."""
    return {**opened(data), "decision": _key(decision)}


# --------------------------------------------------------------------------------------------
# Paths of the context


def value_at(context: Json, path: str) -> Json:
    """Return what a dotted path leads to, None where it leads nowhere."""
    for name in path.split(".")[:MAX_PATH]:
        if not isinstance(context, dict):
            return None
        context = context.get(name)
    return context


def put(context: Data, path: str, value: Json, *, parents: bool = True) -> Data:
    """Return the context with a value at a dotted path; without *parents* only where they are."""
    names = path.removeprefix("context.").split(".")
    return _put(context, names[:MAX_PATH], value, parents)


def _put(held: Data, names: list[str], value: Json, parents: bool) -> Data:
    name, *rest = names
    if not rest:
        return {**held, name: value}
    inner = held.get(name)
    if not isinstance(inner, dict):
        if not parents:
            return held
        inner = {}
    return {**held, name: _put(inner, rest, value, parents)}


def merged_at(context: Data, path: str, value: Json) -> Data:
    """Return the context with an object merged into the one at a dotted path."""
    held = value_at(context, path.removeprefix("context."))
    if isinstance(held, dict) and isinstance(value, dict):
        value = {**held, **value}
    return put(context, path, value)


# --------------------------------------------------------------------------------------------
# Texts and decisions


def filled(data: Json, template: str) -> str | None:
    """Return a template filled in; one that cannot be rendered gives what moves along."""
    found = opened(data)
    text = rendered(template, scope_of(found))
    kept: str | None = found["previous_step"] if text is None else text
    return kept


def scope_of(data: Data) -> Scope:
    """Return what a template may name."""
    return Scope(data["context"], data["previous_step"], data["steps"], data.get("resume_input"))


def text_of(value: Json) -> str:
    """Return a value as text: objects and lists in JSON, null as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)


def key(data: Json, condition: str | None = None, mode: str = "") -> str | None:
    """Return the branch that a condition names, None where it fails or gives null.

    Without a condition it is what moves along.
    """
    found = opened(data)
    value = found["previous_step"]
    if condition is not None:
        try:
            value = expression(condition, mode).value(names_of(found, value))
        except Failure:
            return None
    return _key(value)


def _key(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else text_of(value)


def until(data: Json, condition: str, mode: str = "") -> bool | None:
    """Whether a loop is over, None where its condition fails."""
    found = opened(data)
    try:
        return bool(expression(condition, mode).value(names_of(found, found["previous_step"])))
    except Failure:
        return None


def step_failed(feedback: str) -> StateError:
    """The error of a step that has failed by itself."""
    return StateError("Flujo.StepFailed", feedback)
