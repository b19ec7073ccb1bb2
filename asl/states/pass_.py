"""Pass: hands on its input, a literal result or a payload built from its input (6.5)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.expr.frame import constant
from asl.program import Step
from asl.states.base import Compiler, Node, StateType


def compile_pass(compiler: Compiler, step: Step) -> None:
    """Compile a Pass into one pure closure: result, `ResultPath`, `Assign`, `OutputPath`."""
    finish = compiler.finish()
    if "Result" in compiler.state:
        result = compiler.state["Result"]
        step.transform = (
            constant(result)
            if finish is None
            else compiler.constant_result(result)
            or (lambda data, frame: finish(data, result, frame))
        )
        return
    payload = compiler.payload()
    step.transform = (
        payload if finish is None else lambda data, frame: finish(data, payload(data, frame), frame)
    )


def check_pass(node: Node) -> Iterator[Finding]:
    """`Result` wins over `Parameters`."""
    if "Result" in node.value and "Parameters" in node.value:
        yield Finding(
            "V-PASS-01",
            "'Result' is given, so 'Parameters' has no effect",
            node.at("Parameters"),
            hint="remove one of the two",
        )


PASS = StateType("Pass", compile_pass, check_pass)
