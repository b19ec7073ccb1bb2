"""Succeed: ends its machine with the filtered input as output (6.7)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.program import Step
from asl.states.base import Compiler, Node, Outline, StateType, Tone, Transitions


def compile_succeed(compiler: Compiler, step: Step) -> None:
    """Compile a Succeed: `OutputPath(InputPath(raw input))`, or `Output`."""
    effective, leave = compiler.input(), compiler.leave()
    if leave is None:
        step.transform = effective
    else:
        step.transform = lambda data, frame: leave(data, effective(data, frame), frame)


def check_succeed(node: Node) -> Iterator[Finding]:
    """Nothing that its schema does not say already."""
    yield from ()


SUCCEED = StateType(
    "Succeed",
    compile_succeed,
    check_succeed,
    aws=True,
    transitions=Transitions.NOTHING,
    outline=Outline.OVAL,
    tone=Tone.GOOD,
)
