"""Branches and items: what each begins with, and what becomes of all of them together.

A branch or an item that has failed comes back as `{"failed": its message}`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.json_text import read_data
from asl.core.values import Json, compact, json_equal
from asl.expr.flujo.pipeline_data import (
    Data,
    done,
    merged_at,
    opened,
    put,
    scope_of,
    step_failed,
    stored,
    value_at,
)
from asl.expr.flujo.templates import rendered

__all__ = [
    "MERGES",
    "REDUCERS",
    "again",
    "begun",
    "collected",
    "ended",
    "item",
    "items",
    "joined",
    "made",
    "prepared",
    "rounds",
    "routed",
]


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


Flags = Mapping[str, Any]


def joined(
    data: Json, step: str, results: list[Json], names: list[str], flags: Flags | None = None
) -> Data:
    """Return the data behind branches: their outputs by name, and what they did to the context.

    Raises StateError (Flujo.StepFailed) where a branch has failed, unless the flag `ignore` says
    that this does not matter, or where branches may not write the same. `merge` and `reduce` are
    flags, too.
    """
    flags, found = flags or {}, opened(data)
    outputs: dict[str, Json] = {}
    contexts: list[Data] = []
    steps = found["steps"]
    for name, each in zip(names, results, strict=True):
        if isinstance(each, dict) and "failed" in each:
            if not flags.get("ignore"):
                raise step_failed(f"branch {name!r} failed: {each['failed']}")
            outputs[name] = {"error": each["failed"]}
        elif isinstance(each, dict) and "previous_step" in each:
            outputs[name] = each["previous_step"]
            contexts.append(each["context"])
            steps = {**steps, **each["steps"]}
    reduce = REDUCERS.get(str(flags.get("reduce")))
    merge = MERGES[flags.get("merge", "context_update")]
    after = {**found, "context": merge(found["context"], contexts), "steps": steps}
    after.pop("routes", None)
    return done(after, step, outputs if reduce is None else reduce(outputs), flags)


# --------------------------------------------------------------------------------------------
# The context


def _changed(before: Data, after: Data) -> Data:
    """Return what was written, deep in objects."""
    found: Data = {}
    for key, value in after.items():
        if key not in before:
            found[key] = value
        elif value is not before[key] and not json_equal(value, before[key]):
            old = before[key]
            both = isinstance(value, dict) and isinstance(old, dict)
            found[key] = _changed(old, value) if both else value
    return found


def _written(context: Data, changes: Data) -> Data:
    after = dict(context)
    for key, value in changes.items():
        old = after.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _written(old, value)
        after[key] = value
    return after


def _updated(context: Data, branches: list[Data]) -> Data:
    after = context
    for each in branches:
        after = _written(after, _changed(context, each))
    return after


def _kept_first(context: Data, branches: list[Data]) -> Data:
    return _updated(context, branches[::-1])


def _without_conflict(context: Data, branches: list[Data]) -> Data:
    seen: Data = {}
    for each in branches:
        for key, value in _changed(context, each).items():
            if key in seen and not json_equal(seen[key], value):
                raise step_failed(f"two branches write {key!r} into the context")
            seen[key] = value
    return _updated(context, branches)


MERGES: Final[Mapping[str, Callable[[Data, list[Data]], Data]]] = {
    "context_update": _updated,
    "overwrite": lambda context, branches: branches[-1] if branches else context,
    "no_merge": lambda context, branches: context,
    "keep_first": _kept_first,
    "error_on_conflict": _without_conflict,
}
"""What becomes of the contexts of branches, by the name of the strategy."""


def _united(outputs: Mapping[str, Json]) -> Json:
    after: Data = {}
    for each in outputs.values():
        if isinstance(each, dict):
            after |= each
    return after


def _concatenated(outputs: Mapping[str, Json]) -> Json:
    lists = (each if isinstance(each, list) else [each] for each in outputs.values())
    return [item for each in lists for item in each]


def _most(outputs: Mapping[str, Json]) -> Json:
    """Return what most branches say; the first of those that are equally many."""
    said = {compact(each): each for each in outputs.values()}
    counted = Counter(compact(each) for each in outputs.values())
    return said[counted.most_common(1)[0][0]] if counted else None


REDUCERS: Final[Mapping[str, Callable[[Mapping[str, Json]], Json]]] = {
    "keys": lambda outputs: [*outputs],
    "values": lambda outputs: [*outputs.values()],
    "union": _united,
    "concat": _concatenated,
    "first": lambda outputs: next(iter(outputs.values()), None),
    "last": lambda outputs: [*outputs.values()][-1] if outputs else None,
    "majority_vote": _most,
}
"""What is made of the outputs of branches, by name."""


# --------------------------------------------------------------------------------------------
# Items


def items(data: Json, path: str) -> list[Json]:
    """Return the list in a field of the context; raises StateError where there is none."""
    found = value_at(opened(data)["context"], path.removeprefix("context."))
    if not isinstance(found, list):
        raise step_failed(f"there is no list {path!r} in the context")
    return found


def item(data: Json, value: Json) -> Data:
    """Return what the steps for an item begin with."""
    return {**opened(data), "previous_step": value}


def collected(data: Json, step: str, results: list[Json], flags: Flags | None = None) -> Data:
    """Return the data behind items: the list of their outputs, null for one that has failed."""
    flags, found = flags or {}, opened(data)
    outputs: list[Json] = []
    contexts: list[Data] = []
    steps = found["steps"]
    for each in results:
        worked = isinstance(each, dict) and "previous_step" in each
        outputs.append(each["previous_step"] if worked else None)
        if worked:
            contexts.append(each["context"])
            steps = {**steps, **each["steps"]}
    after = {**found, "context": _updated(found["context"], contexts), "steps": steps}
    output = made(after, outputs, flags)
    after = done(after, step, output)
    return {**after, "context": stored(after["context"], output, flags)} if flags else after


def routed(data: Json, step: str, names: Json) -> Data:
    """Return the data in which some branches run: those that were named."""
    if isinstance(names, dict):
        names = names.get("branches", names.get("output"))
    listed = [names] if isinstance(names, str) else names
    chosen = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    return {**opened(data), "routes": chosen}
