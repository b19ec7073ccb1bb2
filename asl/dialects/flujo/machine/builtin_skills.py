"""Built-in skills that need no agent."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from asl.core.values import Json
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.machine.build_context import Then
from asl.dialects.flujo.machine.data import call, merged
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["BUILTINS", "CONFIRMATION"]

Builtin: TypeAlias = Callable[[States, BlueprintStep, Then, str], Json]


def _parameters(step: BlueprintStep) -> Mapping[str, Json] | None:
    """Return the parameters of a skill that reads or writes the context."""
    held = step.params or step.value.get("input")
    return held if isinstance(held, dict) and isinstance(held.get("path"), str) else None


def _set(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    held = _parameters(step)
    if held is None:
        return None
    value, context = literal(held.get("value")), states.scope(name).context
    target = str(held["path"]).removeprefix("context.")
    if "." in target:
        after = call("put", context, literal(target), value, "true")
    else:
        after = merged([context, {target: value}])
    return states.done(step, value, then, name, context=after, flags={})


def _merge(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    held = _parameters(step)
    if held is None:
        return None
    value, context = literal(held.get("value")), states.scope(name).context
    target = str(held["path"]).removeprefix("context.")
    after = call("merge", context, literal(target), value)
    return states.done(step, value, then, name, context=after, flags={})


def _get(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    held = _parameters(step)
    if held is None:
        return None
    target = str(held["path"]).removeprefix("context.")
    default = literal(held["default"]) if held.get("default") is not None else None
    found = call("get", states.scope(name).context, literal(target), default)
    return states.done(step, found, then, name)


def _pass(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    return states.done(step, states.given(step, name), then, name)


def _stringify(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    return states.done(step, call("stringify", states.given(step, name)), then, name)


def _confirm(states: States, step: BlueprintStep, then: Then, name: str) -> Json:
    return states.done(step, call("confirmed", states.value), then, name)


CONFIRMATION: Final = "flujo.builtins.check_user_confirmation"
BUILTINS: Final[Mapping[str, Builtin]] = {
    "flujo.builtins.context_set": _set,
    "flujo.builtins.context_merge": _merge,
    "flujo.builtins.context_get": _get,
    "flujo.builtins.passthrough": _pass,
    "flujo.builtins.stringify": _stringify,
    CONFIRMATION: _confirm,
}
"""The outputs of built-in skills that need no agent; None if a parameter is missing."""
