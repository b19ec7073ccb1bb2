"""Approvals, and the pause rules of a state machine before them."""

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep, Rule
from asl.dialects.flujo.machine.build_context import EnclosingState, Failing, Then
from asl.dialects.flujo.machine.conditions import Known, Payload, payload_source, print_condition
from asl.dialects.flujo.machine.data import INPUT, LATER, RESULT, call, merged
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["approval", "approval_entry"]

_ANSWER = f"{RESULT}.approval"
_PAUSE: Payload = {"event": Known("pause"), "last_output": Known(None), "last_step": Known(None)}
"""What the rules of a pause read as `output`."""


def approval(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build an Approval, and the rules of a pause before it."""
    name = states.name(step)
    state, leaves = states.state, _leaves(states, step)
    states.asks[approval_entry(states, step)] = step.name
    if state is not None and leaves:
        _Pause(states, state, step, name).built()
    output = states.done(step, _ANSWER, then, name, also={"resume_input": _ANSWER})
    made = _approval(states, step, name) | {"Output": output}
    states.put(name, made | states.going(then), step.pointer)


def approval_entry(states: States, step: BlueprintStep) -> str:
    """Return the first state of an approval: its pause rules if they may lead away."""
    name = states.name(step)
    if not _leaves(states, step):
        return name
    return states.pauses.setdefault(step.pointer, f"{name}:pause")


def _approval(states: States, step: BlueprintStep, name: str) -> dict[str, Json]:
    message = step.value.get("message")
    if message is None and isinstance(step.value.get("input"), str):
        message = step.value["input"]
    prompt: str = message or step.name
    if "{{" in prompt or "{%" in prompt:
        prompt = query(states.text(prompt, name))
    return {"Type": "Approval", "Prompt": prompt, "Options": ["*"]}


def _is_first(state: EnclosingState, step: BlueprintStep) -> bool:
    """Whether a question is the first step of its state, so that nothing is done before it."""
    first = state.machine.states[state.name].steps[0]
    return step.pointer.startswith(first.pointer) and first.kind in ("hitl", "cache")


class _Pause:
    """The rules of a pause, and the question for each state that they lead to."""

    def __init__(
        self, states: States, state: EnclosingState, step: BlueprintStep, name: str
    ) -> None:
        self.states = states
        self.state = state
        self.step = step
        self.name = name
        self.before = INPUT if _is_first(state, step) else call("restored", INPUT)
        """Expression of the data without the effects of the state."""

    def built(self) -> None:
        """Build the Choice."""
        states, entry = self.states, approval_entry(self.states, self.step)
        states.whole.taken.add(entry)
        choice: dict[str, Json] = {"Type": "Choice"}
        states.put(entry, choice, self.step.pointer)
        choices: list[Json] = []
        default: dict[str, Json] = {"Next": self.name}
        for rule in _rules(states):
            transition = self.transition(rule)
            if rule.when is None:
                default = transition
                break
            made = {"Condition": query(self.condition(rule.when)), **transition}
            states.whole.origins.append((made, rule.pointer))
            choices.append(made)
        if not choices:
            choice |= {"Type": "Pass"} | default
            return
        choice["Choices"] = choices
        if "Output" in default:
            choice["Output"] = default["Output"]
        choice["Default"] = default["Next"]

    def condition(self, when: str) -> str:
        options = self.states.options
        data = INPUT if options.pause == "runtime" else self.before
        scope = LATER._replace(data=data, context=f"{data}.context", steps=f"{data}.steps")
        names = self.states.names(self.name, _PAUSE)._replace(scope=scope)
        found = print_condition(when, names)
        mode = literal(options.expressions) if options.expressions else None
        return found or call("when", data, literal(when), payload_source(_PAUSE), mode)

    def transition(self, rule: Rule) -> dict[str, Json]:
        """Return the transition of a rule: to the question whose answer enters a state."""
        if rule.target == self.state.name:
            return {"Next": self.name}
        arrival = self.state.arrive("pause", rule.target)
        asked = self.states.questions.get((self.name, rule.target))
        if asked is None:
            asked = self._question(rule.target)
        return {"Output": query(arrival.data(self.before)), "Next": asked}

    def _question(self, target: str) -> str:
        """Build the question whose answer is the new input of the machine."""
        states = self.states
        asked = states.whole.name(f"{self.name[:40]}>{target}")
        states.questions[self.name, target] = asked
        machine = merged([f"{INPUT}.machine", {"input": _ANSWER}])
        members = {"resume_input": _ANSWER, "machine": machine}
        sink = self.step.flags.get("sink_to")
        if isinstance(sink, str) and "." not in sink:
            members["context"] = merged([f"{INPUT}.context", {sink: _ANSWER}])
        elif isinstance(sink, str):
            members["context"] = call("put", f"{INPUT}.context", literal(sink), _ANSWER)
        made = _approval(states, self.step, asked) | {"Output": query(merged([INPUT, members]))}
        states.put(asked, made | {"Next": self.state.targets[target]}, self.step.pointer)
        return asked


def _leaves(states: States, step: BlueprintStep) -> bool:
    """Whether a pause may lead to another state."""
    return states.state is not None and any(
        rule.target != states.state.name for rule in _rules(states)
    )


def _rules(states: States) -> list[Rule]:
    """Return the rules of a pause, up to the first one that always holds."""
    if states.state is None:
        return []
    return states.state.machine.tried(states.state.name, "pause")
