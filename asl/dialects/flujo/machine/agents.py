"""Steps that ask an agent: its Task, and the fallback that is asked when it fails."""

import math

from asl.core.values import Json
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.machine.build_context import INPUT, RESULT, Failing, Then
from asl.dialects.flujo.machine.builtin_skills import BUILTINS
from asl.dialects.flujo.machine.states import States

__all__ = ["agentic", "asking"]


def agentic(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Task of an agent that plans and calls its tools itself."""
    name = states.name(step)
    states.found(
        "FL-AGENTIC",
        "the whole loop of planner and tools is one agent here",
        step.pointer,
        f"bind {step.value['planner']!r} to an agent that plans and calls its tools itself",
    )
    arguments: dict[str, Json] = {
        "input": query(states.given(step, name)),
        "context": query(states.context(name)),
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
    output: str | None = None,
) -> None:
    """Build the Task of an agent."""
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
    if fallback is not None:
        state["Catch"] = [
            {
                "ErrorEquals": ["States.ALL"],
                "Output": query(INPUT),
                "Next": _rescue(states, step, fallback, arguments, then, failing),
            }
        ]
    elif failing is not None:
        state["Catch"] = states.catch(step, failing)
    found = states.done(step, RESULT) if output is None else output
    state["Output"] = query(states.closing(found, then))
    states.put(name, state | states.going(then), step.pointer)


def _rescue(
    states: States,
    step: BlueprintStep,
    fallback: BlueprintStep,
    arguments: dict[str, Json],
    then: Then,
    failing: Failing | None,
) -> str:
    """Build a fallback: it is given what the step was given, and its result counts."""
    name = states.name(fallback)
    agent = fallback.agent
    own = fallback.value.get("input") is not None
    value = states.given(fallback, name) if own else _unquoted(str(arguments["input"]))
    if agent is None or agent.replace(":", ".") in BUILTINS:
        output = states.closing(states.done(step, value), then)
        state = {"Type": "Pass", "Output": query(output)} | states.going(then)
        states.put(name, state, fallback.pointer)
        return name
    given = {**arguments, "input": query(value)}
    given.pop("params", None)
    if fallback.params:
        given["params"] = handed(dict(fallback.params))
    way = failing and Failing(failing.next, failing.step or step.name)
    asking(states, fallback, name, agent, given, then, way, states.done(step, RESULT))
    return name


def _unquoted(expression: str) -> str:
    return expression.removeprefix("{% ").removesuffix(" %}")
