"""Loops: a Choice behind their body leads back to it."""

from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.loop_state import LoopState, read_loop_state
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.conditionals import deciding
from asl.dialects.flujo.machine.conditions import fails, print_condition, reads_output
from asl.dialects.flujo.machine.data import INPUT, PREVIOUS, call, merged, path
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["loop"]

FAILED: Final = "Flujo.StepFailed"
DEFAULT_LOOPS: Final = 5
"""Maximum of rounds of a loop with a condition and without a maximum."""


def loop(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the body of a loop, and the Choice that leads back to it."""
    name, spec = states.name(step), step.spec
    again = f"{name}:again"
    states.whole.taken.add(again)
    condition, function = spec.get("exit_expression"), spec.get("exit_condition")
    limited = condition is not None or function is not None
    most = spec.get("max_loops", DEFAULT_LOOPS if limited else 1)
    coded = condition is None and function is not None
    following = f"{name}:until" if coded else again
    states.whole.taken.add(following)
    around = read_loop_state(step)
    body = step.body("loop", "body")
    start: dict[str, Json] = {"Type": "Pass", "Output": _begun(states, step, around)}
    states.put(name, start, step.pointer)
    states.value = PREVIOUS
    within = failing and failing.within(step.name)
    start["Next"] = states.sequence(body.steps, Then(following), within)
    if coded:
        deciding(states, step, str(function), again, failing)
    flags = step.flags
    result = states.value
    if around.output is not None:
        result = call("output", INPUT, literal(around.output), states.value)
    output = states.done(step, result, then, again, flags=flags)
    if not limited and most == 1:
        leaving: dict[str, Json] = {"Type": "Pass", "Output": output}
        states.put(again, leaving | states.going(then), step.pointer)
        return
    choices: list[Json] = []
    if condition is not None:
        given = _evaluated(states, condition)
        if fails(condition, states.options.expressions):
            cause = literal("the exit expression fails")
            failed = states.fail(step, failing, FAILED, cause, again)
            choices.append({"Condition": query(call("fails", *given)), **failed})
        said = print_condition(condition, states.names(again, states.value))
        holds = said or call("when", *given)
        rule = {"Condition": query(holds), "Output": output, "Next": states.target(then)}
        choices.append(rule)
        states.whole.origins.append((rule, step.at("loop", "exit_expression")))
    elif function is not None:
        holds = f"{INPUT}.decision = 'true'"
        rule = {"Condition": query(holds), "Output": output, "Next": states.target(then)}
        choices.append(rule)
    choices.append(
        {
            "Condition": query(f"{_rounds(step)} < {most}"),
            "Output": _next_round(states, step, around),
            "Next": start["Next"],
        }
    )
    cause = literal(f"the loop is not over after {most} rounds")
    failed = states.fail(step, failing, FAILED, cause, again)
    choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
    if "Output" in failed:
        choice["Output"] = failed["Output"]
    states.put(again, choice | {"Default": failed["Next"]}, step.pointer)


def _rounds(step: BlueprintStep) -> str:
    return path(INPUT, "rounds", step.name)


def _begun(states: States, step: BlueprintStep, around: LoopState) -> str:
    """Return the data at the start of the first round."""
    scope = states.scope(states.name(step))
    data = scope.data
    if around.first:
        data = call("prepared", data, literal(around.first), states.value)
    counted = merged([] if scope.data != INPUT else [f"{INPUT}.rounds"])
    members = {"previous_step": states.value, "rounds": merged([counted, {step.name: "1"}])}
    return query(merged([data, members]))


def _next_round(states: States, step: BlueprintStep, around: LoopState) -> str:
    """Return the data at the start of the next round."""
    data, value = INPUT, states.value
    if around.between.get("state"):
        data = call("prepared", data, literal(around.between["state"]), value)
    wanted = around.between.get("next_input")
    if wanted == "context":
        value = f"{data}.context"
    elif wanted is not None:
        value = call("next", data, literal(wanted), value)
    count = f"{_rounds(step)} + 1"
    members = {"rounds": merged([f"{INPUT}.rounds", {step.name: count}])}
    if value != PREVIOUS:
        members["previous_step"] = value
    return query(merged([data, members]))


def _evaluated(states: States, condition: str) -> tuple[Json, ...]:
    """Return the arguments of a function that evaluates the condition of a loop."""
    value = states.value if reads_output(condition) else "null"
    mode = states.options.expressions
    return INPUT, literal(condition), value, literal(mode) if mode else None
