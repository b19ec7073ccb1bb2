"""Loops: how many rounds each has made, under `loops` in the data; what is done around rounds.

An operation is an object `{op, path, value}`: a value is put at a path of the context (`set`),
added to the list there (`append`), or merged into the object there (`merge`). A text is filled in,
with the output of the round as `previous_step`; one that cannot be made does nothing.
"""

from collections.abc import Mapping
from typing import Any

from asl.core.json_text import read_data
from asl.core.values import Json
from asl.expr.flujo.data import Data, done, merged_at, opened, put, scope_of, value_at
from asl.expr.flujo.templates import rendered

__all__ = ["again", "begun", "ended", "made", "prepared", "rounds"]


def begun(data: Json, loop: str, operations: list[Json] | None = None) -> Data:
    """Return the data in which the first round of a loop begins."""
    found = prepared(data, operations or [])
    return {**found, "loops": {**found.get("loops", {}), loop: 1}}


def again(data: Data, loop: str, between: Mapping[str, Any] | None = None) -> Data:
    """Return the data in which the next round begins.

    `state` are operations on the context; `next_input` is `context`, or a template.
    """
    after = {**data, "loops": {**data["loops"], loop: rounds(data, loop) + 1}}
    if between:
        after = prepared(after, between.get("state", []))
        if "next_input" in between:
            after["previous_step"] = _next(after, between["next_input"])
    return after


def _next(data: Data, wanted: str) -> Json:
    if wanted == "context":
        return data["context"]
    text = rendered(wanted, scope_of(data))
    if text is None:
        return data["previous_step"]
    if text.lstrip()[:1] in ("{", "["):
        try:
            return read_data(text)
        except ValueError:
            return text
    return text


def rounds(data: Data, loop: str) -> int:
    """Return how many rounds have begun."""
    count: int = data.get("loops", {}).get(loop, 0)
    return count


def ended(data: Data, loop: str, flags: Mapping[str, Any] | None = None) -> Data:
    """Return the data behind a loop.

    Its output is that of the last round, or what the flag `output` makes of it.
    """
    left = {key: each for key, each in data["loops"].items() if key != loop}
    after = {key: each for key, each in data.items() if key != "loops"}
    if left:
        after["loops"] = left
    return done(after, loop, made(data, data["previous_step"], flags), flags)


def made(data: Data, output: Json, flags: Mapping[str, Any] | None) -> Json:
    """Return what the flag `output` makes of an output: a text, or an object of texts.

    A text that cannot be filled in gives the output as it is, one of several null.
    """
    wanted = flags.get("output") if flags else None
    if wanted is None:
        return output
    scope = scope_of({**data, "previous_step": output})
    if isinstance(wanted, str):
        text = rendered(wanted, scope)
        return output if text is None else text
    return {name: rendered(each, scope) for name, each in wanted.items()}


def prepared(data: Json, operations: list[Any]) -> Data:
    """Return the data after operations on the context."""
    found = opened(data)
    for each in operations:
        value = each["value"]
        if isinstance(value, str):
            value = rendered(value, scope_of(found))
            if value is None:
                continue
        context = _operated(found["context"], each["op"], each["path"], value)
        found = {**found, "context": context}
    return {**found}


def _operated(context: Data, verb: str, path: str, value: Json) -> Data:
    match verb:
        case "append":
            held = value_at(context, path)
            return put(context, path, [*held, value] if isinstance(held, list) else [value])
        case "merge":
            if isinstance(value, str):
                try:
                    value = read_data(value)
                except ValueError:
                    return context
            return merged_at(context, path, value) if isinstance(value, dict) else context
    return put(context, path, value)
