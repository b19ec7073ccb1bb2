"""Branches, items and loops: the data at their start and their end.

A failed branch or item has the result `{"failed": message}`. The rounds of loops are counted under
`loops`. An operation between rounds is an object `{op, path, value}`: a value is set at a path of
the context (`set`), added to the list there (`append`), or merged into the object there (`merge`).
A text is rendered, with the output of the round as `previous_step`; a malformed one has no effect.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, compact, json_equal
from asl.dialects.flujo.functions.pipeline_data import (
    Data,
    complete_step,
    merge_at,
    open_data,
    put_value,
    scope_of,
    step_error,
    store_output,
    value_at,
)
from asl.dialects.flujo.functions.templates import render

__all__ = [
    "MERGES",
    "REDUCERS",
    "apply_operations",
    "collect_items",
    "count_rounds",
    "end_loop",
    "join_branches",
    "list_items",
    "make_output",
    "next_round",
    "route_branches",
    "start_item",
    "start_loop",
]


def start_loop(data: Json, loop: str, operations: list[Json] | None = None) -> Data:
    """Return the data at the start of the first round of a loop."""
    found = apply_operations(data, operations or [])
    return {**found, "loops": {**found.get("loops", {}), loop: 1}}


def next_round(data: Data, loop: str, between: Mapping[str, Any] | None = None) -> Data:
    """Return the data at the start of the next round.

    Args:
        data: The data after the round.
        loop: Name of the loop.
        between: `state` lists operations on the context; `next_input` is `context` or a template.
    """
    after = {**data, "loops": {**data["loops"], loop: count_rounds(data, loop) + 1}}
    if between:
        after = apply_operations(after, between.get("state", []))
        if "next_input" in between:
            after["previous_step"] = _next_input(after, between["next_input"])
    return after


def _next_input(data: Data, wanted: str) -> Json:
    if wanted == "context":
        return data["context"]
    text = render(wanted, scope_of(data))
    if text is None:
        return data["previous_step"]
    if text.lstrip()[:1] in ("{", "["):
        try:
            return read_data(text)
        except ValueError:
            return text
    return text


def count_rounds(data: Data, loop: str) -> int:
    """Return the number of rounds that have started."""
    count: int = data.get("loops", {}).get(loop, 0)
    return count


def end_loop(data: Data, loop: str, flags: Mapping[str, Any] | None = None) -> Data:
    """Return the data after a loop: the output of the last round, or of the flag `output`."""
    left = {key: each for key, each in data["loops"].items() if key != loop}
    after = {key: each for key, each in data.items() if key != "loops"}
    if left:
        after["loops"] = left
    return complete_step(after, loop, make_output(data, data["previous_step"], flags), flags)


def make_output(data: Data, output: Json, flags: Mapping[str, Any] | None) -> Json:
    """Return the output of the flag `output`: a template, or an object of templates.

    A malformed template gives the output unchanged, as a member null.
    """
    wanted = flags.get("output") if flags else None
    if wanted is None:
        return output
    scope = scope_of({**data, "previous_step": output})
    if isinstance(wanted, str):
        text = render(wanted, scope)
        return output if text is None else text
    return {name: render(each, scope) for name, each in wanted.items()}


def apply_operations(data: Json, operations: list[Any]) -> Data:
    """Return the data after operations on the context."""
    found = open_data(data)
    for each in operations:
        value = each["value"]
        if isinstance(value, str):
            value = render(value, scope_of(found))
            if value is None:
                continue
        context = _apply_operation(found["context"], each["op"], each["path"], value)
        found = {**found, "context": context}
    return {**found}


def _apply_operation(context: Data, verb: str, path: str, value: Json) -> Data:
    match verb:
        case "append":
            held = value_at(context, path)
            return put_value(context, path, [*held, value] if isinstance(held, list) else [value])
        case "merge":
            if isinstance(value, str):
                try:
                    value = read_data(value)
                except ValueError:
                    return context
            return merge_at(context, path, value) if isinstance(value, dict) else context
    return put_value(context, path, value)


Flags = Mapping[str, Any]


def join_branches(
    data: Json, step: str, results: list[Json], names: list[str], flags: Flags | None = None
) -> Data:
    """Return the data after branches: their outputs by name, and the merged context.

    Args:
        data: The data before the branches.
        step: Name of the step.
        results: The results of the branches.
        names: Their names.
        flags: `ignore` accepts failed branches, `merge` is a key of `MERGES`, `reduce` one of
            `REDUCERS`.

    Raises:
        StateError: Flujo.StepFailed for a failed branch, or for two that write different values to
            one key under `context_update` (numbers excepted) or `error_on_conflict`.
    """
    flags, found = flags or {}, open_data(data)
    outputs: dict[str, Json] = {}
    contexts: list[Data] = []
    steps = found["steps"]
    for name, each in zip(names, results, strict=True):
        if isinstance(each, dict) and "failed" in each:
            if not flags.get("ignore"):
                raise step_error(f"branch {name!r} failed: {each['failed']}")
            outputs[name] = {"error": each["failed"]}
        elif isinstance(each, dict) and "previous_step" in each:
            outputs[name] = each["previous_step"]
            contexts.append(each["context"])
            steps = {**steps, **each["steps"]}
    reduce = REDUCERS.get(str(flags.get("reduce")))
    merge = MERGES[flags.get("merge", "context_update")]
    after = {**found, "context": merge(found["context"], contexts), "steps": steps}
    after.pop("routes", None)
    return complete_step(after, step, outputs if reduce is None else reduce(outputs), flags)


# --------------------------------------------------------------------------------------------
# The context


def _changes(before: Data, after: Data) -> Data:
    """Return the changed members, with those of nested objects."""
    found: Data = {}
    for key, value in after.items():
        if key not in before:
            found[key] = value
        elif value is not before[key] and not json_equal(value, before[key]):
            old = before[key]
            both = isinstance(value, dict) and isinstance(old, dict)
            found[key] = _changes(old, value) if both else value
    return found


def _apply_changes(context: Data, changes: Data) -> Data:
    after = dict(context)
    for key, value in changes.items():
        old = after.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _apply_changes(old, value)
        after[key] = value
    return after


def _merge_updates(context: Data, branches: list[Data]) -> Data:
    after = context
    for each in branches:
        after = _apply_changes(after, _changes(context, each))
    return after


def _merge_keep_first(context: Data, branches: list[Data]) -> Data:
    return _merge_updates(context, branches[::-1])


def _merge_without_conflict(context: Data, branches: list[Data]) -> Data:
    seen: Data = {}
    for each in branches:
        for key, value in _changes(context, each).items():
            if key in seen and not json_equal(seen[key], value):
                raise _merge_conflict(key)
            seen[key] = value
    return _merge_updates(context, branches)


_CONTROL_FIELDS: Final = frozenset(("current_state", "next_state"))
"""Fields that machines in several branches write."""


def _merge_disjoint_updates(context: Data, branches: list[Data]) -> Data:
    """Return the context with the changes of all branches; of two numbers the later one wins."""
    seen: Data = {}
    for each in branches:
        changes = _changes(context, each)
        _check_conflicts(seen, changes, "")
        seen = _apply_changes(seen, changes)
    return _merge_updates(context, branches)


def _check_conflicts(seen: Data, changes: Data, parent: str) -> None:
    for key, value in changes.items():
        if key not in seen or key in _CONTROL_FIELDS:
            continue
        old = seen[key]
        if isinstance(old, dict) and isinstance(value, dict):
            _check_conflicts(old, value, f"{parent}{key}.")
        elif not (_is_number(old) and _is_number(value)) and not json_equal(old, value):
            raise _merge_conflict(f"{parent}{key}")


def _is_number(value: Json) -> bool:
    return type(value) is int or type(value) is float


def _merge_conflict(key: str) -> StateError:
    return step_error(
        f"merge conflict for the key {key!r}: two branches write it into the context; "
        "set merge_strategy to overwrite or keep_first, or write different keys"
    )


MERGES: Final[Mapping[str, Callable[[Data, list[Data]], Data]]] = {
    "context_update": _merge_disjoint_updates,
    "overwrite": lambda context, branches: branches[-1] if branches else context,
    "no_merge": lambda context, branches: context,
    "keep_first": _merge_keep_first,
    "error_on_conflict": _merge_without_conflict,
}
"""The merged context of branches, by strategy."""


def _union(outputs: Mapping[str, Json]) -> Json:
    after: Data = {}
    for each in outputs.values():
        if isinstance(each, dict):
            after |= each
    return after


def _concat(outputs: Mapping[str, Json]) -> Json:
    lists = (each if isinstance(each, list) else [each] for each in outputs.values())
    return [item for each in lists for item in each]


def _majority(outputs: Mapping[str, Json]) -> Json:
    """Return the most frequent output; the first of equally frequent ones."""
    said = {compact(each): each for each in outputs.values()}
    counted = Counter(compact(each) for each in outputs.values())
    return said[counted.most_common(1)[0][0]] if counted else None


REDUCERS: Final[Mapping[str, Callable[[Mapping[str, Json]], Json]]] = {
    "keys": lambda outputs: [*outputs],
    "values": lambda outputs: [*outputs.values()],
    "union": _union,
    "concat": _concat,
    "first": lambda outputs: next(iter(outputs.values()), None),
    "last": lambda outputs: [*outputs.values()][-1] if outputs else None,
    "majority_vote": _majority,
}
"""The output for the outputs of branches, by name."""


# --------------------------------------------------------------------------------------------
# Items


def list_items(data: Json, path: str) -> list[Json]:
    """Return the list at a path of the context.

    Raises:
        StateError: Flujo.StepFailed if there is none.
    """
    found = value_at(open_data(data)["context"], path.removeprefix("context."))
    if not isinstance(found, list):
        raise step_error(f"there is no list {path!r} in the context")
    return found


def start_item(data: Json, value: Json) -> Data:
    """Return the data at the start of the steps for an item."""
    return {**open_data(data), "previous_step": value}


def collect_items(data: Json, step: str, results: list[Json], flags: Flags | None = None) -> Data:
    """Return the data after items: the list of their outputs, null for a failed one."""
    flags, found = flags or {}, open_data(data)
    outputs: list[Json] = []
    contexts: list[Data] = []
    steps = found["steps"]
    for each in results:
        worked = isinstance(each, dict) and "previous_step" in each
        outputs.append(each["previous_step"] if worked else None)
        if worked:
            contexts.append(each["context"])
            steps = {**steps, **each["steps"]}
    after = {**found, "context": _merge_updates(found["context"], contexts), "steps": steps}
    output = make_output(after, outputs, flags)
    after = complete_step(after, step, output)
    return {**after, "context": store_output(after["context"], output, flags)} if flags else after


def route_branches(data: Json, step: str, names: Json) -> Data:
    """Return the data with the names of the branches to run."""
    if isinstance(names, dict):
        names = names.get("branches", names.get("output"))
    listed = [names] if isinstance(names, str) else names
    chosen = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    return {**open_data(data), "routes": chosen}
