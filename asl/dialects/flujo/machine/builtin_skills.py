"""Built-in skills that need no agent, in JSONata."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["BUILTINS", "CONFIRMATION"]

Builtin: TypeAlias = Callable[[States, BlueprintStep, str], str | None]


def _written(function: str) -> Builtin:
    def build(states: States, step: BlueprintStep, name: str) -> str | None:
        held = step.params or step.value.get("input")
        if not isinstance(held, dict) or not isinstance(held.get("path"), str):
            return None
        value = literal(held.get("value"))
        return states.call(function, literal(step.name), literal(held["path"]), value)

    return build


def _got(states: States, step: BlueprintStep, name: str) -> str | None:
    held = step.params or step.value.get("input")
    if not isinstance(held, dict) or not isinstance(held.get("path"), str):
        return None
    default = literal(held["default"]) if held.get("default") is not None else None
    return states.done(step, states.call("get", literal(held["path"]), default))


CONFIRMATION: Final = "flujo.builtins.check_user_confirmation"
BUILTINS: Final[Mapping[str, Builtin]] = {
    "flujo.builtins.context_set": _written("set"),
    "flujo.builtins.context_merge": _written("merge"),
    "flujo.builtins.context_get": _got,
    "flujo.builtins.passthrough": lambda states, step, name: states.done(
        step, states.given(step, name)
    ),
    "flujo.builtins.stringify": lambda states, step, name: states.done(
        step, f"$flujo_stringify({states.given(step, name)})"
    ),
    CONFIRMATION: lambda states, step, name: states.done(step, states.call("confirmed")),
}
"""Builders of built-in skills that need no agent; they return None if a parameter is missing."""
