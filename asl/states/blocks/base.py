"""What an agent block is: one module, one row of the table (`asl.states.blocks.BLOCKS`).

A block that is about one call wraps it: a function from one `Perform` to another, composed when the
state is compiled. A block that is about all calls stands elsewhere and has a row all the same.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.expr.frame import Evaluate
from asl.expr.frame import Frame as ExpressionFrame
from asl.program import Work
from asl.states.base import Compiler, Node
from asl.states.host import Frame, Options, Target

__all__ = ["Attempt", "Block", "Limits", "Perform", "Wrap", "compile_call", "given"]


@dataclass(slots=True)
class Attempt:
    """One attempt of a Task on its way to the agent; a block may change what is handed over."""

    frame: Frame
    data: Json
    """The effective input."""
    payload: Json
    target: Target
    options: Options | None

    def tell(self, name: str, value: Any) -> None:
        """Hand something to the agent, by the name that the call has for it."""
        if self.options is None:
            self.options = Options(None, None)
        self.options.blocks[name] = value

    async def ask(self, agent: str, payload: Json) -> Json:
        """Call another agent beside that of the state: a validator, a summariser."""
        target = Target("agent", agent, self.target.state, aside=True)
        return await self.frame.host.invoke(self.frame, target, payload)


Perform: TypeAlias = Callable[[Attempt], Awaitable[Json]]
"""Makes an attempt, or a part of it, and returns the raw result."""
Wrap: TypeAlias = Callable[[Compiler, Perform], Perform]
"""Compiles a block around what is to be done within it."""
Limits: TypeAlias = Callable[[Json, Frame], Options]
"""The limits of a call, by its raw input."""


def _nothing_of_a_state(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


def _nothing_of_a_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


@dataclass(frozen=True, slots=True)
class Block:
    """One row of the table of blocks that this version executes."""

    name: str
    """The field of a state, and of the document where it has such a block."""
    check: Callable[[Node, Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_state
    """Find what is wrong with the block of a state, given that of the document, and no schema can
    say."""
    check_workflow: Callable[[Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_workflow
    """The same for the block of the document."""
    lacks: tuple[str, ...] = ()
    """The ways to fields that are checked but not executed: `Input/Rules.$`."""


def given(
    block: Compiler, fields: tuple[str, ...]
) -> Callable[[Json, ExpressionFrame], dict[str, Json]]:
    """Compile those of the fields that are there, written or computed."""
    found = [(field, value) for field in fields if (value := block.scalar(field)) is not None]
    return lambda data, frame: {field: value(data, frame) for field, value in found}


def compile_call(
    compiler: Compiler,
    target: Target,
    payload: Evaluate,
    limits: Limits | None,
    wraps: Iterator[Wrap],
) -> Work:
    """Compile the work of a Task with blocks; *wraps* go from the call outwards."""
    perform: Perform = _call
    for wrap in wraps:
        perform = wrap(compiler, perform)
    effective, whole = compiler.input(), perform

    async def work(raw: Json, frame: Frame) -> Json:
        options = None if limits is None else limits(raw, frame)
        data = effective(raw, frame)
        return await whole(Attempt(frame, data, payload(raw, frame), target, options))

    return work


async def _call(attempt: Attempt) -> Json:
    frame = attempt.frame
    return await frame.host.invoke(frame, attempt.target, attempt.payload, attempt.options)
