"""Branches, items and loops: their results, and operations on the context around rounds.

A failed branch or item has the result `{"failed": message}`, any other one the data at its end,
with its output as `previous_step`. An operation is an object `{op, path, value}`: a value is set at
a path of the context (`set`), added to the list there (`append`), or merged into the object there
(`merge`). A text is rendered, with the current value as `previous_step`; a malformed one has no
effect.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, compact, json_equal
from asl.dialects.flujo.functions.pipeline_data import (
    Data,
    merge_at,
    open_data,
    put_value,
    scope_of,
    step_error,
    value_at,
)
from asl.dialects.flujo.functions.templates import render

__all__ = [
    "MERGES",
    "REDUCERS",
    "apply_operations",
    "chosen_branches",
    "list_items",
    "make_output",
    "merge_contexts",
    "next_input",
    "outputs_of",
    "reduce_outputs",
]


def next_input(data: Data, template: str, value: Json) -> Json:
    """Return the input of the next round: a rendered template, or what its JSON is."""
    text = render(template, scope_of(data, value))
    if text is None:
        return value
    if text.lstrip()[:1] in ("{", "["):
        try:
            return read_data(text)
        except ValueError:
            return text
    return text


def make_output(data: Json, wanted: Json, value: Json) -> Json:
    """Return the output of a template, or of an object of templates.

    A malformed template gives the value unchanged, as a member null.
    """
    scope = scope_of(open_data(data), value)
    if isinstance(wanted, str):
        text = render(wanted, scope)
        return value if text is None else text
    members: Mapping[str, Any] = wanted if isinstance(wanted, dict) else {}
    return {name: render(each, scope) for name, each in members.items()}


def apply_operations(data: Json, operations: list[Any], current: Json = None) -> Data:
    """Return the data after operations on the context; *current* is the current value."""
    found = open_data(data)
    for each in operations:
        value = each["value"]
        if isinstance(value, str):
            value = render(value, scope_of(found, current))
            if value is None:
                continue
        context = _apply_operation(found["context"], each["op"], each["path"], value)
        found = {**found, "context": context}
    return {**found}


def _apply_operation(context: Data, verb: str, path: str, value: Json) -> Data:
    match verb:
        case "append":
            held = value_at(context, path)
            listed = [*held, value] if isinstance(held, list) else [value]
            return put_value(context, path, listed, True)
        case "merge":
            if isinstance(value, str):
                try:
                    value = read_data(value)
                except ValueError:
                    return context
            return merge_at(context, path, value) if isinstance(value, dict) else context
    return put_value(context, path, value, True)


Flags = Mapping[str, Any]


def outputs_of(results: list[Json], names: list[str] | None = None) -> Json:
    """Return the outputs of branches by name, or those of items as a list.

    Args:
        results: The results.
        names: The names of the branches, None for items.

    Returns:
        The outputs; null for a failed item.
    """
    if names is None:
        return [each["previous_step"] if _is_data(each) else None for each in results]
    outputs: dict[str, Json] = {}
    for name, each in zip(names, results, strict=True):
        if _is_data(each):
            outputs[name] = each["previous_step"]
        elif isinstance(each, dict) and "failed" in each:
            outputs[name] = {"error": each["failed"]}
    return outputs


def reduce_outputs(outputs: Data, reduce: str) -> Json:
    """Return the outputs of branches as one value, by a key of `REDUCERS`."""
    return REDUCERS[reduce](outputs)


def merge_contexts(context: Data, results: list[Json], strategy: str = "context_update") -> Data:
    """Return the context after branches or items.

    Args:
        context: The context before.
        results: The results of the branches.
        strategy: A key of `MERGES`.

    Raises:
        StateError: Flujo.StepFailed for two branches that write different values to one key under
            `context_update` (numbers excepted) or `error_on_conflict`.
    """
    return MERGES[strategy](context, [each["context"] for each in results if _is_data(each)])


def _is_data(result: Json) -> TypeGuard[Data]:
    """Whether a result is the data at the end of a branch."""
    return isinstance(result, dict) and "previous_step" in result


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
    "later": _merge_updates,
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


def list_items(context: Data, path: str) -> list[Json]:
    """Return the list at a path of the context.

    Raises:
        StateError: Flujo.StepFailed if there is none.
    """
    found = value_at(context, path.removeprefix("context."))
    if not isinstance(found, list):
        raise step_error(f"there is no list {path!r} in the context")
    return found


def chosen_branches(names: Json) -> list[Json]:
    """Return the names of branches in the answer of a router."""
    if isinstance(names, dict):
        names = names.get("branches", names.get("output"))
    listed = [names] if isinstance(names, str) else names
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
