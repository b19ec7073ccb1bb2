"""Include: runs a template or a module as an inner machine of the same execution (6.12, 9)."""

from collections.abc import Iterator
from typing import Any

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.expr.frame import constant
from asl.program import DocumentScope, Machine, Step
from asl.states.base import Compiler, Node, StateType, describe_field, mentions
from asl.states.blocks.progress import Tracking, document_tracking
from asl.states.effects import FanOut, StateFrame


def compile_include(compiler: Compiler, step: Step) -> None:
    """Compile an Include: the result is the output of the machine that it holds.

    The arguments that are left are evaluated on the effective input; a machine gets that as well,
    or what `Arguments` says.
    """
    effective = compiler.input()
    payload = compiler.payload() if compiler.jsonata else effective
    arguments = compiler.template("Parameters") or constant({})
    machine_of = compiler.included_machine()

    def entered(data: Json, frame: Any) -> tuple[Machine, Json, DocumentScope | None]:
        """Return what runs, what it is given, and what its own blocks say."""
        machine = machine_of(arguments(effective(data, frame), frame))
        shared = payload(data, frame)
        scope = machine.scope
        return machine, shared, None if scope is None else scope.with_input(shared, frame)

    async def work(data: Json, frame: StateFrame) -> Json:
        machine, shared, scope = entered(data, frame)
        if scope is not None:
            frame.open_channels(scope)

        def child(index: int) -> StateFrame:
            made = frame.child(index, machine, shared)
            made.scope, made.parameter_values = scope, machine.filled
            return made

        joined = await frame.effects.fan_out(frame, FanOut(1, child))
        return joined.values[0]

    def track(data: Json, frame: Any) -> Tracking | None:
        machine, _, scope = entered(data, frame)
        block = None if scope is None else scope.block("Progress")
        return None if block is None else document_tracking(block, len(machine.steps))

    step.work = work
    if mentions(compiler.state["Template"], "Progress"):
        step.progress = track
    step.finish = compiler.finish()


def check_include(node: Node) -> Iterator[Finding]:
    """What an Include may name is known where the document was put together."""
    yield from ()


INCLUDE = StateType(
    "Include",
    compile_include,
    check_include,
    effect=True,
    machines=("Template",),
    forks=True,
    describe=describe_field("Template"),
)
