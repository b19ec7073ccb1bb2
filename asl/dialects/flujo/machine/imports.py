"""Steps that run an imported blueprint: a Parallel of one branch, with a context of its own."""

from collections.abc import Mapping
from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.data import RESULT, call, merged
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
    settings = _settings(step)
    asks = any(each.kind == "hitl" for each in child.all_steps)
    bare = not asks and "updates" not in settings
    end = Then(None, keeps=not bare, bare=bare)
    start = branch.sequence(child.steps, end, None)
    if start is None:
        start = branch.nothing(name, end)
    scope = states.scope(name)
    begun = call("import", scope.data, states.given(step, name), literal(settings))
    inner = f"{RESULT}[0]"
    context = scope.context
    if settings.get("updates"):
        context = call("returned", context, inner, literal(settings))
    also = {"resume_input": f"{inner}.resume_input"} if asks else {}
    flags = {key: each for key, each in step.flags.items() if key == "sink_to"}
    state: dict[str, Json] = {
        "Type": "Parallel",
        "Arguments": query(begun),
        "Branches": [branch.machine(start)],
    }
    instead = str(step.config.get("on_failure", "abort"))
    if instead in INSTEAD:
        output = states.done(step, literal(INSTEAD[instead]), then, name)
        caught = {"ErrorEquals": ["States.ALL"], "Output": output}
        state["Catch"] = [{**caught, "Next": states.target(then)}]
    elif failing is not None:
        state["Catch"] = states.catch(step, failing, name)
    result = inner if bare else f"{inner}.previous_step"
    state["Output"] = states.done(
        step, result, then, name, context=merged([context]), flags=flags, also=also
    )
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
    return found
