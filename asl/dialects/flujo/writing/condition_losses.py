"""What conditions of a blueprint decide otherwise than those of the document."""

from typing import Final

from asl.core.diagnostics import Severity
from asl.dialects.flujo.writing.losses import Losses
from asl.dialects.lowering import Flow, WorkStep
from asl.dialects.lowering.value_types import MISSING, reads_one_type, value_types
from asl.dialects.terms import Term, paths_of

__all__ = ["ConditionReporter"]

_ABSENT: Final = frozenset((MISSING, "null"))


class ConditionReporter:
    """Reports what a condition decides otherwise, unless the types of what it reads are known.

    Args:
        losses: The losses of the blueprint.
        pointer: JSON Pointer of the rule.
        flow: The machine.
        step: The step behind which the rule decides.
        condition: The condition.
    """

    def __init__(
        self, losses: Losses, pointer: str, flow: Flow, step: WorkStep, condition: Term
    ) -> None:
        self.losses = losses
        self.pointer = pointer
        self.same_types = reads_one_type(flow, step, condition)
        types = [value_types(flow, step, each) for each in paths_of(condition)]
        self.present = all(each is not None and not each & _ABSENT for each in types)

    def __call__(self, code: str, message: str) -> None:
        if (self.same_types and code == "FL-COERCE") or (self.present and code == "FL-NULL"):
            return
        decides = code in ("FL-COERCE", "FL-NULL")
        severity = Severity.ERROR if decides else None
        self.losses.add(code, message, self.pointer, severity=severity)
