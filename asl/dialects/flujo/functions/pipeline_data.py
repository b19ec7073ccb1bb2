"""The data of an execution: the current value, the context and the outputs of steps.

`previous_step` is the current value: the input, then the output of the latest step. `context` is
the context, `steps` has the outputs of steps by name, and `resume_input` is the latest answer of a
person. Inside a state machine `output` is what rules read about the last step, and `machine` the
data of `state_machines`. The input of an execution is the first current value, or an object with
only `input` and `context`.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import (
    FlujoConditionError,
    FlujoNames,
    compile_expression,
)
from asl.dialects.flujo.functions.templates import TemplateScope, render, text_of

__all__ = [
    "ARTIFACTS",
    "MAX_PATH",
    "Data",
    "answer_question",
    "begin_import",
    "branch_key",
    "close_steps",
    "complete_step",
    "confirm",
    "end_import",
    "fail_step",
    "fill_template",
    "get_value",
    "is_loop_over",
    "merge_at",
    "merge_value",
    "names_of",
    "open_data",
    "pipeline_result",
    "put_value",
    "requested_state",
    "scope_of",
    "set_decision",
    "set_value",
    "store_output",
    "stringify",
    "value_at",
]

Data: TypeAlias = dict[str, Any]

MAX_PATH = 50
"""Names of a dotted path."""


def open_data(data: Json) -> Data:
    """Return the data of an execution; an input becomes the data at the start of a pipeline."""
    if isinstance(data, dict):
        if "previous_step" in data and isinstance(data.get("steps"), dict):
            return data
        if "context" in data and data.keys() <= {"input", "context"}:
            context = data["context"]
            if isinstance(context, dict):
                return {"previous_step": data.get("input"), "context": context, "steps": {}}
    return {"previous_step": data, "context": {}, "steps": {}}


def pipeline_result(data: Json) -> Data:
    """Return the result of a pipeline: the last output and the context."""
    found = open_data(data)
    return {"output": found["previous_step"], "context": found["context"]}


def names_of(data: Data, output: Json) -> FlujoNames:
    """Return the values that an expression may read."""
    return FlujoNames(output, data["context"], data["steps"], data.get("resume_input"))


# --------------------------------------------------------------------------------------------
# Steps


def complete_step(
    data: Json, step: str, output: Json, flags: Mapping[str, Json] | None = None
) -> Data:
    """Return the data after a step.

    Args:
        data: The data before the step.
        step: Name of the step.
        output: The output.
        flags: `updates_context` merges an object into the context; `sink_to` is the path in the
            context for the output.
    """
    found = open_data(data)
    after = {**found, "previous_step": output, "steps": {**found["steps"], step: output}}
    if flags:
        after["context"] = store_output(found["context"], output, flags)
    machine = found.get("machine")
    if machine is not None:
        if output is None:
            after["previous_step"] = found["previous_step"]
        elif type(output) is dict:
            following = requested_state(output)
            if following is not None:
                after["machine"] = {**machine, "next": following}
        last = {"name": step, "success": True, "feedback": None}
        after["output"] = {"event": "success", "last_output": output, "last_step": last}
    return after


def store_output(context: Data, output: Json, flags: Mapping[str, Json]) -> Data:
    """Return the context after a step with these flags."""
    if flags.get("updates_context") and isinstance(output, dict):
        context = {**context, **output}
    path = flags.get("sink_to")
    return put_value(context, path, output, parents=False) if isinstance(path, str) else context


def requested_state(values: Mapping[str, Json]) -> str | None:
    """Return the state that an object requests with `next_state`, None without one."""
    found = values.get("next_state")
    if isinstance(found, str):
        return found
    scratchpad = values.get("scratchpad")
    found = scratchpad.get("next_state") if isinstance(scratchpad, dict) else None
    return found if isinstance(found, str) else None


def fail_step(data: Json, step: str, error: Json) -> Data:
    """Return the data after a failed step: only its message is added."""
    told = error if isinstance(error, dict) else {}
    feedback = told.get("Cause") or told.get("Error") or "failed"
    last = {"name": step, "success": False, "feedback": feedback}
    return {
        **open_data(data),
        "output": {"event": "failure", "last_output": None, "last_step": last},
    }


def answer_question(
    data: Json, step: str, answer: Json, flags: Mapping[str, Json] | None = None
) -> Data:
    """Return the data after a question: the answer is the output of its step."""
    return {**complete_step(data, step, answer, flags), "resume_input": answer}


def close_steps(data: Data, steps: list[str]) -> Data:
    """Return the data after nested steps: the output of the last one is the output of all."""
    output = data["previous_step"]
    after = {**data, "steps": {**data["steps"], **dict.fromkeys(steps, output)}}
    if "machine" in data and "output" in data:
        last = {**data["output"]["last_step"], "name": steps[-1]}
        after["output"] = {**data["output"], "last_step": last}
    return after


def set_decision(data: Json, decision: Json) -> Data:
    """Return the data with a decision: the name of a branch, or `true` and `false`."""
    return {**open_data(data), "decision": _key(decision)}


# --------------------------------------------------------------------------------------------
# Paths of the context


def value_at(context: Json, path: str) -> Json:
    """Return the value at a dotted path, None for a missing one."""
    for name in path.split(".")[:MAX_PATH]:
        if not isinstance(context, dict):
            return None
        context = context.get(name)
    return context


def put_value(context: Data, path: str, value: Json, *, parents: bool = True) -> Data:
    """Return the context with a value at a dotted path; *parents* creates missing objects."""
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


def merge_at(context: Data, path: str, value: Json) -> Data:
    """Return the context with an object merged into the one at a dotted path."""
    held = value_at(context, path.removeprefix("context."))
    if isinstance(held, dict) and isinstance(value, dict):
        value = {**held, **value}
    return put_value(context, path, value)


# --------------------------------------------------------------------------------------------
# Texts and decisions


def fill_template(data: Json, template: str) -> str | None:
    """Return a rendered template; the current value for a malformed one."""
    found = open_data(data)
    text = render(template, scope_of(found))
    kept: str | None = found["previous_step"] if text is None else text
    return kept


def scope_of(data: Data) -> TemplateScope:
    """Return the values that a template may read."""
    return TemplateScope(
        data["context"], data["previous_step"], data["steps"], data.get("resume_input")
    )


def branch_key(data: Json, condition: str | None = None, mode: str = "") -> str | None:
    """Return the branch that a condition selects; None if it fails or is null.

    Without a condition the current value selects it.
    """
    found = open_data(data)
    value = found["previous_step"]
    if condition is not None:
        try:
            value = compile_expression(condition, mode).value(names_of(found, value))
        except FlujoConditionError:
            return None
    return _key(value)


def _key(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else text_of(value)


def is_loop_over(data: Json, condition: str, mode: str = "") -> bool | None:
    """Return whether the condition of a loop is true, None if it fails."""
    found = open_data(data)
    try:
        return bool(
            compile_expression(condition, mode).value(names_of(found, found["previous_step"]))
        )
    except FlujoConditionError:
        return None


def step_error(feedback: str) -> StateError:
    """Return the error of a step that failed."""
    return StateError("Flujo.StepFailed", feedback)


ARTIFACTS: Final = "import_artifacts"
"""The member of the context that blueprints share."""
KEY: Final = "initial_input"
"""The artifact that becomes the input; an input that is no object is stored under it."""


def begin_import(data: Json, value: Json, settings: Mapping[str, Any]) -> Data:
    """Return the data at the start of an imported blueprint.

    Args:
        data: The data before the step.
        value: The input of the step.
        settings: `inherit` passes the context on, as the artifacts always are. `to` is the target
            of the input: `initial_prompt` (as text), `import_artifacts` or `scratchpad` (an object
            is merged, any other value is stored under `key`), or `both`.
    """
    outside = open_data(data)["context"]
    context = {**outside} if settings.get("inherit") else {}
    if isinstance(outside.get(ARTIFACTS), dict):
        context[ARTIFACTS] = outside[ARTIFACTS]
    to, key = settings.get("to", "initial_prompt"), settings.get("key", KEY)
    told = value_at(context, f"{ARTIFACTS}.{key}")
    given = value if told is None else told
    if to != "initial_prompt":
        holder = ARTIFACTS if to == "both" else to
        held = context[holder] if isinstance(context.get(holder), dict) else {}
        added = value if isinstance(value, dict) else {key: value}
        context = {**context, holder: {**held, **added}}
    if to in ("initial_prompt", "both"):
        given = text_of(given)
        context = {**context, "initial_prompt": given}
    return {"previous_step": given, "context": context, "steps": {}}


def end_import(data: Json, step: str, behind: Data, settings: Mapping[str, Any]) -> Data:
    """Return the data after a step with an imported blueprint.

    With `updates` the context of the blueprint is merged, or those parts of it (else of its output)
    that `outputs` lists.
    """
    found, output = open_data(data), behind["previous_step"]
    context = found["context"]
    if settings.get("updates"):
        wanted = settings.get("outputs")
        if wanted is None:
            context = {**context, **behind["context"]}
        for each in wanted or ():
            value = value_at(behind["context"], each["child"])
            if value is None:
                value = value_at(output, each["child"])
            if value is not None:
                context = put_value(context, each["parent"], value)
    context = store_output(context, output, {"sink_to": settings.get("sink_to")})
    after = {**found, "context": context}
    if "resume_input" in behind:
        after["resume_input"] = behind["resume_input"]
    return complete_step(after, step, output)


YES: Final = frozenset(
    ("y", "yes", "yeah", "yep", "ok", "okay", "sure", "true", "1", "approve", "approved", "confirm")
)
"""Texts of consent, in lower case."""


def set_value(data: Json, step: str, path: str, value: Json) -> Data:
    """Return the data with a value at a path of the context."""
    return _update_context(data, step, value, put_value(open_data(data)["context"], path, value))


def merge_value(data: Json, step: str, path: str, value: Json) -> Data:
    """Return the data with an object merged into the one at a path of the context."""
    return _update_context(data, step, value, merge_at(open_data(data)["context"], path, value))


def _update_context(data: Json, step: str, value: Json, context: Data) -> Data:
    return complete_step({**open_data(data), "context": context}, step, value)


def get_value(data: Json, path: str, default: Json = None) -> Json:
    """Return the value at a path of the context, the default for a missing one."""
    found = value_at(open_data(data)["context"], path.removeprefix("context."))
    return default if found is None else found


def stringify(value: Json) -> str:
    """Return a value as text."""
    return text_of(value)


def confirm(data: Json) -> str:
    """Return `approved` or `denied` for the current value."""
    said = open_data(data)["previous_step"]
    return "approved" if text_of(said).strip().lower() in YES else "denied"
