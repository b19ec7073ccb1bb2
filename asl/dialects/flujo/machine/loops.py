"""Steps that go round: a Choice behind their body leads back to it."""

from typing import Final

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep
from asl.dialects.flujo.conditions import fails, plain
from asl.dialects.flujo.loop_state import read_loop_state
from asl.dialects.flujo.machine.build_context import INPUT, Failing, Then
from asl.dialects.flujo.machine.conditionals import deciding
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["loop"]

FAILED: Final = "Flujo.StepFailed"
DEFAULT_LOOPS: Final = 5
"""How often a loop runs that says when it is over, but not how often at most."""


def loop(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the body of a loop, and the Choice that leads back to it."""
    name, spec = states.name(step), step.spec
    body = step.body("loop", "body")
    again = f"{name}:again"
    states.whole.taken.add(again)
    condition, function = spec.get("exit_expression"), spec.get("exit_condition")
    limited = condition is not None or function is not None
    most = spec.get("max_loops", DEFAULT_LOOPS if limited else 1)
    way = failing and Failing(failing.next, failing.step or step.name)
    following = f"{name}:until" if condition is None and function else again
    states.whole.taken.add(following)
    first = states.sequence(body.steps, Then(following), way)
    around = read_loop_state(step)
    begun = states.call("loop", literal(step.name), literal(around.first) if around.first else None)
    start = {"Type": "Pass", "Output": query(begun)}
    states.put(name, start | {"Next": first}, step.pointer)
    if following != again:
        deciding(states, step, str(function), again, failing)
    flags = step.flags if around.output is None else {**step.flags, "output": around.output}
    leaving = states.call("looped", literal(step.name), literal(flags) if flags else None)
    output = query(states.closing(leaving, then))
    if not limited and most == 1:
        states.put(again, {"Type": "Pass", "Output": output} | states.going(then), step.pointer)
        return
    choices: list[Json] = []
    if condition is not None:
        over = states.call("until", literal(condition), states.mode())
        if fails(condition, states.options.expressions):
            cause = literal("the exit expression fails")
            failed = states.fail(step, failing, FAILED, cause)
            choices.append({"Condition": query(f"{over} = null"), **failed})
        said = plain(condition, "previous_step")
        holds = f"{over} = true" if said is None else said
        rule = {"Condition": query(holds), "Output": output, "Next": states.target(then)}
        choices.append(rule)
        states.whole.origins.append((rule, step.at("loop", "exit_expression")))
    elif function is not None:
        holds = f"{INPUT}.decision = 'true'"
        rule = {"Condition": query(holds), "Output": output, "Next": states.target(then)}
        choices.append(rule)
    rounds = states.call("rounds", literal(step.name))
    between = literal(around.between) if around.between else None
    choices.append(
        {
            "Condition": query(f"{rounds} < {most}"),
            "Output": query(states.call("again", literal(step.name), between)),
            "Next": first,
        }
    )
    cause = literal(f"the loop is not over after {most} rounds")
    failed = states.fail(step, failing, FAILED, cause)
    choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
    if "Output" in failed:
        choice["Output"] = failed["Output"]
    states.put(again, choice | {"Default": failed["Next"]}, step.pointer)
