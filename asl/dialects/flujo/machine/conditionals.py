"""Steps that continue with one of their branches."""

from collections.abc import Callable
from typing import NamedTuple

from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.flujo.blueprint import BlueprintStep, StepBody
from asl.dialects.flujo.functions.conditions import parse_number
from asl.dialects.flujo.machine.agents import ANSWER
from asl.dialects.flujo.machine.build_context import Failing, Then
from asl.dialects.flujo.machine.builtin_skills import CONFIRMATION
from asl.dialects.flujo.machine.conditions import (
    fails,
    print_condition,
    print_path,
    reads_output,
    yields_boolean,
)
from asl.dialects.flujo.machine.data import INPUT, call, merged, path
from asl.dialects.flujo.machine.states import States
from asl.expr.jsonata.javascript import literal

__all__ = ["conditional", "deciding"]


class _Selection(NamedTuple):
    """What selects a branch.

    Attributes:
        holds: The condition that a branch is selected, by its name.
        nothing: The condition that none can be.
        shown: Expression of what is selected.
    """

    holds: Callable[[str], str]
    nothing: str
    shown: str


def conditional(states: States, step: BlueprintStep, then: Then, failing: Failing | None) -> None:
    """Build the Choice of a branch, and the branches."""
    name = states.name(step)
    function = step.value.get("condition")
    condition = step.value.get("condition_expression")
    if condition is None and function and not _confirms(function):
        deciding(states, step, function, f"{name}:if", failing)
        name = f"{name}:if"
    choice: dict[str, Json] = {"Type": "Choice"}
    states.put(name, choice, step.pointer)
    _Branches(states, step, name, then, failing).built(choice)


def _selection(states: States, step: BlueprintStep, name: str) -> _Selection:
    """Return what selects the branches of a step, in front of its Choice."""
    condition, function = step.value.get("condition_expression"), step.value.get("condition")
    if condition is None and function:
        if _confirms(function):
            agreed = call("agrees", states.value)
            holds = {"approved": agreed, "denied": f"$not({agreed})"}
            shown = call("confirmed", states.value)
            return _Selection(lambda branch: holds.get(branch, "false"), "false", shown)
        return _by_name(path(INPUT, "decision"))
    names = states.names(name, states.value)
    place = states.value if condition is None else print_path(condition, names)
    if place is not None:
        return _Selection(
            lambda branch: _is_named(place, branch),
            f"$not($exists({place})) or {place} = null",
            f"$string({place})",
        )
    assert condition is not None
    value = states.value if reads_output(condition) else "null"
    mode = literal(names.mode) if names.mode else None
    given = names.scope.data, literal(condition), value, mode
    found = _by_name(call("key", *given))
    if not yields_boolean(condition):
        return found
    said = print_condition(condition, names) or call("when", *given)
    holds = {"true": said, "false": f"$not({said})"}
    return _Selection(
        lambda branch: holds.get(branch) or found.holds(branch), call("fails", *given), found.shown
    )


def _by_name(name: str) -> _Selection:
    """Return the selection by an expression that is the name of a branch."""
    return _Selection(
        lambda branch: f"{name} = {literal(branch)}", f"{name} = null", f"$string({name})"
    )


def _is_named(place: str, branch: str) -> str:
    """Return the condition that a value selects a branch."""
    if branch in ("true", "false"):
        return f"{place} in [{literal(branch)}, {branch}]"
    if parse_number(branch) is None and not branch.startswith(("[", "{")):
        return f"{place} = {literal(branch)}"
    return f"{call('branch', place)} = {literal(branch)}"


class _Branches:
    """The branches of a step under construction."""

    def __init__(
        self, states: States, step: BlueprintStep, name: str, then: Then, failing: Failing | None
    ) -> None:
        self.states = states
        self.step = step
        self.name = name
        self.then = then
        self.failing = failing
        self.selection = _selection(states, step, name)
        self.condition: str | None = step.value.get("condition_expression")

    def built(self, choice: dict[str, Json]) -> None:
        """Build the branches and complete the Choice."""
        choices: list[Json] = []
        for branch, body in self.step.branches.items():
            rule = {"Condition": query(self.selection.holds(branch)), **self.behind(body)}
            choices.append(rule)
            self.states.whole.origins.append((rule, body.pointer))
        default = self.step.default
        if default is None and choices and (self.chosen_by_value() or self.is_complete()):
            otherwise = choices.pop(0 if self.chosen_by_value() else -1)
            assert isinstance(otherwise, dict)
            otherwise.pop("Condition")
        elif default is not None:
            if self.may_select_nothing():
                cause = literal("the condition fails or gives null, which names no branch")
                failed = self.failed(cause)
                choices.insert(0, {"Condition": query(self.selection.nothing), **failed})
            otherwise = self.behind(default)
        else:
            otherwise = self.failed(f"'No branch found for ' & {self.selection.shown}")
        if not choices:
            choice |= {"Type": "Pass", **otherwise}
            return
        choice["Choices"] = choices
        if "Output" in otherwise:
            choice["Output"] = otherwise["Output"]
        choice["Default"] = otherwise["Next"]

    def behind(self, body: StepBody) -> dict[str, Json]:
        """Build the steps of a branch, and return the transition to them."""
        states = self.states
        value, states.value = states.value, states.opened
        target = states.target(self.then)
        start = states.sequence(
            body.steps,
            self.then.closing(self.step.name),
            self.failing and self.failing.within(self.step.name),
        )
        states.value = value
        if not body.steps:
            output = states.done(self.step, value, self.then, self.name, flags={})
            return {"Output": output, "Next": target}
        data = states.scope(self.name).data
        return ({} if data == INPUT else {"Output": query(data)}) | {"Next": start}

    def failed(self, cause: str) -> dict[str, Json]:
        """Return the transition to the failure of the step."""
        return self.states.fail(self.step, self.failing, "Flujo.NoBranch", cause, self.name)

    def chosen_by_value(self) -> bool:
        """Whether the value selects the branch, so that the first one is the default."""
        return self.condition is None and not self.step.value.get("condition")

    def is_complete(self) -> bool:
        """Whether a condition always selects one of two branches."""
        condition = self.condition
        if condition is None or {*self.step.branches} != {"true", "false"}:
            return False
        return yields_boolean(condition) and not fails(condition, self.states.options.expressions)

    def may_select_nothing(self) -> bool:
        """Whether what decides may fail or be null, which fails the step."""
        condition = self.condition
        if condition is None:
            function = str(self.step.value.get("condition") or "")
            return bool(function) and not _confirms(function)
        return not yields_boolean(condition) or fails(condition, self.states.options.expressions)


def _confirms(function: str) -> bool:
    return function.replace(":", ".").removesuffix("_sync") == CONFIRMATION


def deciding(
    states: States, step: BlueprintStep, function: str, following: str, failing: Failing | None
) -> None:
    """Build the Task of a function that decides."""
    name = states.name(step) if step.kind == "conditional" else f"{states.name(step)}:until"
    states.whole.taken.add(following)
    states.found(
        "FL-CODE",
        f"{function!r} is code, so an agent of its name is called",
        step.at("condition") if step.kind == "conditional" else step.at("loop", "exit_condition"),
        "bind an agent of this name, or write an expression",
    )
    scope = states.scope(name)
    state: dict[str, Json] = {
        "Type": "Task",
        "Agent": function,
        "Arguments": {"input": query(states.value), "context": query(states.shared(name))},
    }
    if failing is not None:
        state["Catch"] = states.catch(step, failing, name)
    output = merged([scope.data, {"decision": call("branch", ANSWER)}])
    state |= {"Output": query(output), "Next": following}
    states.put(name, state, step.pointer)
    states.value = states.opened
