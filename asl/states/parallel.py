"""Parallel: runs its branches at the same time, each on its own copy of the input (6.4)."""

from collections.abc import Iterator

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.values import Json
from asl.program import Step
from asl.states.base import Compiler, Node, StateType
from asl.states.blocks import compile_inserts
from asl.states.blocks.progress import compile_following, compile_tracking, record_counts
from asl.states.effects import FanOut, StateFrame


def compile_parallel(compiler: Compiler, step: Step) -> None:
    """Compile a Parallel: the result is the array of the branches' outputs, in their order."""
    payload = compiler.payload()
    branches = [compiler.machine("Branches", i) for i in range(len(compiler.state["Branches"]))]

    follow = compile_following(compiler)

    async def work(data: Json, frame: StateFrame) -> Json:
        follows = follow(data, frame)
        shared = payload(data, frame)

        def child(index: int) -> StateFrame:
            return frame.child(index, branches[index], shared)

        joined = await frame.effects.fan_out(frame, FanOut(len(branches), child))
        if follows:
            record_counts(frame, len(branches), 0)
        return joined.values

    step.work = work
    step.progress = compile_tracking(compiler)
    step.finish = compiler.finish(inserts=compile_inserts(compiler))


def check_parallel(node: Node) -> Iterator[Finding]:
    """A branch has no settings of its own."""
    branches = node.value.get("Branches")
    for index, branch in enumerate(branches if type(branches) is list else ()):
        for field in ("QueryLanguage", "ProcessorConfig"):
            if type(branch) is dict and field in branch:
                yield Finding(
                    "V-PAR-03",
                    f"{field!r} has no effect on a branch",
                    node.at("Branches", index, field),
                    at_key=True,
                    aws=Wording(aws_messages.unknown_field(field), at=node.at("Branches", index)),
                )


PARALLEL = StateType(
    "Parallel",
    compile_parallel,
    check_parallel,
    aws=True,
    effect=True,
    concurrent=True,
    machines=("Branches",),
    forks=True,
    budgeted=True,
)
