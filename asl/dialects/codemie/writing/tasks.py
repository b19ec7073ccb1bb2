"""Tasks, and what stands in for states without a counterpart: states that run an actor."""

import re
from collections.abc import Mapping
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.codemie.tasks import RETRIED
from asl.dialects.codemie.writing.machine import Machine, State
from asl.dialects.codemie.writing.texts import arguments, instruction
from asl.dialects.names import lost_integration

__all__ = ["stand_in", "stored", "task"]

_STANDS_IN: Final = {
    "Debate": "L-DEBATE",
    "Include": "L-INCLUDE",
    "Workflow": "L-INCLUDE",
}
MOST_ATTEMPTS: Final = 100
MOST_BACKOFF: Final = 10
"""Bounds of a policy."""


def task(machine: Machine, name: str, state: State) -> None:
    """Write a Task: an agent becomes an assistant or a tool, a resource a tool."""
    field = "Agent" if "Agent" in state else "Resource"
    agent = str(state.get(field))
    tool = field == "Resource" or machine.workflow.is_tool(agent)
    actor = machine.workflow.actor(agent, tool, machine.at(name, field))
    told = lost_integration(agent)
    if told is not None:
        machine.lost("L-INTEGRATION", told, machine.at(name, field), "a tool of the same name")
    given = state.get("Arguments", state.get("Parameters"))
    where = machine.at(name, "Arguments" if "Arguments" in state else "Parameters")
    made: dict[str, Json] = {"id": machine.id(name), "tool_id" if tool else "assistant_id": actor}
    if not tool:
        made["task"] = instruction(machine, name, state, given, where)
        made["resolve_dynamic_values_in_prompt"] = True
    elif type(given) is dict:
        made["tool_args"] = arguments(machine, given, where, template="Arguments" not in state)
    elif given is not None:
        machine.lost("L-PARAMETERS", "a tool takes an object", where, "the tool gets the context")
    made["retry_policy"] = _policy(machine, name, state)
    made["next"] = machine.going(name, state, stored(machine, name, state))
    machine.add(name, made)


def stand_in(machine: Machine, name: str, state: State) -> None:
    """Put an assistant where something stands that has no counterpart."""
    kind, where = str(state["Type"]), machine.at(name)
    machine.lost(
        _STANDS_IN[kind],
        f"there are no {kind} states there",
        where,
        "an assistant of its name",
    )
    topic = state.get("Topic", state.get("Comment", name))
    machine.add(
        name,
        {
            "id": machine.id(name),
            "assistant_id": machine.workflow.actor(name, False, where),
            "task": topic if type(topic) is str else name,
            "retry_policy": _policy(machine, name, state),
            "next": machine.going(name, state, stored(machine, name, state)),
        },
    )


def stored(machine: Machine, name: str, state: State) -> dict[str, Json]:
    """Return the flags that write a result where its state writes it."""
    where = machine.at(name, "ResultPath")
    if "ResultPath" not in state or state["ResultPath"] == "$":
        pointer = where if "ResultPath" in state else machine.at(name)
        machine.lost("L-REPLACE", "the platform keeps the context from before", pointer)
        return {"clear_context_store": "keep_current"}
    path = state["ResultPath"]
    if path is None:
        return {"store_in_context": False}
    keys = re.findall(r"[A-Za-z_]\w*", str(path))
    if not keys:
        machine.lost("L-DEEP", f"no key of the context is {path!r}", where, "nothing is written")
        return {"store_in_context": False}
    if len(keys) > 1 or "[" in str(path):
        message = "results are written to keys of the context"
        machine.lost("L-DEEP", message, where, f"to {keys[0]!r}")
    message = f"a result is kept as text under {keys[0]!r}, and the keys of an object beside it"
    machine.lost("L-ROOTMERGE", message, where)
    return {"output_key": keys[0]}


def _policy(machine: Machine, name: str, state: State) -> dict[str, Json]:
    """Return the one policy that comes nearest to the retriers of a state."""
    where = machine.at(name, "Retry")
    retriers = [
        each
        for each in state.get("Retry", ())
        if type(each) is dict and _number(each, "MaxAttempts", 3) != 0
    ]
    if not retriers:
        if state.get("Retry"):
            machine.lost("L-RETRY-NAMES", "a policy has no error names", where)
        return {"max_attempts": 1}
    widest = max(retriers, key=lambda each: _number(each, "MaxAttempts", 3))
    names = {error for each in state["Retry"] for error in each.get("ErrorEquals", ())}
    if len(state["Retry"]) > 1 or names != {*RETRIED}:
        machine.lost(
            "L-RETRY-NAMES",
            "a policy has no error names: the platform tries again what may pass",
            where,
            "one policy, with the most attempts",
        )
    made: dict[str, Json] = {
        "max_attempts": min(MOST_ATTEMPTS, int(_number(widest, "MaxAttempts", 3)) + 1),
        "initial_interval": _number(widest, "IntervalSeconds", 1),
        "backoff_factor": min(MOST_BACKOFF, max(1, _number(widest, "BackoffRate", 2.0))),
    }
    longest = "MaxDelaySeconds" if "MaxDelaySeconds" in widest else "MaxIntervalSeconds"
    if longest in widest:
        made["max_interval"] = _number(widest, longest, 128)
    return made


def _number(retrier: Mapping[str, Any], field: str, default: float) -> float:
    """Return a number of a retrier, the default where it is a parameter that is not filled in."""
    value = retrier.get(field, default)
    return value if type(value) in (int, float) else default
