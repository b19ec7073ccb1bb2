"""Pass: hands on its input, a literal result or a payload built from its input (6.5)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.expr.frame import Evaluate, Frame, constant
from asl.program import Finish, Step
from asl.states.base import Compiler, Node, StateType


def compile_pass(compiler: Compiler, step: Step) -> None:
    """Compile a Pass into one pure closure: result, `ResultPath`, `Assign`, `OutputPath`."""
    step.transform = _shaped(_result(compiler), compiler.finish())


def _result(compiler: Compiler) -> Evaluate:
    if "Result" in compiler.state:
        return constant(compiler.state["Result"])
    effective, parameters = compiler.input(), compiler.template("Parameters")
    if parameters is None:
        return effective
    if "InputPath" not in compiler.state:
        return parameters
    return lambda data, frame: parameters(effective(data, frame), frame)


def _shaped(result: Evaluate, finish: Finish | None) -> Evaluate:
    if finish is None:
        return result

    def transform(data: Json, frame: Frame) -> Json:
        return finish(data, result(data, frame), frame)

    return transform


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
