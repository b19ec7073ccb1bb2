"""Steps that continue with one of their branches."""

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep, StepBody
from asl.dialects.flujo.conditions import fails, plain, yields_boolean
from asl.dialects.flujo.machine.build_context import INPUT, RESULT, Failing, Then
from asl.dialects.flujo.machine.builtin_skills import CONFIRMATION
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["conditional", "deciding"]


def conditional(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Choice of a branch, and the branches."""
    name = states.name(step)
    inner = Then(then.next, (step.name, *then.closes))
    way = failing and Failing(failing.next, failing.step or step.name)
    choice: dict[str, Json] = {"Type": "Choice"}
    function = step.value.get("condition")
    condition = step.value.get("condition_expression")
    if condition is None and function:
        decided = f"{INPUT}.decision"
        if _confirms(function):
            decided = f"$flujo_confirmed({INPUT})"
            states.put(name, choice, step.pointer)
        else:
            deciding(states, step, function, f"{name}:if", failing)
            states.put(f"{name}:if", choice, step.pointer)
    else:
        decided = states.call(
            "key", None if condition is None else literal(condition), states.mode()
        )
        states.put(name, choice, step.pointer)
    choices: list[Json] = []
    bodies = step.branches
    for branch, body in bodies.items():
        made = {"Condition": query(f"{decided} = {literal(branch)}")}
        said = _lowered(states, step, name, condition, branch)
        if said is not None:
            made["Condition"] = query(said)
        choices.append(made | _behind(states, step, body, inner, way))
        states.whole.origins.append((choices[-1], body.pointer))
    choice["Choices"] = choices
    _otherwise(states, step, choice, decided, condition, inner, failing)


def _lowered(
    states: States, step: BlueprintStep, name: str, condition: str | None, branch: str
) -> str | None:
    """Return what decides for a branch where JSONata says so itself."""
    if condition is None or branch not in ("true", "false") or name == states.whole.first:
        return None
    if not yields_boolean(condition):
        return None
    said = plain(condition, "previous_step")
    return said if said is None or branch == "true" else f"$not({said})"


def _behind(
    states: States, step: BlueprintStep, body: StepBody, then: Then, failing: Failing | None
) -> dict[str, Json]:
    """Build the steps behind a rule, and return its way there."""
    data = states.call("data") if states.name(step) == states.whole.first else INPUT
    start = states.sequence(body.steps, then, failing)
    if not body.steps:
        return {"Output": query(states.closing(data, then)), "Next": states.target(then)}
    return ({} if data == INPUT else {"Output": query(data)}) | {"Next": start}


def _otherwise(
    states: States,
    step: BlueprintStep,
    choice: dict[str, Json],
    decided: str,
    condition: str | None,
    then: Then,
    failing: Failing | None,
) -> None:
    """Say what happens where no branch is named."""
    way = failing and Failing(failing.next, failing.step or step.name)
    choices = choice["Choices"]
    assert isinstance(choices, list)
    default = step.default
    unsaid = condition is None and not step.value.get("condition")
    if default is None and unsaid and step.branches:
        default = next(iter(step.branches.values()))
        choices.pop(0)
    elif default is None and condition is not None and _both(states, step, condition):
        last = choices.pop()
        assert isinstance(last, dict)
        choice |= {key: last[key] for key in ("Output",) if key in last}
        choice["Default"] = last["Next"]
        return
    if default is not None:
        if _may_be_nothing(states, step, condition):
            cause = literal("the condition fails or gives null, which names no branch")
            failed = states.fail(step, failing, "Flujo.NoBranch", cause)
            choices.insert(0, {"Condition": query(f"{decided} = null"), **failed})
        made = _behind(states, step, default, then, way)
    else:
        cause = f"'No branch found for ' & $string({decided})"
        made = states.fail(step, failing, "Flujo.NoBranch", cause)
    if "Output" in made:
        choice["Output"] = made["Output"]
    choice["Default"] = made["Next"]
    if not choices:
        name = next(key for key, each in states.states.items() if each is choice)
        kept = {key: each for key, each in made.items() if key == "Output"}
        choice.clear()
        choice |= {"Type": "Pass", **kept, "Next": made["Next"]}
        states.states[name] = choice


def _may_be_nothing(states: States, step: BlueprintStep, condition: str | None) -> bool:
    """Whether what decides may fail or give null, and then fails the step."""
    if condition is None:
        function = str(step.value.get("condition") or "")
        return bool(function) and not _confirms(function)
    return not yields_boolean(condition) or fails(condition, states.options.expressions)


def _confirms(function: str) -> bool:
    return function.replace(":", ".").removesuffix("_sync") == CONFIRMATION


def _both(states: States, step: BlueprintStep, condition: str) -> bool:
    """Whether a condition always names one of two branches."""
    named = {*step.branches} == {"true", "false"} and [*step.branches][-1] in ("true", "false")
    return named and yields_boolean(condition) and not fails(condition, states.options.expressions)


def deciding(
    states: States, step: BlueprintStep, function: str, following: str, failing: Failing | None
) -> None:
    """Build the Task of a function that decides."""
    name = states.name(step) if step.kind == "conditional" else f"{states.name(step)}:until"
    states.whole.taken.add(following)
    states.found(
        "FL-CODE",
        f"{function!r} is code, so an agent of its name is asked",
        step.at("condition") if step.kind == "conditional" else step.at("loop", "exit_condition"),
        "bind an agent of this name, or write an expression",
    )
    state: dict[str, Json] = {
        "Type": "Task",
        "Agent": function,
        "Arguments": {
            "input": query(states.moving(name)),
            "context": query(states.context(name)),
        },
    }
    if failing is not None:
        state["Catch"] = states.catch(step, failing)
    state |= {"Output": query(states.call("decide", RESULT)), "Next": following}
    states.put(name, state, step.pointer)
