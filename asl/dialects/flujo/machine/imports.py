"""Steps that run an imported blueprint: a Parallel of one branch, with a context of its own."""

from collections.abc import Mapping
from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.machine.build_context import RESULT, Failing, Then
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["importing"]

INSTEAD: Final[Mapping[str, Json]] = {"skip": None, "continue_with_default": {}}
"""Result of a failed blueprint if its step does not fail."""


def importing(
    states: States, step: BlueprintStep, child: Blueprint, then: Then, failing: Failing | None
) -> None:
    """Build the states of an imported blueprint."""
    name = states.name(step)
    branch = states.importing(name, child)
    start = branch.sequence(child.steps, Then(None), None)
    if start is None:
        start = states.whole.part(name, "nothing")
        branch.states[start] = {"Type": "Pass", "End": True}
    settings = literal(_settings(step))
    begun = states.call("import", states.given(step, name), settings)
    returned = states.call("returned", literal(step.name), f"{RESULT}[0]", settings)
    state: dict[str, Json] = {
        "Type": "Parallel",
        "Arguments": query(begun),
        "Branches": [branch.machine(start)],
    }
    instead = str(step.config.get("on_failure", "abort"))
    if instead in INSTEAD:
        output = states.closing(states.done(step, literal(INSTEAD[instead])), then)
        caught = {"ErrorEquals": ["States.ALL"], "Output": query(output)}
        state["Catch"] = [{**caught, "Next": states.target(then)}]
    elif failing is not None:
        state["Catch"] = states.catch(step, failing)
    state["Output"] = query(states.closing(returned, then))
    states.put(name, state | states.going(then), step.pointer)


def _settings(step: BlueprintStep) -> dict[str, Json]:
    config = step.config
    found: dict[str, Json] = {}
    if config.get("inherit_context") is True:
        found["inherit"] = True
    if config.get("input_to") is not None:
        found["to"] = config["input_to"]
    if config.get("input_scratchpad_key"):
        found["key"] = config["input_scratchpad_key"]
    if step.value.get("updates_context") is True:
        found["updates"] = True
        if config.get("outputs") is not None:
            found["outputs"] = [*step.outputs]
    if "sink_to" in step.flags:
        found["sink_to"] = step.flags["sink_to"]
    return found
