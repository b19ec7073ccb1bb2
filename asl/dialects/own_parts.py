"""Documents without what only their dialect has: its data in `Metadata`, groups of errors."""

from collections.abc import Mapping
from typing import Any

from asl.core.codes import error_group
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["remove_own_parts"]


def remove_own_parts(value: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a document without what other languages have no use for.

    Args:
        value: Value of a document that was read from a dialect.
        namespace: Namespace of the dialect.

    Returns:
        The document without the dialect's member of `Metadata`, and with the errors that its
        groups match in place of the groups.
    """
    metadata = {key: each for key, each in value.get("Metadata", {}).items() if key != namespace}
    rest = {key: each for key, each in value.items() if key != "Metadata"}
    if metadata:
        rest["Metadata"] = metadata
    return _without_groups(rest)


def _without_groups(machine: Mapping[str, Any]) -> dict[str, Any]:
    return {**machine, "States": {name: _state(each) for name, each in machine["States"].items()}}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(state)
    for field in ("Retry", "Catch"):
        if type(state.get(field)) is list:
            made[field] = [_handler(each) for each in state[field]]
    if type(state.get("Branches")) is list:
        made["Branches"] = [*state["Branches"]]
    for (key, *index), inner in nested_machines(state):
        found = _without_groups(inner)
        if index:
            made[str(key)][index[0]] = found
        else:
            made[str(key)] = found
    return made


def _handler(handler: Json) -> Json:
    if type(handler) is not dict or type(handler.get("ErrorEquals")) is not list:
        return handler
    names: dict[str, None] = {}
    for name in handler["ErrorEquals"]:
        group = error_group(name)
        names |= dict.fromkeys((name,) if group is None else group.matches)
    return {**handler, "ErrorEquals": [*names]}
