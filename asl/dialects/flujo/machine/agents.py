"""Steps that ask an agent: its Task, and the fallback that is asked when it fails."""

import math

from asl.core.values import Json
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.builtin_skills import BUILTINS
from asl.dialects.flujo.machine.data import RESULT, call
from asl.dialects.flujo.machine.states import States

__all__ = ["ANSWER", "agentic", "asking"]

ANSWER = call("answer", RESULT)
"""The answer of an agent, without its usage."""


def agentic(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Task of an agent that plans and calls its tools itself."""
    name = states.name(step)
    states.found(
        "FL-AGENTIC",
        "the planner and its tools become one agent",
        step.pointer,
        f"bind {step.value['planner']!r} to an agent that plans and calls its tools itself",
    )
    arguments: dict[str, Json] = {
        "input": states.argument(step, name),
        "context": query(states.shared(name)),
    }
    registry = step.value.get("registry")
    if registry:
        arguments["registry"] = handed(registry)
    asking(states, step, name, step.value["planner"], arguments, then, failing)


def asking(
    states: States,
    step: BlueprintStep,
    name: str,
    agent: str,
    arguments: dict[str, Json],
    then: Then,
    failing: Failing | None,
    output: Json = None,
) -> None:
    """Build the Task of an agent.

    Args:
        states: The states of its machine.
        step: The step.
        name: Name of the state.
        agent: Name of the agent.
        arguments: What it gets.
        then: The transition of a success.
        failing: The transition of a failure.
        output: The data behind it, by default with the output of the step.
    """
    state: dict[str, Json] = {"Type": "Task", "Agent": agent, "Arguments": arguments}
    if step.timeout is not None and step.timeout > 0:
        state["TimeoutSeconds"] = max(1, math.ceil(step.timeout))
    if step.retries:
        state["Retry"] = [
            {
                "ErrorEquals": ["States.ALL"],
                "IntervalSeconds": 0,
                "MaxAttempts": step.retries,
                "BackoffRate": 1,
            }
        ]
    fallback = step.fallback
    state["Output"] = states.done(step, ANSWER, then, name) if output is None else output
    state |= states.going(then)
    states.put(name, state, step.pointer)
    if fallback is not None:
        state["Catch"] = [
            {
                "ErrorEquals": ["States.ALL"],
                "Output": query(states.scope(name).data),
                "Next": _rescue(states, step, fallback, arguments, then, failing),
            }
        ]
    elif failing is not None:
        state["Catch"] = states.catch(step, failing, name)


def _rescue(
    states: States,
    step: BlueprintStep,
    fallback: BlueprintStep,
    arguments: dict[str, Json],
    then: Then,
    failing: Failing | None,
) -> str:
    """Build a fallback: it gets the input of the step, and its output is that of the step."""
    name = states.name(fallback)
    agent = fallback.agent
    value = states.value
    states.value = states.opened
    own = fallback.value.get("input") or step.value.get("input")
    given = states.value
    if own is not None:
        given = states.given(fallback if fallback.value.get("input") is not None else step, name)
    if agent is None or agent.replace(":", ".") in BUILTINS:
        output = states.done(step, given, then, name)
        state = {"Type": "Pass", "Output": output} | states.going(then)
        states.put(name, state, fallback.pointer)
        states.value = value
        return name
    handed_on = {**arguments, "input": query(given)}
    handed_on["context"] = query(states.shared(name))
    handed_on.pop("params", None)
    if fallback.params:
        handed_on["params"] = handed(dict(fallback.params))
    on_failure = failing and failing.within(step.name)
    asking(
        states, fallback, name, agent, handed_on, then, on_failure,
        states.done(step, ANSWER, then, name),
    )  # fmt: skip
    states.value = value
    return name
