"""Steps of the usual kind, and those whose result is cached."""

from asl.core.values import Json
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.machine.agents import asking
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.builtin_skills import BUILTINS
from asl.dialects.flujo.machine.imports import importing
from asl.dialects.flujo.machine.states import States

__all__ = ["cached", "cached_entry", "passing", "work"]


def work(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build a step of the usual kind."""
    child = states.blueprint.of(step)
    if child is not None:
        importing(states, step, child, then, failing)
        return
    name = states.name(step)
    agent = step.agent
    if agent is None:
        passing(states, step, states.given(step, name), then)
        return
    build = BUILTINS.get(agent.replace(":", "."))
    made = build(states, step, then, name) if build is not None else None
    if made is not None:
        states.put(name, {"Type": "Pass", "Output": made} | states.going(then), step.pointer)
        return
    arguments: dict[str, Json] = {
        "input": states.argument(step, name),
        "context": query(states.shared(name)),
    }
    if step.params:
        arguments["params"] = handed(dict(step.params))
    asking(states, step, name, agent, arguments, then, failing)


def passing(states: States, step: BlueprintStep, value: str, then: Then) -> None:
    """Build a step that calls no agent."""
    name = states.name(step)
    output = states.done(step, value, then, name)
    states.put(name, {"Type": "Pass", "Output": output} | states.going(then), step.pointer)


def cached(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the step that a cache wraps."""
    states.built(step.wrapped, then.closing(step.name), failing)


def cached_entry(states: States, step: BlueprintStep) -> str:
    """Return the first state of the step that a cache wraps."""
    return states.entry(step.wrapped)
