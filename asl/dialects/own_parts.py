"""Documents without what only their own dialect has: its data in `Metadata`, its errors."""

from collections.abc import Mapping
from typing import Any

from asl.core.codes import error_names_of
from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["remove_own_parts"]


def remove_own_parts(value: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a document without what other languages have no use for.

    Args:
        value: Value of a document that was read from a dialect.
        namespace: Namespace of the dialect.

    Returns:
        The document without the dialect's member of `Metadata`, and without retriers that only
        exempt errors of the dialect from other retriers.
    """
    metadata = {key: each for key, each in value.get("Metadata", {}).items() if key != namespace}
    rest = {key: each for key, each in value.items() if key != "Metadata"}
    if metadata:
        rest["Metadata"] = metadata
    own = {each.name for each in error_names_of(namespace)}
    return _without_exemptions(rest, own)


def _without_exemptions(machine: Mapping[str, Any], own: set[str]) -> dict[str, Any]:
    states = {name: _state(state, own) for name, state in machine["States"].items()}
    return {**machine, "States": states}


def _state(state: Mapping[str, Any], own: set[str]) -> dict[str, Any]:
    made = dict(state)
    if type(state.get("Retry")) is list:
        made["Retry"] = [each for each in state["Retry"] if not _exempts(each, own)]
    if type(state.get("Branches")) is list:
        made["Branches"] = [*state["Branches"]]
    for (field, *index), inner in nested_machines(state):
        found = _without_exemptions(inner, own)
        if index:
            made[str(field)][index[0]] = found
        else:
            made[str(field)] = found
    return made


def _exempts(retrier: Json, own: set[str]) -> bool:
    return (
        isinstance(retrier, dict)
        and retrier.get("MaxAttempts") == 0
        and own.issuperset(retrier["ErrorEquals"])
    )
