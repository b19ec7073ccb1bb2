"""Pass: hands on its input, a literal result or a payload built from its input (6.5)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.expr.frame import Evaluate, constant
from asl.program import Finish, Step, Work
from asl.states.base import Compiler, Node, StateType
from asl.states.blocks.memory import INSERTIONS, compile_read, compile_write
from asl.states.effects import StateFrame


def compile_pass(compiler: Compiler, step: Step) -> None:
    """Compile a Pass into one pure closure: result, `ResultPath`, `Assign`, `OutputPath`.

    One with a memory reaches the world.
    """
    if "Memory" in compiler.state:
        step.work, finish = _remembering(compiler), compiler.finish()
        step.finish = finish if finish is None or not compiler.jsonata else _from_result(finish)
        return
    if "Result" in compiler.state:
        result = compiler.state["Result"]
        step.transform = compiler.constant_result(result) or _literal(result, compiler.finish())
        return
    finish, payload = compiler.finish(), compiler.payload()
    step.transform = (
        payload if finish is None else lambda data, frame: finish(data, payload(data, frame), frame)
    )


def _literal(result: Json, finish: Finish | None) -> Evaluate:
    return constant(result) if finish is None else lambda data, frame: finish(data, result, frame)


def _from_result(finish: Finish) -> Finish:
    """Return a *finish* in JSONata whose input is the result of `_remembering`."""
    return lambda raw, result, frame: finish(result, result, frame)


def _remembering(compiler: Compiler) -> Work:
    read, write = compile_read(compiler), compile_write(compiler)
    effective = compiler.input()
    template = None if compiler.jsonata else compiler.template("Parameters")

    async def work(raw: Json, frame: StateFrame) -> Json:
        data = effective(raw, frame)
        if read is not None:
            data, _, _ = await read(data, frame)
        result = data if template is None else template(data, frame)
        if "Result" in compiler.state:
            result = compiler.state["Result"]
        if write is not None:
            await write(data, raw, result, frame)
        return result

    return work


def check_pass(node: Node) -> Iterator[Finding]:
    """`Result` wins over `Parameters`."""
    if "Result" in node.value and "Parameters" in node.value:
        yield Finding(
            "V-PASS-01",
            "'Result' is given, so 'Parameters' has no effect",
            node.at("Parameters"),
            hint="remove one of the two",
        )


PASS = StateType(
    "Pass",
    compile_pass,
    check_pass,
    aws=True,
    insertions=INSERTIONS,
)
