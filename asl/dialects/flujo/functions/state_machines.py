"""State machines: their transitions, the states that steps request, and their pauses.

`machine` in the data has the latest transition (`from` a state, `on` an event), the number of hops,
and the `input` of every state where no other place has it. States that ask
a person behind other steps also have `main`: the context and the steps at their start.
"""

from collections.abc import Mapping
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import FlujoConditionError, compile_expression
from asl.dialects.flujo.functions.pipeline_data import (
    Data,
    names_of,
    open_data,
    requested_state,
    value_at,
)

__all__ = [
    "condition_holds",
    "end_inner",
    "end_machine",
    "enter_state",
    "hops_are_exhausted",
    "next_state",
    "restore_snapshot",
    "resumes_in",
    "start_inner",
    "start_machine",
    "stop_at",
    "store_snapshot",
]

_ABSENT: Final = object()


def start_machine(data: Json, value: Any = _ABSENT) -> Data:
    """Return the data at the start of a machine; *value* is its input, where states read it."""
    found = {key: each for key, each in open_data(data).items() if key != "failure"}
    return {**found, "machine": {} if value is _ABSENT else {"input": value}}


def resumes_in(data: Data, state: str | None = None) -> bool:
    """Return whether the context names a state to begin in, or any text without *state*."""
    current = data["context"].get("current_state")
    if not isinstance(current, str):
        current = value_at(data["context"], "scratchpad.current_state")
    return isinstance(current, str) if state is None else current == state


def enter_state(
    data: Data, state: str, event: str | None = None, options: Mapping[str, Json] | None = None
) -> Data:
    """Return the data at the start of a state.

    Args:
        data: The data before.
        state: The state, which the context names then.
        event: The event that the transition follows.
        options: `asks` stores the context and the steps of now; `scratchpad` also names the state
            in `scratchpad.current_state` (Flujo, design of declarative transitions, 6.3); with
            `next_state` of `engine` the latest `next_state` remains.
    """
    options, before = options or {}, data.get("machine", {})
    context: Data = data["context"]
    machine = {
        **before,
        "from": context.get("current_state") if event else None,
        "on": event,
        "hops": before.get("hops", 0) + 1,
    }
    if options.get("next_state") != "engine":
        context = _without_request(context)
    elif event:
        context = {**context, "next_state": state}
    context = _in_state(context, state, options)
    if options.get("asks"):
        machine["main"] = {"context": context, "steps": data["steps"]}
    return {**data, "context": context, "machine": machine}


def _in_state(context: Data, state: str, options: Mapping[str, Json]) -> Data:
    """Return a context that names the current state."""
    scratchpad = context.get("scratchpad")
    known = scratchpad if isinstance(scratchpad, dict) else {}
    if options.get("scratchpad") or "current_state" in known:
        context = {**context, "scratchpad": {**known, "current_state": state}}
    return {**context, "current_state": state}


def _without_request(context: Data) -> Data:
    """Return a context without a `next_state`."""
    after = {key: each for key, each in context.items() if key != "next_state"}
    scratchpad = after.get("scratchpad")
    if isinstance(scratchpad, dict) and "next_state" in scratchpad:
        kept = {key: each for key, each in scratchpad.items() if key != "next_state"}
        after["scratchpad"] = kept
    return after


def hops_are_exhausted(data: Data, cap: int) -> bool:
    """Return whether a machine has made all its hops."""
    hops: int = data.get("machine", {}).get("hops", 0)
    return hops >= cap


def stop_at(data: Data, state: str) -> Data:
    """Return the data of a machine that stops before a state."""
    return {**data, "context": end_machine(data["context"], state)}


def end_machine(context: Data, state: str, options: Mapping[str, Json] | None = None) -> Data:
    """Return the context behind a machine that ends in a state."""
    return {**_in_state(context, state, options or {}), "next_state": state}


def next_state(data: Data, steps: list[str]) -> str | None:
    """Return the state requested with `next_state`, None without a request.

    Args:
        data: The data.
        steps: The names of the steps of the current state, whose outputs may request one.
    """
    found = requested_state(data["context"])
    outputs = (data["steps"].get(name) for name in reversed(steps))
    for output in outputs if found is None else ():
        found = requested_state(output) if isinstance(output, dict) else None
        if found is not None:
            break
    return found


# --------------------------------------------------------------------------------------------
# Nested machines

_CONTROL: Final = ("current_state", "next_state")


def start_inner(data: Json) -> Data:
    """Return the data at the start of a nested machine, which has its own control fields."""
    found = open_data(data)
    kept = {key: each for key, each in found["context"].items() if key not in _CONTROL}
    return {**found, "context": kept}


def end_inner(context: Data, behind: Data) -> Data:
    """Return the context after a nested machine, with the control fields of the outer one."""
    kept = {key: each for key, each in behind.items() if key not in _CONTROL}
    return {**kept, **{key: context[key] for key in _CONTROL if key in context}}


# --------------------------------------------------------------------------------------------
# Rules and pauses


def condition_holds(data: Json, condition: str, output: Json = None, mode: str = "") -> bool:
    """Return whether a condition holds; a failed one does not.

    Args:
        data: The data.
        condition: The condition.
        output: The value of `output` and `previous_step`.
        mode: How values compare.
    """
    try:
        return bool(compile_expression(condition, mode).value(names_of(open_data(data), output)))
    except (FlujoConditionError, ExpressionFault):
        return False


def store_snapshot(data: Data) -> Data:
    """Return the data with the context and the outputs of now, for a pause within the state."""
    main = {"context": data["context"], "steps": data["steps"]}
    return {**data, "machine": {**data.get("machine", {}), "main": main}}


def restore_snapshot(data: Data) -> Data:
    """Return the data without the effects of the current state."""
    return {**data, **data["machine"]["main"]}
