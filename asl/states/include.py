"""Include: runs a template or a module as an inner machine of the same execution (6.12, 9)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.expr.frame import constant
from asl.program import Step
from asl.states.base import Compiler, Node, StateType
from asl.states.host import Fan, Frame


def compile_include(compiler: Compiler, step: Step) -> None:
    """Compile an Include: the result is the output of the machine that it holds.

    The arguments that are left are evaluated on the effective input; a machine gets that as well,
    or what `Arguments` says.
    """
    effective = compiler.input()
    payload = compiler.payload() if compiler.jsonata else effective
    arguments = compiler.template("Parameters") or constant({})
    machine_of = compiler.included()

    async def work(data: Json, frame: Frame) -> Json:
        machine = machine_of(arguments(effective(data, frame), frame))
        shared = payload(data, frame)

        def child(index: int) -> Frame:
            made = frame.child(index, machine, shared)
            made.scope = machine.scope
            return made

        joined = await frame.host.fork(frame, Fan(1, child))
        return joined.values[0]

    step.work = work
    step.finish = compiler.finish()


def check_include(node: Node) -> Iterator[Finding]:
    """What an Include may name is known where the document was put together."""
    yield from ()


INCLUDE = StateType("Include", compile_include, check_include)
