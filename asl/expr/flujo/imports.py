"""Imported blueprints: what they begin with, and what comes back of them."""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.expr.flujo.data import Data, done, opened, put, stored, text_of, value_at

__all__ = ["ARTIFACTS", "begun", "returned"]

ARTIFACTS: Final = "import_artifacts"
"""The field of the context that blueprints share."""
KEY: Final = "initial_input"
"""The artifact that is the input, whatever else it may be; what is no object is put there."""


def begun(data: Json, value: Json, settings: Mapping[str, Any]) -> Data:
    """Return the data in which an imported blueprint begins, for the input of its step.

    `inherit` hands the context over; the artifacts always are. `to` says where the input goes:
    `initial_prompt` (as text), `import_artifacts` or `scratchpad` (an object is merged, anything
    else is put under `key`), or `both`.
    """
    outside = opened(data)["context"]
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


def returned(data: Json, step: str, behind: Data, settings: Mapping[str, Any]) -> Data:
    """Return the data behind a step that has run an imported blueprint.

    With `updates` its context is merged, or of that (else of its output) what `outputs` lists.
    """
    found, output = opened(data), behind["previous_step"]
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
                context = put(context, each["parent"], value)
    context = stored(context, output, {"sink_to": settings.get("sink_to")})
    after = {**found, "context": context}
    if "resume_input" in behind:
        after["resume_input"] = behind["resume_input"]
    return done(after, step, output)
