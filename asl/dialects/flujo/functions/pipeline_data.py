"""The data of an execution: its input, the context and the outputs of steps.

`input` is the input, `context` the context, and `steps` has the outputs of steps by name. Where the
current value may come from several steps it is `previous_step`; `resume_input` is the latest answer
of a person. Inside a state machine `machine` has its latest transition (`from`, `on`), the number
of its hops and its input, and `failure` the latest failed step. The input of an execution is the
first current value, or an object with only `input` and `context`.
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
    "INITIAL_INPUT",
    "MAX_PATH",
    "YES",
    "Data",
    "agrees",
    "begin_import",
    "branch_key",
    "branch_name",
    "condition_fails",
    "confirm",
    "end_import",
    "fill_template",
    "get_value",
    "merge_at",
    "names_of",
    "open_data",
    "put_value",
    "requested_state",
    "scope_of",
    "step_error",
    "stringify",
    "value_at",
]

Data: TypeAlias = dict[str, Any]

MAX_PATH = 50
"""Names of a dotted path."""


def open_data(data: Json) -> Data:
    """Return the data of an execution; an input becomes the data at the start of a pipeline."""
    if isinstance(data, dict) and isinstance(data.get("context"), dict):
        if "input" in data and isinstance(data.get("steps"), dict):
            return data
        if data.keys() <= {"input", "context"}:
            return {"input": data.get("input"), "context": data["context"], "steps": {}}
    return {"input": data, "context": {}, "steps": {}}


def names_of(data: Data, output: Json) -> FlujoNames:
    """Return the values that an expression may read."""
    return FlujoNames(output, data["context"], data["steps"], data.get("resume_input"))


def requested_state(values: Mapping[str, Json]) -> str | None:
    """Return the state that an object requests with `next_state`, None without one."""
    found = values.get("next_state")
    if isinstance(found, str):
        return found
    scratchpad = values.get("scratchpad")
    found = scratchpad.get("next_state") if isinstance(scratchpad, dict) else None
    return found if isinstance(found, str) else None


# --------------------------------------------------------------------------------------------
# Paths of the context


def value_at(context: Json, path: str) -> Json:
    """Return the value at a dotted path, None for a missing one."""
    for name in path.split(".")[:MAX_PATH]:
        if not isinstance(context, dict):
            return None
        context = context.get(name)
    return context


def put_value(context: Data, path: str, value: Json, parents: bool = False) -> Data:
    """Return the context with a value at a dotted path.

    Args:
        context: The context before.
        path: The path.
        value: The value.
        parents: Whether missing objects are created; without them nothing is written.
    """
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
    return put_value(context, path, value, True)


def get_value(context: Data, path: str, default: Json = None) -> Json:
    """Return the value at a path of the context, the default for a missing one."""
    found = value_at(context, path.removeprefix("context."))
    return default if found is None else found


# --------------------------------------------------------------------------------------------
# Texts and decisions


def fill_template(data: Json, template: str, value: Json = None) -> Json:
    """Return a rendered template; the current value for a malformed one."""
    text = render(template, scope_of(open_data(data), value))
    return value if text is None else text


def scope_of(data: Data, value: Json) -> TemplateScope:
    """Return the values that a template may read; *value* is the current one."""
    return TemplateScope(data["context"], value, data["steps"], data.get("resume_input"))


def branch_key(data: Json, condition: str, value: Json = None, mode: str = "") -> str | None:
    """Return the branch that a condition selects; None if it fails or is null."""
    try:
        found = compile_expression(condition, mode).value(names_of(open_data(data), value))
    except FlujoConditionError:
        return None
    return branch_name(found)


def branch_name(value: Json) -> str | None:
    """Return the name of the branch that a value selects, None for null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else text_of(value)


def condition_fails(data: Json, condition: str, value: Json = None, mode: str = "") -> bool:
    """Return whether the evaluation of a condition fails."""
    try:
        compile_expression(condition, mode).value(names_of(open_data(data), value))
    except FlujoConditionError:
        return True
    return False


def step_error(feedback: str) -> StateError:
    """Return the error of a step that failed."""
    return StateError("Flujo.StepFailed", feedback)


ARTIFACTS: Final = "import_artifacts"
"""The member of the context that blueprints share."""
INITIAL_INPUT: Final = "initial_input"
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
    to, key = settings.get("to", "initial_prompt"), settings.get("key", INITIAL_INPUT)
    shared = value_at(context, f"{ARTIFACTS}.{key}")
    given = value if shared is None else shared
    if to != "initial_prompt":
        holder = ARTIFACTS if to == "both" else to
        held = context[holder] if isinstance(context.get(holder), dict) else {}
        added = value if isinstance(value, dict) else {key: value}
        context = {**context, holder: {**held, **added}}
    if to in ("initial_prompt", "both"):
        given = text_of(given)
        context = {**context, "initial_prompt": given}
    return {"input": given, "context": context, "steps": {}}


def end_import(context: Data, behind: Data, settings: Mapping[str, Any]) -> Data:
    """Return the context after a step with an imported blueprint.

    Args:
        context: The context before.
        behind: The data behind the blueprint.
        settings: `outputs` lists the parts of its context, else of its output, that are taken over;
            without it, all of its context is.
    """
    wanted = settings.get("outputs")
    if wanted is None:
        return {**context, **behind["context"]}
    for each in wanted:
        value = value_at(behind["context"], each["child"])
        if value is None:
            value = value_at(behind["previous_step"], each["child"])
        if value is not None:
            context = put_value(context, each["parent"], value, True)
    return context


YES: Final = frozenset(
    ("y", "yes", "yeah", "yep", "ok", "okay", "sure", "true", "1", "approve", "approved", "confirm")
)
"""Texts of consent, in lower case."""


def stringify(value: Json) -> str:
    """Return a value as text."""
    return text_of(value)


def agrees(value: Json) -> bool:
    """Return whether an answer is one of consent."""
    return text_of(value).strip().lower() in YES


def confirm(value: Json) -> str:
    """Return `approved` or `denied` for an answer."""
    return "approved" if agrees(value) else "denied"
