"""Approvals, and the pause rules of a state machine before them."""

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep, Rule
from asl.dialects.flujo.machine.build_context import RESULT, Failing, Then
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["approval", "approval_entry"]


def approval(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build an Approval, and the rules of a pause before it."""
    name = states.name(step)
    flags = literal(step.flags) if step.flags else None
    answer = f"{RESULT}.approval"
    output = states.closing(states.call("answered", literal(step.name), answer, flags), then)
    states.put(name, _approval(states, step, output) | states.going(then), step.pointer)
    if _leaves(states, step):
        _pausing(states, step, name, flags)


def approval_entry(states: States, step: BlueprintStep) -> str:
    """Return the first state of an approval: its pause rules if they may lead away."""
    name = states.name(step)
    return f"{name}:pause" if _leaves(states, step) else name


def _approval(states: States, step: BlueprintStep, output: str) -> dict[str, Json]:
    message = step.value.get("message")
    if message is None and isinstance(step.value.get("input"), str):
        message = step.value["input"]
    prompt: str = message or step.name
    if "{{" in prompt or "{%" in prompt:
        prompt = query(states.text(prompt))
    return {"Type": "Approval", "Prompt": prompt, "Options": ["*"], "Output": query(output)}


def _pausing(states: States, step: BlueprintStep, name: str, flags: str | None) -> None:
    """Build the rules of a pause, and the question for each state that they lead to."""
    assert states.state is not None
    state, entry = states.state, f"{name}:pause"
    states.whole.taken.add(entry)
    options = {
        key: value
        for key, value in (
            ("expressions", states.options.expressions),
            ("pause", states.options.pause if states.options.pause == "runtime" else ""),
        )
        if value
    }
    choices: list[Json] = []
    default: dict[str, Json] = {"Next": name}
    for rule in _ways(states, step):
        way = _paused(states, step, rule, name, flags) if rule.target != state.name else default
        if rule.when is None:
            default = way
            break
        said = literal(options) if options else None
        condition = states.call("pausing", literal(rule.when), said)
        made = {"Condition": query(condition), **way}
        states.whole.origins.append((made, rule.pointer))
        choices.append(made)
    if not choices:
        states.put(entry, {"Type": "Pass"} | default, step.pointer)
        return
    choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
    if "Output" in default:
        choice["Output"] = default["Output"]
    states.put(entry, choice | {"Default": default["Next"]}, step.pointer)


def _paused(
    states: States, step: BlueprintStep, rule: Rule, name: str, flags: str | None
) -> dict[str, Json]:
    """Return the way to a question whose answer begins another state."""
    assert states.state is not None
    asked = states.questions.get((name, rule.target))
    if asked is None:
        asked = states.whole.name(f"{name[:40]}>{rule.target}")
        states.questions[name, rule.target] = asked
        output = states.call("resume", f"{RESULT}.approval", flags)
        following = {"Next": states.state.targets[rule.target]}
        states.put(asked, _approval(states, step, output) | following, step.pointer)
    return {"Output": query(states.call("pause", literal(rule.target))), "Next": asked}


def _leaves(states: States, step: BlueprintStep) -> bool:
    """Whether a pause may lead to another state."""
    return states.state is not None and any(
        rule.target != states.state.name for rule in _ways(states, step)
    )


def _ways(states: States, step: BlueprintStep) -> list[Rule]:
    """Return the rules of a pause, up to the first one that always holds."""
    if states.state is None:
        return []
    return states.state.machine.tried(states.state.name, "pause")
