"""The states of one machine of the document under construction, and what kinds of steps add."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import Blueprint, BlueprintStep
from asl.dialects.flujo.machine.build_context import (
    INPUT,
    BuildContext,
    EnclosingState,
    Failing,
    Then,
)
from asl.expr.jsonata.javascript import literal

__all__ = ["States", "StepBuilder"]


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
        self.names: dict[str, str] = {}
        """The names of the states by the pointers of their steps."""
        self.inside = inside
        """Whether it is in a state of a state machine."""
        self.within = within
        self.top = top
        self.state: EnclosingState | None = None
        self.ending: str | None = None
        self.questions: dict[tuple[str, str], str] = {}
        """The questions that lead to another state, by the step and that state."""

    def fork(self, within: str) -> "States":
        """Return the states of a machine within this one."""
        return States(
            self.whole, self.kinds, self.blueprint, inside=self.inside, within=within, top=False
        )

    def importing(self, within: str, blueprint: Blueprint) -> "States":
        """Return the states of an imported blueprint."""
        return States(self.whole, self.kinds, blueprint, within=within, top=False)

    def machine(self, start: str) -> dict[str, Json]:
        """Return the machine with the states that are reached, each before those it leads to."""
        reached: dict[str, None] = {}
        todo = [start]
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached[name] = None
            if name == self.ending and name not in self.states:
                output = query(f"$flujo_result({INPUT})" if self.top else INPUT)
                self.states[name] = {"Type": "Succeed", "Output": output}
            todo += reversed(_targets(self.states[name]))
        self.tell_unreached(reached)
        return {"StartAt": start, "States": {name: self.states[name] for name in reached}}

    def tell_unreached(self, reached: Collection[str]) -> None:
        for pointer, name in self.names.items():
            asked = f"{name}:pause" in reached  # with another state behind it
            if name in self.states and name not in reached and not asked:
                message = f"the step {name!r} is never reached, so it is left out"
                hint = "what stands before it never goes on to it: take one of them out"
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
        if step.pointer not in self.names:
            inside = self.within if within is None else within
            self.names[step.pointer] = self.whole.name(step.name, inside)
        return self.names[step.pointer]

    def entry(self, step: BlueprintStep) -> str:
        """Return the state that a step begins with."""
        enters = self.kinds[step.kind].enters
        return self.name(step) if enters is None else enters(self, step)

    def end(self) -> str:
        """Return the state that ends this machine."""
        if self.ending is None:
            self.ending = self.whole.name("end", self.within)
        return self.ending

    # Data

    def call(self, function: str, *arguments: Json) -> str:
        """Return the call of a function of the dialect; None at the end is left out."""
        given = [*arguments]
        while given and given[-1] in (None, {}):
            given.pop()
        return f"$flujo_{function}({', '.join([INPUT, *map(str, given)])})"

    def moving(self, name: str) -> str:
        """Return what moves along, as the state *name* sees it."""
        return f"$flujo_input({INPUT})" if name == self.whole.first else f"{INPUT}.previous_step"

    def context(self, name: str) -> str:
        return f"$flujo_context({INPUT})" if name == self.whole.first else f"{INPUT}.context"

    def text(self, template: str) -> str:
        return (
            f"$flujo_text({INPUT}, {literal(template)})" if "{{" in template else literal(template)
        )

    def given(self, step: BlueprintStep, name: str) -> str:
        """Return the input of a step as an expression."""
        value = step.value.get("input")
        if value is None:
            return self.moving(name)
        return self.text(value) if isinstance(value, str) else literal(value)

    def mode(self) -> str | None:
        """Return the argument that says how values compare."""
        return literal(self.options.expressions) if self.options.expressions else None

    def done(self, step: BlueprintStep, result: str) -> str:
        flags = literal(step.flags) if step.flags else None
        return self.call("done", literal(step.name), result, flags)

    def closing(self, data: str, then: Then) -> str:
        """Return the data behind a step, and behind all steps that end with it."""
        return f"$flujo_close({data}, {literal([*then.closes])})" if then.closes else data

    # Ways

    def going(self, then: Then) -> dict[str, Json]:
        return {"End": True} if then.next is None else {"Next": then.next}

    def target(self, then: Then) -> str:
        return self.end() if then.next is None else then.next

    def catch(self, step: BlueprintStep, failing: Failing) -> list[Json]:
        reported = literal(failing.step or step.name)
        output = self.call("failed", reported, "$states.errorOutput")
        caught = {"ErrorEquals": ["States.ALL"], "Output": query(output), "Next": failing.next}
        return [caught]

    def fail(
        self, step: BlueprintStep, failing: Failing | None, error: str, cause: str
    ) -> dict[str, Json]:
        """Return the way of a rule to the failure of a step, which no Catch can hold."""
        if failing is None:
            name = self.whole.part(self.name(step), "failed")
            state: dict[str, Json] = {"Type": "Fail", "Error": error, "Cause": query(cause)}
            self.put(name, state, step.pointer)
            return {"Next": name}
        told = f"{{'Error': {literal(error)}, 'Cause': {cause}}}"
        output = self.call("failed", literal(failing.step or step.name), told)
        return {"Output": query(output), "Next": failing.next}

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
            way = failing
            if each and not last:
                way = Failing(self.entry(listed[index + 1]))
            self.built(step, following, way)
        return self.entry(listed[0]) if listed else then.next

    def built(self, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
        """Build a step as one of its kind."""
        self.kinds[step.kind].build(self, step, then, failing)


def _targets(state: Mapping[str, Any]) -> list[str]:
    found = [each["Next"] for each in state.get("Choices", ())]
    found += [state[key] for key in ("Next", "Default") if key in state]
    return found + [each["Next"] for each in state.get("Catch", ())]
