"""The size of what a pure state hands on, where the profile bounds that of every state."""

from asl.core.errors import too_large
from asl.core.values import Json, measure
from asl.expr.frame import Frame
from asl.program import Step

__all__ = ["bound_output"]


def bound_output(step: Step, limit: int, *, first: bool) -> None:
    """Let a pure state fail where its output is too large.

    What it hands on unchanged is measured only in the *first* state of a machine: elsewhere the
    state before has been.
    """
    transform, choose = step.transform, step.choose

    def check(data: Json, output: Json) -> None:
        if (first or output is not data) and measure(output, limit) > limit:
            raise too_large(step.name)

    if transform is not None:

        def transform_within(data: Json, frame: Frame) -> Json:
            output = transform(data, frame)
            check(data, output)
            return output

        step.transform = transform_within
    elif choose is not None:

        def choose_within(data: Json, frame: Frame) -> tuple[Step | None, Json]:
            following, output = choose(data, frame)
            check(data, output)
            return following, output

        step.choose = choose_within
