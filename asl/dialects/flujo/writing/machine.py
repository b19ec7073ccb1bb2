"""State machine with declarative transitions, for machines that are no list of steps."""

from typing import Final

from asl.core.diagnostics import Severity
from asl.core.values import Json
from asl.dialects.flujo.writing.condition_losses import ConditionReporter
from asl.dialects.flujo.writing.conditions import ConditionPrinter, Unprintable
from asl.dialects.flujo.writing.layout import WORKING, DataLayout
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.places import resolve
from asl.dialects.flujo.writing.steps import Step, StepWriter, failure_message
from asl.dialects.lowering import Handler, StepExit, WorkStep
from asl.dialects.names import FreshNames
from asl.dialects.transitions import find_cycle

__all__ = ["MachineWriter"]

_FAILED: Final = "a state has failed"
_ALL: Final = frozenset(("States.ALL", "States.TaskFailed"))
"""Names of errors that a rule without a condition catches."""


class MachineWriter:
    """Writes the flow of a layout as a state machine."""

    def __init__(self, losses: Losses, layout: DataLayout, steps: StepWriter, name: str) -> None:
        self.losses = losses
        self.layout = layout
        self.flow = layout.flow
        self.steps = steps
        self.name = name
        self.taken = FreshNames(self.flow.steps, "_")
        self.states: dict[str, Json] = {}
        self.rules: list[Json] = []
        self.ends: dict[str, None] = {}
        self._done: str | None = None

    def written(self) -> Step:
        """Return the step of the machine."""
        for name, step in self.flow.steps.items():
            if name in self.layout.before:
                self._state(step)
        works = (
            step.kind in WORKING and step.kind != "Approval"
            for name, step in self.flow.steps.items()
            if name in self.layout.before
        )
        if any(works):
            failed = self.taken.new("failed")
            self._failing(failed, _FAILED)
            self._rule("*", "failure", failed)
            message = "a failure without a handler fails the run with an error of the platform"
            hint = "the message of the error is lost"
            self.losses.add("FL-FAIL", message, self.flow.pointer, hint)
        start = self.flow.start
        made: Step = {
            "kind": "StateMachine",
            "name": self.name,
            "start_state": start,
            "end_states": [*self.ends],
            "states": self.states or {start: []},
            "transitions": self.rules,
        }
        self._limited(len(self.states) or 1)
        return made

    def _limited(self, entries: int) -> None:
        """Report the limit of a machine with a cycle."""
        states = {name: step.state for name, step in self.flow.steps.items()}
        around = find_cycle(self.flow.start, states)
        if around is not None:
            message = f"a machine stops without a failure when it has entered {10 * entries} states"
            hint = "split the rounds into several runs"
            place = self.flow.steps[around].pointer
            error = Severity.ERROR  # the run succeeds where it would go on
            self.losses.add("L-LIMIT", message, place, hint, at_key=True, severity=error)

    # States

    def _state(self, step: WorkStep) -> None:
        match step.kind:
            case "Succeed":
                self.ends[step.name] = None
                return
            case "Fail":
                message = "a run that ends in this state fails with an error of the platform"
                hint = "its message has Error and Cause"
                self.losses.add("FL-FAIL", message, step.pointer, hint)
                self._failing(step.name, failure_message(step))
                return
        made = self._noticed(step, self.steps.of(step))
        self.states[step.name] = made[0] if len(made) == 1 else [*made]
        for handler in step.handlers:
            self._handler(step, handler)
            if not _ALL.isdisjoint(handler.errors):
                break
        if step.kind != "Approval":
            self._exits(step.name, step)
            return
        if len(step.exits) == 1:
            self._rule(step.name, "pause", self._target(step.exits[0].target))
            return
        answered = self.taken.new(f"{step.name}_answer")
        self.states[answered] = []
        self._rule(step.name, "pause", answered)
        self._exits(answered, step)

    def _noticed(self, step: WorkStep, made: list[Step]) -> list[Step]:
        """Return the steps of a state so that the last one fails if any of them does.

        A state fails if its last step does, but a loop fails if any step of its body does.
        """
        if not any(each.get("kind") in ("map", "parallel") for each in made[:-1]):
            return made
        name = self.layout.names.new(f"{step.name}_once")
        loop: Step = {"max_loops": 1, "exit_expression": "True", "body": [*made]}
        return [{"kind": "loop", "name": name, "loop": loop}]

    def _failing(self, name: str, message: str) -> None:
        """Add a state that fails the machine: it goes on to a state that does not exist."""
        if message in self.layout.flow.steps:
            message = f"{message} has failed"
        self.states[name] = {
            "name": self.layout.names.new(f"{name}_step"),
            "agent": {"id": "flujo.builtins.context_set"},
            "input": {"path": "next_state", "value": message},
            "updates_context": True,
        }

    # Rules

    def _rule(self, source: str, event: str, target: str, when: str | None = None) -> None:
        rule: dict[str, Json] = {"from": source, "on": event, "to": target}
        self.rules.append(rule if when is None else {**rule, "when": when})

    def _target(self, target: str | None) -> str:
        if target is not None:
            return target
        if self._done is None:
            self._done = self.taken.new("done")
            self.ends[self._done] = None
        return self._done

    def _exits(self, source: str, step: WorkStep) -> None:
        for each in step.exits:
            when = None if each.condition is None else self._condition(step, each)
            if when != "False":
                self._rule(source, "success", self._target(each.target), when)
        if step.exits and step.exits[-1].condition is not None:
            name = self.taken.new(f"{source}_unmatched")
            self._failing(name, f"no rule of {step.name} matches")
            self._rule(source, "success", name)

    def _condition(self, step: WorkStep, taken: StepExit) -> str:
        assert taken.condition is not None
        environment = self.layout.deciding(step, self.layout.before[step.name])
        report = ConditionReporter(self.losses, taken.pointer, self.flow, step, taken.condition)
        try:
            return ConditionPrinter(report).print(resolve(taken.condition, environment))
        except Unprintable as reason:
            message = f"{reason}, so the rule never matches"
            self.losses.add("FL-OPERATOR", message, taken.pointer)
            return "False"

    def _handler(self, step: WorkStep, handler: Handler) -> None:
        message = "a rule sees only the message of an error, in output.last_step.feedback"
        if not _ALL.isdisjoint(handler.errors):
            self.losses.add("FL-ERROR", message, handler.pointer)
            self._rule(step.name, "failure", handler.target)
            return
        error = Severity.ERROR  # a message need not have the name of its error
        self.losses.add("FL-ERROR", message, handler.pointer, severity=error)
        tests = (f"{each!r} in output.last_step.feedback" for each in handler.errors)
        self._rule(step.name, "failure", handler.target, " or ".join(tests))
