"""A machine whose ways do not cross, as steps: branches are conditionals, rounds are loops."""

from collections.abc import Sequence
from typing import Final

from asl.core.values import Json
from asl.dialects.flujo.functions.conditions import parse_number
from asl.dialects.flujo.writing.condition_losses import ConditionReporter
from asl.dialects.flujo.writing.conditions import ConditionPrinter, Unprintable, is_boolean
from asl.dialects.flujo.writing.layout import DataLayout
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.flujo.writing.places import resolve
from asl.dialects.flujo.writing.steps import Step, StepWriter, failing_step, failure_message
from asl.dialects.lowering import StepExit, WorkStep
from asl.dialects.lowering.structure import Block, Branch, Loop
from asl.dialects.terms import Comparison, DataPath, Literal, Logic, Negation, Term

__all__ = ["PipelineWriter"]

_NEVER: Final = "1 == 0"
"""The condition in the place of one that cannot be written."""
MAX_LOOPS: Final = 100
"""The rounds of a loop that the document does not limit."""


class PipelineWriter:
    """Writes the block of a machine as a list of steps."""

    def __init__(self, losses: Losses, layout: DataLayout, steps: StepWriter) -> None:
        self.losses = losses
        self.layout = layout
        self.names = layout.names
        self.steps = steps

    def block(self, block: Block) -> list[Json]:
        """Return the steps of a block."""
        made: list[Json] = []
        for part in block:
            match part:
                case Branch():
                    made += self._branch(part)
                case Loop():
                    made += self._loop(part)
                case WorkStep(kind="Fail"):
                    made.append(self._fail(part))
                case WorkStep():
                    made += self.steps.of(part)
        return made

    def _fail(self, step: WorkStep) -> Step:
        message = "a run that ends in this state fails with an error of the platform"
        self.losses.add("FL-FAIL", message, step.pointer, "its message has Error and Cause")
        return failing_step(self.names.of(step), failure_message(step))

    # Branches

    def _branch(self, branch: Branch) -> list[Json]:
        step = branch.step
        made: list[Json] = [*self.steps.of(step)]
        name = self.names.of(step) if not made else self.names.new(f"{step.name}_answer")
        cases = [(each, self.block(body)) for each, body in branch.cases]
        if not any(body for _, body in cases) and cases[-1][0].condition is None:
            return made
        selected = self._selected(step, cases)
        if selected is not None:
            subject, branches, default = selected
            made.append(_conditional(name, subject, branches, default))
            return made
        return [*made, *self._chain(step, name, cases)]

    def _chain(
        self, step: WorkStep, name: str, cases: Sequence[tuple[StepExit, list[Json]]]
    ) -> list[Json]:
        """Return a conditional for the first case, with those for the others in its branch."""
        (taken, body), *others = cases
        if taken.condition is None:
            return body
        said = self._condition(step, taken)
        if said == _NEVER and not body and others:
            return self._chain(step, name, others)
        branches: dict[str, Json] = {"true": body}
        if others:
            further = name if others[0][0].condition is None else self.names.new(f"{name}_else")
            branches["false"] = self._chain(step, further, others)
        return [_conditional(name, said, branches, None)]

    def _condition(self, step: WorkStep, taken: StepExit) -> str:
        """Return the condition of an exit; one that cannot be written never holds."""
        assert taken.condition is not None
        term = self._resolved(step, taken.condition)
        found = (self.losses, taken.pointer, self.layout.flow, step, taken.condition)
        printer = ConditionPrinter(ConditionReporter(*found), strict=True)
        try:
            said = printer.print(term)
        except Unprintable as reason:
            message = f"{reason}, so the rule never matches"
            self.losses.add("FL-OPERATOR", message, taken.pointer)
            return _NEVER
        return said if is_boolean(term) or isinstance(term, DataPath) else f"{said} and True"

    def _reporter(self, pointer: str) -> "_Reporter":
        return _Reporter(self.losses, pointer)

    def _resolved(self, step: WorkStep, term: Term) -> Term:
        environment = self.layout.deciding(step, self.layout.before[step.name])
        return resolve(term, environment)

    def _selected(
        self, step: WorkStep, cases: Sequence[tuple[StepExit, list[Json]]]
    ) -> tuple[str, dict[str, Json], list[Json] | None] | None:
        """Return the value that selects one of several branches, the branches and the default."""
        subject: DataPath | None = None
        branches: dict[str, Json] = {}
        default: list[Json] | None = None
        for taken, body in cases:
            if taken.condition is None:
                default = body
                continue
            condition = self._resolved(step, taken.condition)
            match condition:
                case Comparison("=", DataPath() as value, Literal(str(key))) if subject in (
                    None,
                    value,
                ):
                    subject = value
                case _:
                    return None
            if key in branches or parse_number(key) is not None or key in ("true", "false"):
                return None
            branches[key] = body
        if subject is None or len(branches) < 2:
            return None
        if default is not None and len(subject.steps) > 1:
            return None  # a member of an answer may be missing, which fails the run here
        try:
            said = ConditionPrinter(self._reporter(step.pointer), strict=True).print(subject)
        except Unprintable:
            return None
        message = "a missing value or null selects no branch, so the run fails"
        self.losses.add("FL-NULL", message, step.pointer)
        return said, branches, default

    # Loops

    def _loop(self, loop: Loop) -> list[Json]:
        step = loop.decides
        body = [*self.block(loop.body), *self.steps.of(step)]
        over = self._resolved(step, _leaving(step.exits, loop.repeats))
        try:
            said = ConditionPrinter(self._reporter(step.pointer), strict=True).print(over)
        except Unprintable as reason:
            message = f"{reason}, so the loop ends with its last round"
            self.losses.add("FL-OPERATOR", message, step.pointer)
            said = "False"
        message = f"the loop fails after {MAX_LOOPS} rounds"
        hint = "set max_loops to the maximum number of rounds"
        place = _first(loop).pointer
        self.losses.add("L-LIMIT", message, place, hint, at_key=True)
        inner: dict[str, Json] = {
            "body": body,
            "exit_expression": said,
            "max_loops": MAX_LOOPS,
        }
        return [{"kind": "loop", "name": self.names.of(step), "loop": inner}]


class _Reporter:
    """Reports what a condition decides otherwise, at the place of its rule."""

    def __init__(self, losses: Losses, pointer: str) -> None:
        self.losses = losses
        self.pointer = pointer

    def __call__(self, code: str, message: str) -> None:
        self.losses.add(code, message, self.pointer)


def _first(part: WorkStep | Branch | Loop) -> WorkStep:
    """Return the first step of a part of a block."""
    match part:
        case Branch(step):
            return step
        case Loop(body, decides):
            return _first(body[0]) if body else decides
    return part


def _conditional(
    name: str, expression: str, branches: dict[str, Json], default: list[Json] | None
) -> Step:
    made: Step = {
        "kind": "conditional",
        "name": name,
        "condition_expression": expression,
        "branches": branches,
    }
    return made if default is None else {**made, "default_branch": default}


def _leaving(exits: Sequence[StepExit], repeats: Sequence[StepExit]) -> Term:
    """Return the condition that the exit which is taken is none that repeats the loop."""
    over: Term = Literal(False)
    for each in reversed(exits):
        leaves = each not in repeats
        if each.condition is None:
            over = Literal(leaves)
        elif leaves:
            over = each.condition if over == Literal(False) else Logic("or", (each.condition, over))
        elif over == Literal(True):
            over = Negation(each.condition)
        elif over != Literal(False):
            over = Logic("and", (Negation(each.condition), over))
    return over
