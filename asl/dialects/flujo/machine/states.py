"""The states of one machine of the document under construction, and what kinds of steps add."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.dialects.expressions import handed, query
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.functions.templates import parse
from asl.dialects.flujo.machine.build_context import (
    BuildContext,
    EnclosingState,
    Failing,
    Then,
)
from asl.dialects.flujo.machine.conditions import ConditionNames
from asl.dialects.flujo.machine.data import (
    FIRST,
    INPUT,
    LATER,
    PREVIOUS,
    DataScope,
    Part,
    call,
    merged,
    path,
    record,
)
from asl.expr.jsonata.javascript import literal

__all__ = ["GIVEN", "States", "StepBuilder"]


GIVEN: Final = f"$flujo_input({INPUT})"
"""The current value in front of the first state."""


_FEEDBACK: Final = (
    "($states.errorOutput.Cause ? $states.errorOutput.Cause : $states.errorOutput.Error)"
)
"""The message of a caught error."""


class StepBuilder(NamedTuple):
    """How a kind of steps is built: a row of the table.

    `build(states, step, then, failing)` adds its states; `enters(states, step)` returns the one
    that it begins with, None where that is the one of its name.
    """

    build: "Callable[[States, BlueprintStep, Then, Failing | None], None]"
    enters: "Callable[[States, BlueprintStep], str] | None" = None


class States:
    """The states of one machine."""

    def __init__(
        self,
        whole: BuildContext,
        kinds: Mapping[str, StepBuilder],
        blueprint: Blueprint,
        *,
        inside: bool = False,
        within: str = "",
        top: bool = True,
    ) -> None:
        self.whole = whole
        self.kinds = kinds
        self.blueprint = blueprint
        """The one that its steps are written in."""
        self.options = whole.options
        self.states: dict[str, dict[str, Json]] = {}
        self.named: dict[str, str] = {}
        """The names of the states by the pointers of their steps."""
        self.inside = inside
        """Whether it is in a state of a state machine."""
        self.within = within
        self.top = top
        self.state: EnclosingState | None = None
        self.asks: dict[str, Json] = {}
        """The states that ask people in the state machine, with the names of their steps."""
        self.ending: str | None = None
        self.value = path(INPUT, "input")
        """Expression of the current value: the input of a step that has none of its own."""
        self.places: dict[str, str] = {}
        """Expressions of the outputs that are in a field of the context only, by their steps."""
        self.pauses: dict[str, str] = {}
        """The states with the rules of a pause, by the pointers of their questions."""
        self.needs_outputs = False
        """Whether the output of any step may request the next state of a state machine."""
        self.moving = False
        """Whether each step puts the current value into the data."""
        self.questions: dict[tuple[str, str], str] = {}
        """The questions that lead to another state, by the step and that state."""

    def fork(self, within: str) -> "States":
        """Return the states of a machine within this one."""
        made = States(
            self.whole, self.kinds, self.blueprint, inside=self.inside, within=within, top=False
        )
        made.value, made.asks = self.opened, self.asks
        made.needs_outputs = self.needs_outputs
        return made

    def importing(self, within: str, blueprint: Blueprint) -> "States":
        """Return the states of an imported blueprint."""
        return States(self.whole, self.kinds, blueprint, within=within, top=False)

    def machine(self, start: str) -> dict[str, Json]:
        """Return the machine with the states that are reached, in the order of the blueprint."""
        reached: set[str] = set()
        todo = [start]
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached.add(name)
            if name == self.ending and name not in self.states:
                self.states[name] = {"Type": "Succeed"}
            todo += _targets(self.states[name])
        self.report_unreached(reached)
        kept = {name: state for name, state in self.states.items() if name in reached}
        return {"StartAt": start, "States": kept}

    def report_unreached(self, reached: Collection[str]) -> None:
        for pointer, name in self.named.items():
            asked = self.pauses.get(pointer) in reached  # with another state behind it
            if name in self.states and name not in reached and not asked:
                message = f"the step {name!r} is never reached, so it is left out"
                hint = "no step before it leads to it: remove one of them"
                self.whole.findings.append(Finding("FL-UNREACHABLE", message, pointer, hint))

    # Places and names

    def put(self, name: str, state: dict[str, Json], pointer: str) -> dict[str, Json]:
        self.states[name] = state
        self.whole.origins.append((state, pointer))
        return state

    def found(self, code: str, message: str, pointer: str, hint: str | None = None) -> None:
        self.whole.findings.append(Finding(code, message, pointer, hint))

    def name(self, step: BlueprintStep, within: str | None = None) -> str:
        """Return the name of a step's state."""
        if step.pointer not in self.named:
            inside = self.within if within is None else within
            self.named[step.pointer] = self.whole.name(step.name, inside)
        return self.named[step.pointer]

    def entry(self, step: BlueprintStep) -> str:
        """Return the state that a step begins with."""
        enters = self.kinds[step.kind].enters
        return self.name(step) if enters is None else enters(self, step)

    def nothing(self, name: str, then: Then) -> str:
        """Add a state that ends this machine with its current value; return its name."""
        state = self.whole.part(name, "nothing")
        output = merged([INPUT, {"previous_step": self.value}])
        if then.bare:
            output = self.value
        self.states[state] = {"Type": "Pass", "Output": query(output), "End": True}
        return state

    def is_read(self, step: str) -> bool:
        """Whether the blueprint names a step where it reads data."""
        return (
            re.search(rf"\b(?:steps|context)\W+{re.escape(step)}\b", self.text_of_all) is not None
        )

    @cached_property
    def text_of_all(self) -> str:
        return compact(self.blueprint.value)

    def end(self) -> str:
        """Return the state that ends this machine."""
        if self.ending is None:
            self.ending = self.whole.name("end", self.within)
        return self.ending

    # Data

    @property
    def opened(self) -> str:
        """The current value behind the first state, which opens the input of the execution."""
        return path(INPUT, "input") if self.value == GIVEN else self.value

    def shared(self, name: str) -> str:
        """Return the context as an agent gets it."""
        return call("context", self.scope(name).data if name != self.whole.first else INPUT)

    def scope(self, name: str) -> DataScope:
        """Return the expressions for the data in front of a state."""
        return FIRST if name == self.whole.first else LATER

    def text(self, template: str, name: str) -> str:
        """Return a rendered template as an expression; the current value for a malformed one."""
        if "{{" not in template:
            return literal(template)
        try:
            parse(template)
        except ExpressionFault:
            return self.value
        value = self.value if "previous_step" in template else None
        return call("text", self.scope(name).data, literal(template), value)

    def given(self, step: BlueprintStep, name: str) -> str:
        """Return the input of a step as an expression."""
        value = step.value.get("input")
        if value is None:
            return self.value
        return self.text(value, name) if isinstance(value, str) else literal(value)

    def argument(self, step: BlueprintStep, name: str) -> Json:
        """Return the input of a step as a field: an expression, or a value that is written out."""
        value = step.value.get("input")
        known = value is not None and not (isinstance(value, str) and "{{" in value)
        return handed(value) if known else query(self.given(step, name))

    def names(self, name: str, output: str | Mapping[str, Json]) -> ConditionNames:
        """Return what the names of a condition are in front of a state."""
        scope = self.scope(name)
        return ConditionNames(scope, output, self.whole.steps, self.options.expressions)

    def done(
        self,
        step: BlueprintStep,
        result: str,
        then: Then,
        name: str,
        *,
        data: str | None = None,
        context: str | None = None,
        flags: Mapping[str, Json] | None = None,
        also: Mapping[str, str] | None = None,
        inner: Iterable[str] = (),
    ) -> Json:
        """Return the output of a state that completes a step.

        Args:
            step: The step.
            result: Expression of its output.
            then: Its transition.
            name: Name of the state.
            data: Expression of the data before, by default that in front of the state.
            context: Expression of the context before, by default that of the data.
            flags: What is written into the context, by default what the step says.
            also: Expressions of further members of the data.
            inner: Expressions of outputs of steps within the step.
        """
        if then.bare:
            return query(result)
        scope = self.scope(name)
        flags = step.flags if flags is None else flags
        parts: list[Part] = [scope.context if context is None else context]
        if flags.get("updates_context"):
            known = result.startswith("{")
            parts.append(result if known else f"($type({result}) = 'object' ? {result} : {{}})")
        sink = flags.get("sink_to")
        if isinstance(sink, str):
            names = sink.removeprefix("context.").split(".")
            if len(names) == 1:
                parts.append({names[0]: result})
            else:
                parts = [call("put", merged(parts), literal(".".join(names)), result)]
        after = merged(parts)
        if then.result:
            changed = data or scope.data
            if after != scope.context:
                changed = merged([changed, {"context": after}])
            return {"output": query(result), "context": query(call("context", changed))}
        members = {**(also or {})}
        if self.is_only_sunk(step, then, flags):
            self.places[step.pointer] = path(LATER.context, str(sink).removeprefix("context."))
        else:
            outputs = dict.fromkeys((step.name, *then.closes), result)
            members = {"steps": merged([scope.steps, *inner, outputs]), **members}
        if after != scope.context:
            members["context"] = after
        members |= self._moving(result, then)
        made = merged([data or scope.data, members])
        return query(made if then.arrival is None else then.arrival.data(made))

    def is_only_sunk(self, step: BlueprintStep, then: Then, flags: Mapping[str, Json]) -> bool:
        """Whether the output of a step is in a field of the context, and read only there."""
        sink = flags.get("sink_to")
        if not isinstance(sink, str) or "." in sink.removeprefix("context.") or len(flags) > 1:
            return False
        return not (then.closes or self.needs_outputs or self.is_read(step.name))

    def _moving(self, result: str, then: Then) -> dict[str, str]:
        """Return the members with the current value and the transition behind a step."""
        if then.leaves:
            return {}
        if then.keeps:
            return {"previous_step": result}
        if not self.moving:
            return {}
        known = result[0] in "'{[" or result.startswith("$flujo_text")
        value = f"({result} = null ? {self.value} : {result})"
        return {"previous_step": result if known else value}

    # Transitions

    def going(self, then: Then) -> dict[str, Json]:
        return {"End": True} if then.next is None else {"Next": then.next}

    def target(self, then: Then) -> str:
        return self.end() if then.next is None else then.next

    def catch(self, step: BlueprintStep, failing: Failing, name: str) -> list[Json]:
        """Return the Catch of a step."""
        output = self._failed(step, failing, _FEEDBACK, name)
        return [{"ErrorEquals": ["States.ALL"], "Output": output, "Next": failing.next}]

    def _failed(self, step: BlueprintStep, failing: Failing, feedback: str, name: str) -> str:
        """Return the data behind a failed step."""
        reported = literal(failing.step or step.name)
        failure = record({"step": reported, "feedback": feedback})
        scope = self.scope(name)
        members = {"failure": failure}
        if self.moving and self.value != PREVIOUS and failing.step is None and not failing.leaves:
            members["previous_step"] = self.value
        made = merged([scope.data, members])
        return query(made if failing.arrival is None else failing.arrival.data(made))

    def fail(
        self, step: BlueprintStep, failing: Failing | None, error: str, cause: str, name: str
    ) -> dict[str, Json]:
        """Return the transition of a rule to the failure of a step, which no Catch can handle."""
        if failing is None:
            target = self.whole.part(self.name(step), "failed")
            state: dict[str, Json] = {"Type": "Fail", "Error": error, "Cause": query(cause)}
            self.put(target, state, step.pointer)
            return {"Next": target}
        return {"Output": self._failed(step, failing, cause, name), "Next": failing.next}

    # Steps

    def sequence(
        self,
        steps: Iterable[BlueprintStep],
        then: Then,
        failing: Failing | None,
        *,
        each: bool = False,
    ) -> str | None:
        """Build steps that follow each other, and return where they begin.

        With *each* a failing step is followed by the next one, and only the last one has failed.
        """
        listed = [*steps]
        for step in listed:
            self.name(step)
        for index, step in enumerate(listed):
            last = index + 1 == len(listed)
            following = then if last else Then(self.entry(listed[index + 1]))
            on_failure = failing
            if each and not last:
                on_failure = Failing(self.entry(listed[index + 1]))
            self.built(step, following, on_failure)
            if step.kind == "StateMachine" and not self.inside:
                self.value = "null"
            else:
                place = self.places.get(step.pointer, path(INPUT, "steps", step.name))
                self.value = PREVIOUS if self.moving else place
        return self.entry(listed[0]) if listed else then.next

    def built(self, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
        """Build a step as one of its kind."""
        self.kinds[step.kind].build(self, step, then, failing)


def _targets(state: Mapping[str, Any]) -> list[str]:
    found = [each["Next"] for each in state.get("Choices", ())]
    found += [state[key] for key in ("Next", "Default") if key in state]
    return found + [each["Next"] for each in state.get("Catch", ())]
