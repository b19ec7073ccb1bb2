"""State machines: the states of the author, and the rules that lead from one to the next."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep, StepBody
from asl.dialects.flujo.machine.build_context import Arrival, EnclosingState, Failing, Then
from asl.dialects.flujo.machine.builtin_skills import BUILTINS
from asl.dialects.flujo.machine.conditions import (
    Known,
    Payload,
    payload_source,
    print_condition,
    reads_output,
)
from asl.dialects.flujo.machine.data import INPUT, LATER, PREVIOUS, RESULT, call, merged, path
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["state_machine"]

_CURRENT = f"{INPUT}.context.current_state"


def state_machine(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build a state machine; one within a state of another has control fields of its own."""
    if not states.inside:
        _StateMachine(states, step, then, failing).built()
        return
    name = states.name(step)
    inner = states.fork(name)
    inner.inside = False
    start = _StateMachine(inner, step, Then(None), None).built(f"{name}:machine")
    scope = states.scope(name)
    state: dict[str, Json] = {
        "Type": "Parallel",
        "Arguments": query(call("inner", scope.data)),
        "Branches": [inner.machine(start)],
    }
    if failing is not None:
        state["Catch"] = states.catch(step, failing, name)
    context = call("outer", scope.context, f"{RESULT}[0].context")
    within = [f"{RESULT}[0].steps"]
    state["Output"] = states.done(step, "null", then, name, context=context, inner=within)
    states.put(name, state | states.going(then), step.pointer)


class _Rules(NamedTuple):
    """What follows a state at an event.

    Attributes:
        next: The next state.
        arrival: The transition to it, None if it is a Choice.
        choice: The Choice.
    """

    next: str
    arrival: Arrival | None = None
    choice: dict[str, Json] | None = None


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
        self.targets: dict[str, str] = {}
        """The states of the document by the states of the machine."""
        self.asks: dict[str, Json] = {}
        self.leads = self.machine.leads
        self.follows_requests = any(
            not self.machine.covers(name, event)
            for name, body in self.machine.states.items()
            for event in self.events(name)
            if not any(each.requested for each in body.steps[-1:])
        )
        """Whether a step may request the next state."""
        self.leaving_pauses = [*self._leaving_pauses()]
        self.gives_input = bool(self.leaving_pauses) or self._overwrites(states.value)
        """Whether the data has the input of the machine."""
        self._ends: dict[str, str] = {}

    def _leaving_pauses(self) -> Iterator[str]:
        """Yield the states with a question whose rules may lead to another state."""
        for name, body in self.machine.states.items():
            rules = self.machine.tried(name, "pause")
            if any(rule.target != name for rule in rules) and _asks(body.steps):
                yield name

    def _overwrites(self, value: str) -> bool:
        """Whether the machine may overwrite the place of its input."""
        inner = {
            path(INPUT, "steps", each.name) for body in self.step.bodies() for each in body.steps
        }
        return (
            value == PREVIOUS
            or value.startswith(LATER.context)
            or value in {path(INPUT, "steps", each) for each in inner}
        )

    def own(self, part: str) -> str:
        return self.whole.part(self.name, part)

    def events(self, state: str) -> tuple[str, ...]:
        """Return the events that may occur at the end of a state."""
        fails = any(map(_can_fail, self.machine.states[state].steps))
        return ("success", "failure") if fails else ("success",)

    # The whole machine

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
        scope = states.scope(self.name)
        given = states.value if self.gives_input else None
        start = query(call("start", scope.data, given))
        begin: dict[str, Json] = {"Type": "Pass", "Output": start, "Next": self.enter}
        states.put(self.name, begin, self.step.pointer)
        states.value = path(INPUT, "machine", "input") if self.gives_input else states.opened
        self.dispatch()
        input = states.value
        for each, body in machine.states.items():
            states.value = input
            self.state(each, body)
        for each in dict.fromkeys(machine.ends):
            self.leave(self.targets[each], each)
        for part in self._ends.values():
            states.states[part] = states.states.pop(part)
        if self.asks:
            self.whole.machines[self.name] |= {"asks": self.asks}
        return self.name

    def dispatch(self) -> None:
        """Build the state that enters the state which the context names."""
        choices: list[Json] = []
        for name, target in self.targets.items():
            rule = {"Condition": query(call("resumes", INPUT, literal(name))), "Next": target}
            if self.snapshots(name):
                rule["Output"] = query(call("snapshot", INPUT))
            choices.append(rule)
        unknown = self.own("unknown")
        choices.append({"Condition": query(call("resumes", INPUT)), "Next": unknown})
        choice: dict[str, Json] = {"Type": "Choice", "Choices": choices}
        start = self.machine.start
        shown = _CURRENT
        if start in self.machine.states:
            choice["Output"] = query(self.entering(literal(start), None, start).data(INPUT))
        elif start not in self.targets:
            choices.pop()
            shown = f"($exists({_CURRENT}) ? {_CURRENT} : {literal(start)})"
        choice["Default"] = self.targets.get(start, unknown)
        self.states.put(self.enter, choice, self.step.pointer)
        failed = self.states.fail(
            self.step,
            self.failing,
            "Flujo.UnknownState",
            f"'Unknown state: ' & {shown}",
            self.enter,
        )
        if self.failing is None:
            self.states.states[unknown] = self.states.states.pop(str(failed["Next"]))
        else:
            self.states.put(unknown, {"Type": "Pass", **failed}, self.step.pointer)
        self._ends["unknown"] = unknown

    @property
    def scratchpad(self) -> bool:
        return self.states.blueprint.names_scratchpad

    # States

    def state(self, name: str, body: StepBody) -> None:
        """Build a state: its steps, and the rules behind them."""
        states, target = self.states, self.targets[name]
        enclosing = EnclosingState(
            self.machine,
            name,
            self.targets,
            lambda event, to: self.entering(literal(to), event, to),
        )
        rules = {event: self.rules(name, event) for event in self.events(name)}
        success = rules["success"]
        if not body.steps:
            self.empty(target, body, success)
            return
        outer = (
            *(states.state, states.inside, states.within, states.moving, states.asks),
            states.needs_outputs,
        )
        states.needs_outputs = self.follows_requests
        states.state, states.inside, states.within = enclosing, True, target
        states.asks = self.asks
        states.moving = len(body.steps) > 1 or body.steps[0].kind not in _SIMPLE
        first = _first(body)
        pauses = first.kind == "hitl" and name in self.leaving_pauses
        (states.pauses if pauses else states.named)[first.pointer] = target
        failing = None
        if "failure" in rules:
            failing = Failing(rules["failure"].next, None, rules["failure"].arrival, leaves=True)
        each = self.options.event == "last-step"
        then = Then(success.next, arrival=success.arrival, leaves=True)
        states.sequence(body.steps, then, failing, each=each)
        states.state, states.inside, states.within, states.moving, states.asks = outer[:5]
        states.needs_outputs = outer[5]
        for found in rules.values():
            if found.choice is not None:
                states.put(found.next, found.choice, f"{self.step.pointer}/transitions")

    def empty(self, target: str, body: StepBody, rules: _Rules) -> None:
        """Build a state without steps."""
        state = rules.choice
        if state is None:
            state = {"Type": "Pass"}
            if rules.arrival is not None:
                state["Output"] = query(rules.arrival.data(INPUT))
            state["Next"] = rules.next
        else:
            self.whole.taken.discard(rules.next)
        self.states.put(target, state, body.pointer)

    def snapshots(self, state: str | None) -> bool:
        """Whether a question of a state may need the data from before the state."""
        if state not in self.leaving_pauses or state is None:
            return False
        body = self.machine.states[state]
        asking = [each for each in body.steps if _asks((each,))]
        return asking != [body.steps[0]] or _first(body).kind != "hitl"

    # Rules

    def is_repeated(self, source: str, target: str) -> bool:
        """Whether a transition leads back to a state that has led to its source."""
        return target in self.leads and source in self.leads[target]

    def entering(self, target: str, event: str | None, state: str | None = None) -> Arrival:
        """Return the transition to a state.

        Args:
            target: Expression of its name.
            event: The event that it follows.
            state: Its name, if that is known.
        """
        options: dict[str, Json] = {}
        if self.options.next_state == "engine":
            options["next_state"] = "engine"
        if self.scratchpad:
            options["scratchpad"] = True
        if self.snapshots(state):
            options["asks"] = True
        return Arrival(target, event, options)

    def arrival(self, event: str, target: str) -> Arrival | None:
        """Return the transition of a rule to a state, None for an end state."""
        known = target in self.machine.states
        return self.entering(literal(target), event, target) if known else None

    def rules(self, state: str, event: str) -> _Rules:
        """Return what follows a state at an event."""
        choices: list[Json] = []
        payload = self.payload(state, event)
        for rule in self.machine.tried(state, event):
            arrival = self.arrival(event, rule.target)
            condition = None if rule.when is None else self.condition(rule.when, payload)
            if self.is_repeated(state, rule.target):
                choices.append(self.capped(condition, literal(rule.target)))
            target = self.targets[rule.target]
            if condition is None and not choices:
                return _Rules(target, arrival)
            made: dict[str, Json] = {"Next": target}
            if arrival is not None:
                made = {"Output": query(arrival.data(INPUT)), **made}
            if condition is None:
                return self.choice(state, event, choices, made)
            made = {"Condition": query(condition), **made}
            self.whole.origins.append((made, rule.pointer))
            choices.append(made)
        return self.unmatched(state, event, choices)

    def choice(
        self, state: str, event: str, choices: list[Json], default: Mapping[str, Json]
    ) -> _Rules:
        name = self.targets[state]
        if self.machine.states[state].steps:
            name = self.whole.part(name, event)
        made: dict[str, Json] = {"Type": "Choice", "Choices": choices}
        if "Output" in default:
            made["Output"] = default["Output"]
        return _Rules(name, None, made | {"Default": default["Next"]})

    def capped(self, condition: str | None, target: str) -> dict[str, Json]:
        """Return the rule that stops the machine before a hop too many."""
        reached = call("exhausted", INPUT, self.machine.cap)
        if condition is not None:
            wrapped = f"({condition})" if " or " in condition else condition
            reached = f"{reached} and {wrapped}"
        made: dict[str, Json] = {"Condition": query(reached)}
        if self.options.hop_cap != "fail":
            made["Output"] = query(call("stopped", INPUT, target))
        return made | {"Next": self.exhausted()}

    def unmatched(self, state: str, event: str, choices: list[Json]) -> _Rules:
        """Return what follows where no rule matches: a `next_state`, or the end of the machine."""
        steps = self.machine.states[state].steps
        named = steps[-1].requested if event == "success" and steps else None
        if named is not None:
            return self.requested(event, choices, state, named)
        if not steps and self.options.next_state != "engine":
            if not choices:
                return _Rules(self.stopped())
            return self.choice(state, event, choices, {"Next": self.stopped()})
        names = [each.name for each in steps]
        if event == "failure":
            names.pop()
        requested = call("requested", INPUT, literal(names))
        stop = {"Condition": query(f"{requested} = null"), "Next": self.stopped()}
        capped = self.capped(None, requested)
        entering = self.entering(requested, event)
        default = {"Output": query(entering.data(INPUT)), "Next": self.enter}
        return self.choice(state, event, [*choices, stop, capped], default)

    def requested(self, event: str, choices: list[Json], state: str, target: str) -> _Rules:
        """Return what follows a state whose last step always requests the same state."""
        if target not in self.targets:
            cause = literal(f"Unknown state: {target}")
            error = "Flujo.UnknownState"
            failed = self.states.fail(self.step, self.failing, error, cause, self.enter)
            return self.choice(state, event, choices, failed) if choices else _Rules(failed["Next"])
        arrival = self.arrival(event, target)
        if self.is_repeated(state, target):
            choices = [*choices, self.capped(None, literal(target))]
        if not choices:
            return _Rules(self.targets[target], arrival)
        made: dict[str, Json] = {"Next": self.targets[target]}
        if arrival is not None:
            made["Output"] = query(arrival.data(INPUT))
        return self.choice(state, event, choices, made)

    def condition(self, text: str, payload: Payload) -> str:
        names = self.states.names("", payload)
        found = print_condition(text, names)
        if found is not None:
            return found
        mode = self.options.expressions
        given = payload_source(payload) if reads_output(text) else None
        if mode and given is None:
            given = "null"
        return call("when", INPUT, literal(text), given, literal(mode) if mode else None)

    def payload(self, state: str, event: str) -> Payload:
        """Return what the rules of a state read as `output`."""
        steps = self.machine.states[state].steps
        if not steps:
            last: Payload = dict.fromkeys(("name", "success", "feedback"), Known(None))
            return {"event": Known(event), "last_output": Known(None), "last_step": last}
        name, succeeded = steps[-1].name, event == "success"
        if succeeded:
            place: Known | str = self.place_of(steps[-1])
            feedback: Known | str = Known(None)
        else:
            place, feedback = Known(None), f"{INPUT}.failure.feedback"
        failed = not succeeded and self.options.event != "last-step"
        last = {
            "name": f"{INPUT}.failure.step" if failed else Known(name),
            "success": Known(succeeded),
            "feedback": feedback,
        }
        return {"event": Known(event), "last_output": place, "last_step": last}

    def place_of(self, step: BlueprintStep) -> str:
        """Return where the output of the last step of a state is."""
        outer, self.states.needs_outputs = self.states.needs_outputs, self.follows_requests
        sunk = self.states.is_only_sunk(step, Then(None), step.flags)
        self.states.needs_outputs = outer
        if not sunk:
            return path(INPUT, "steps", step.name)
        return path(INPUT, "context", str(step.flags["sink_to"]).removeprefix("context."))

    # Ends

    def leave(self, name: str, state: str | None, *, capped: bool = False) -> None:
        """Build the end of the machine in an end state, or where it is."""
        states = self.states
        context = f"{INPUT}.context"
        if state is not None:
            options = literal({"scratchpad": True}) if self.scratchpad else None
            context = call("ended", context, literal(state), options)
        if state in self.options.fail_states:
            failed: dict[str, Json] = {
                "Type": "Fail",
                "Error": f"Flujo.{state}",
                "Cause": query(f"'' & {INPUT}.failure.feedback"),
            }
            states.put(name, failed, self.step.pointer)
        elif self.then.result:
            output: dict[str, Json] = {"output": None, "context": query(context)}
            if capped:
                output["max_hops_reached"] = True
            states.put(name, {"Type": "Succeed", "Output": output}, self.step.pointer)
        else:
            closed = dict.fromkeys(self.then.closes, "null")
            members = {"context": context} if state is not None else {}
            if closed:
                members["steps"] = merged([f"{INPUT}.steps", closed])
            if self.then.keeps:
                members["previous_step"] = "null"
            made: dict[str, Json] = {"Type": "Pass"}
            if members:
                made["Output"] = query(merged([INPUT, members]))
            states.put(name, made | states.going(self.then), self.step.pointer)

    def stopped(self) -> str:
        """Return the end of a machine that stops where it is."""
        if "stop" not in self._ends:
            self._ends["stop"] = self.own("stop")
            self.leave(self._ends["stop"], None)
        return self._ends["stop"]

    def exhausted(self) -> str:
        """Return the end of a machine that has made all its hops."""
        if "hops" in self._ends:
            return self._ends["hops"]
        name = self._ends["hops"] = self.own("hops")
        if self.options.hop_cap == "fail":
            cause = f"the machine has made {self.machine.cap} hops"
            state: dict[str, Json] = {"Type": "Fail", "Error": "Flujo.MaxHops", "Cause": cause}
            self.states.put(name, state, self.step.pointer)
        else:
            self.leave(name, None, capped=True)
        return name


_SIMPLE = frozenset(("step", "hitl", "parallel", "map", "dynamic_router", "agentic_loop"))
"""Kinds of steps without steps that follow each other in the same machine."""


def _first(body: StepBody) -> BlueprintStep:
    """Return the first step of a body; of a cache, what it wraps."""
    step = body.steps[0]
    while step.kind == "cache":
        step = step.wrapped
    return step


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
