"""State machines: a Choice goes to the state that the context names, rules lead on from each."""

from collections.abc import Iterable

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintMachine, BlueprintStep, StepBody
from asl.dialects.flujo.conditions import plain
from asl.dialects.flujo.machine.build_context import INPUT, RESULT, EnclosingState, Failing, Then
from asl.dialects.flujo.machine.builtin_skills import BUILTINS
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["state_machine"]


def state_machine(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build a state machine; one within a state of another has control fields of its own."""
    if not states.inside:
        _StateMachine(states, step, then, failing).built()
        return
    name = states.name(step)
    inner = states.fork(name)
    inner.inside = False
    start = _StateMachine(inner, step, Then(None), None).built(f"{name}:machine")
    output = states.call("outer", literal(step.name), f"{RESULT}[0]")
    state: dict[str, Json] = {
        "Type": "Parallel",
        "Arguments": query(states.call("inner")),
        "Branches": [inner.machine(start)],
    }
    if failing is not None:
        state["Catch"] = states.catch(step, failing)
    state["Output"] = query(states.closing(output, then))
    states.put(name, state | states.going(then), step.pointer)


class _StateMachine:
    """A state machine under construction."""

    def __init__(
        self, states: States, step: BlueprintStep, then: Then, failing: Failing | None
    ) -> None:
        self.states = states
        self.whole = states.whole
        self.options = states.options
        self.step = step
        self.machine = step.machine
        self.then = then
        self.failing = failing
        self.name = self.enter = ""
        self.guarded = False
        """Whether the machine may go round and round."""
        self.targets: dict[str, str] = {}
        self.decided: dict[tuple[str, str], str] = {}
        """Where it goes behind each state at each event."""
        self.next: str | None = None
        """The state that looks for a `next_state`, where one may be needed."""
        self.stop: str | None = None

    def own(self, part: str) -> str:
        return self.whole.part(self.name, part)

    def built(self, name: str | None = None) -> str:
        """Build the states and return where the machine begins."""
        machine, states = self.machine, self.states
        self.name = states.name(self.step) if name is None else self.whole.name(name)
        self.enter = self.own("enter")
        for each in (*machine.states, *machine.ends):
            if each not in self.targets:
                self.targets[each] = self.whole.name(each, self.name)
        about: dict[str, Json] = {"at": self.step.pointer}
        renamed = {each: target for each, target in self.targets.items() if each != target}
        self.whole.machines[self.name] = about | ({"names": renamed} if renamed else {})
        options = literal({"scratchpad": True}) if states.blueprint.names_scratchpad else None
        start = states.call("start", literal(self.name), literal(machine.start), options)
        begin: dict[str, Json] = {"Type": "Pass", "Output": query(start), "Next": self.enter}
        states.put(self.name, begin, self.step.pointer)
        for each in machine.states:
            self.decide(each, "success")
            if any(map(_can_fail, machine.states[each].steps)):
                self.decide(each, "failure")
        self.guarded = self.next is not None or _cyclic(machine)
        self.dispatch()
        for each, body in machine.states.items():
            self.state(each, body)
        for each in dict.fromkeys(machine.ends):
            self.leave(self.targets[each], each)
        return self.name

    def dispatch(self) -> None:
        """Build the state that goes to the state that the context names."""
        choices: list[Json] = [
            {
                "Condition": query(f"{INPUT}.context.current_state = {literal(name)}"),
                "Next": target,
            }
            for name, target in self.targets.items()
        ]
        unknown = self.own("unknown")
        cause = f"'Unknown state: ' & {INPUT}.context.current_state"
        choice = {"Type": "Choice", "Choices": choices, "Default": unknown}
        self.states.put(self.enter, choice, self.step.pointer)
        way = self.states.fail(self.step, self.failing, "Flujo.UnknownState", cause)
        if self.failing is None:
            self.states.states[unknown] = self.states.states.pop(str(way["Next"]))
        else:
            self.states.put(unknown, {"Type": "Pass", **way}, self.step.pointer)

    def state(self, name: str, body: StepBody) -> None:
        """Build a state: what it begins with, and its steps."""
        states, target = self.states, self.targets[name]
        options: dict[str, Json] = {}
        if _asks(body.steps):
            options["asks"] = True
        if self.options.next_state == "engine":
            options["next_state"] = "engine"
        enter = states.call("enter", literal(name), literal(options) if options else None)
        outer = (states.state, states.inside, states.within)
        states.state = EnclosingState(self.machine, name, self.targets)
        states.inside, states.within = True, target
        success = self.decided[name, "success"]
        failing = None
        if (name, "failure") in self.decided:
            failing = Failing(self.decided[name, "failure"])
        each = self.options.event == "last-step"
        first = states.sequence(body.steps, Then(success), failing, each=each)
        states.state, states.inside, states.within = outer
        assert first is not None
        if not self.guarded:
            begin: dict[str, Json] = {"Type": "Pass", "Output": query(enter), "Next": first}
        else:
            capped = {
                "Condition": query(f"{INPUT}.machine.hops >= {self.machine.cap}"),
                "Output": query(states.call("capped", literal(name))),
                "Next": self.exhausted(),
            }
            begin = {
                "Type": "Choice",
                "Choices": [capped],
                "Output": query(enter),
                "Default": first,
            }
        states.put(target, begin, body.pointer)

    # Rules

    def decide(self, state: str, event: str) -> None:
        """Build the rules behind a state at an event, and remember where they begin."""
        choices: list[Json] = []
        default: str | None = None
        for rule in self.machine.tried(state, event):
            if rule.when is None:
                default = self.targets[rule.target]
                break
            made: dict[str, Json] = {
                "Condition": query(self.condition(rule.when)),
                "Next": self.targets[rule.target],
            }
            self.whole.origins.append((made, rule.pointer))
            choices.append(made)
        default = self.asked_for() if default is None else default
        if not choices:
            self.decided[state, event] = default
            return
        name = self.whole.part(self.targets[state], event)
        choice = {"Type": "Choice", "Choices": choices, "Default": default}
        self.states.put(name, choice, f"{self.step.pointer}/transitions")
        self.decided[state, event] = name

    def condition(self, text: str) -> str:
        said = plain(text, "output")
        return said or self.states.call("when", literal(text), self.states.mode())

    def asked_for(self) -> str:
        """Return the state that continues with a `next_state`, or stops."""
        if self.next is None:
            self.next = self.own("next")
            stop = {
                "Condition": query(f"{self.states.call('following')} = null"),
                "Next": self.stopped(),
            }
            choice: dict[str, Json] = {
                "Type": "Choice",
                "Choices": [stop],
                "Output": query(self.states.call("follow")),
                "Default": self.enter,
            }
            self.states.put(self.next, choice, self.step.pointer)
        return self.next

    # Ends

    def leave(self, name: str, state: str | None) -> None:
        """Build the end of the machine in an end state, or where it is."""
        states = self.states
        said = None if state is None else literal(state)
        if state in self.options.fail_states:
            failed: dict[str, Json] = {
                "Type": "Fail",
                "Error": f"Flujo.{state}",
                "Cause": query(f"$string({INPUT}.output.last_step.feedback)"),
            }
            states.put(name, failed, self.step.pointer)
        elif states.top and self.then == Then(states.ending):
            output = query(states.call("ended", said))
            states.put(name, {"Type": "Succeed", "Output": output}, self.step.pointer)
        else:
            output = query(states.closing(states.call("left", said), self.then))
            made = {"Type": "Pass", "Output": output} | states.going(self.then)
            states.put(name, made, self.step.pointer)

    def stopped(self) -> str:
        if self.stop is None:
            self.stop = self.own("stop")
            self.leave(self.stop, None)
        return self.stop

    def exhausted(self) -> str:
        """Return where the machine goes that has made all its hops."""
        if self.options.hop_cap != "fail":
            return self.stopped()
        name = f"{self.name}:hops"
        self.whole.taken.add(name)
        cause = f"the machine has made {self.machine.cap} hops"
        state: dict[str, Json] = {"Type": "Fail", "Error": "Flujo.MaxHops", "Cause": cause}
        self.states.put(name, state, self.step.pointer)
        return name


def _can_fail(step: BlueprintStep) -> bool:
    if step.kind == "step":
        agent = step.agent
        return agent is not None and agent.replace(":", ".") not in BUILTINS
    return step.kind != "hitl"


def _asks(steps: Iterable[BlueprintStep]) -> bool:
    """Whether a step asks people in the state itself, not within branches or items."""
    for step in steps:
        if step.kind == "hitl":
            return True
        if step.kind in ("conditional", "loop", "cache") and any(
            _asks(body.steps) for body in step.bodies()
        ):
            return True
    return False


def _cyclic(machine: BlueprintMachine) -> bool:
    """Whether rules lead back to a state; one that pauses and goes on in itself is not left."""
    ways = {
        name: {
            rule.target
            for rule in machine.rules
            if rule.source in ("*", name) and (rule.event, rule.target) != ("pause", name)
        }
        & machine.states.keys()
        for name in machine.states
    }
    left = dict(ways)
    while True:
        ends = [name for name, targets in left.items() if not targets & left.keys()]
        if not ends:
            return bool(left)
        for name in ends:
            del left[name]
