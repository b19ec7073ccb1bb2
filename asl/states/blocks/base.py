"""What an agent block is: one module, one row of the table (`asl.states.blocks.BLOCKS`).

A block that is about one call wraps it: a function from one `Perform` to another, composed when the
state is compiled. A block that is about all calls stands elsewhere and has a row all the same.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.expr.paths import Path
from asl.expr.result_path import insert_at
from asl.program import Work
from asl.states.base import Compiler, Node
from asl.states.calls import CallOptions, Invocation, Target
from asl.states.effects import StateFrame
from asl.states.settings import BlockSettings

__all__ = [
    "Attempt",
    "Block",
    "Destination",
    "Limits",
    "Perform",
    "Wrap",
    "compile_call",
    "compile_fields",
    "compile_settings",
    "compile_settings_of",
    "is_computed",
    "make_parameters",
]


@dataclass(slots=True)
class Attempt:
    """One attempt of a Task on its way to the agent; a block may change what is handed over."""

    frame: StateFrame
    raw: Json
    """The raw input."""
    data: Json
    """The effective input."""
    target: Target
    options: CallOptions | None
    payload: Json = None
    """The parameters, once they are made."""
    injected: tuple[Path, Json] | None = None
    """What memory has put into the effective input, and where."""
    answer: Json = None
    """The raw result as the agent gave it, where guardrails have looked at it."""
    judge: "Judge | None" = None
    """What those guardrails leave of another content."""

    def tell(self, name: str, value: Any) -> None:
        """Hand something to the agent, by the name that the call has for it."""
        if self.options is None:
            self.options = CallOptions(None, None)
        elif self.options.shared:
            self.options = self.options.copy()
        self.options.blocks[name] = value

    def told(self, name: str) -> Any:
        """Return what is handed to the agent by this name, None for nothing."""
        return None if self.options is None else self.options.blocks.get(name)

    def may_repeat(self) -> None:
        """Say that the agent may be called again in this attempt."""
        if self.options is not None and self.options.limited:
            self.options.again = True

    async def ask(self, agent: str, payload: Json) -> Json:
        """Call another agent beside that of the state: a validator, a summariser."""
        target = Target("agent", agent, self.target.state, aside=True)
        options = None
        if self.options is not None and "tools" in self.options.blocks:
            options = CallOptions(None, None)  # it may use no more than the agent of the state
            options.blocks["tools"] = self.options.blocks["tools"]
        return await self.frame.effects.call(self.frame, Invocation(target, payload, options))


Judge: TypeAlias = Callable[[Attempt, Json], Awaitable[Json]]
"""Returns what guardrails leave of a content; raises StateError where they do not let it pass."""
Perform: TypeAlias = Callable[[Attempt], Awaitable[Json]]
"""Makes an attempt, or a part of it, and returns the raw result. One that only hands something over
returns what the next one does, without a coroutine of its own."""
Wrap: TypeAlias = Callable[[Compiler, Perform], Perform]
"""Compiles a block around what is to be done within it."""
Limits: TypeAlias = Callable[[Json, StateFrame], CallOptions]
"""The limits of a call, by its raw input."""


def _nothing_of_a_state(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


def _nothing_of_a_field(node: Node, field: str) -> Iterator[Finding]:
    yield from ()


def _nothing_missing(block: Mapping[str, Json], node: Node | None) -> Iterator[tuple[str, str]]:
    yield from ()


def _nothing_of_a_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


class Block(NamedTuple):
    """One row of the table of blocks that this version executes."""

    name: str
    """The field of a state, and of the document where it has such a block."""
    check: Callable[[Node, Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_state
    """Find what is wrong with the block of a state, given that of the document, and no schema can
    say."""
    check_workflow: Callable[[Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_workflow
    """The same for the block of the document."""
    missing: Callable[[Mapping[str, Json], Node | None], Iterator[tuple[str, str]]] = (
        _nothing_missing
    )
    """Find what of a block is not executed, given the state that has it (None for the document):
    the pointer within the block, and why."""
    lacks: tuple[str, ...] = ()
    """The ways to fields that are checked but not executed: `Input/Rules.$`."""
    scalar: bool = False
    """Whether it is one value, which may be computed as a whole (`F.$`, 3.9)."""
    check_field: Callable[[Node, str], Iterator[Finding]] = _nothing_of_a_field
    """Find the same for a block that is a single value, in this field: `CacheTTL`, `CacheTTL.$`."""


def compile_fields(
    block: Compiler, fields: tuple[str, ...]
) -> Callable[[Json, Any], dict[str, Json]]:
    """Compile those of the fields that are there, written or computed."""
    found = [(field, value) for field in fields if (value := block.scalar(field)) is not None]
    return lambda data, frame: {field: value(data, frame) for field, value in found}


def compile_settings(
    compiler: Compiler, block: str, fields: tuple[str, ...]
) -> Callable[[Json, Any], BlockSettings]:
    """Compile fields of a block, of an object in one (`Streaming.Buffer`) or of the state itself.

    What is computed is looked at when it is read from the settings.
    """
    inner = compiler.within(*block.split(".")) if block else compiler
    return compile_settings_of(inner, fields, f"{block}." if block else "")


def compile_settings_of(
    inner: Compiler, fields: tuple[str, ...], prefix: str
) -> Callable[[Json, Any], BlockSettings]:
    """Compile the fields of the object at hand; *prefix* stands before their names."""
    jsonata, state = inner.jsonata, inner.name
    if not is_computed(inner, fields):
        written = {field: inner.state[field] for field in fields if field in inner.state}
        whole = BlockSettings(written, jsonata, prefix, state)
        return lambda data, frame: whole
    values = compile_fields(inner, fields)
    return lambda data, frame: BlockSettings(values(data, frame), jsonata, prefix, state)


def is_computed(block: Compiler, fields: Iterable[str]) -> bool:
    """Whether one of the fields has its value only when the state runs."""
    if block.jsonata:
        return any("{%" in compact(block.state.get(field)) for field in fields)
    return not block.state.keys().isdisjoint(f"{field}.$" for field in fields)


class Destination:
    """Where a block puts something into the output of a state (step 13 of Specification 3.1).

    A path that is computed is computed once the memory was read, as all fields are; so a path that
    leads nowhere fails the state before anything is done.
    """

    def __init__(self, block: Compiler, field: str, prefix: str) -> None:
        self.field = field
        self.name = prefix + field
        self.fields = compile_settings_of(block, (field,), prefix)
        self.computed = is_computed(block, (field,))
        written = None if self.computed else self.fields(None, None).way(field)
        self.written = None if written is None else written.segments

    def settle(self, data: Json, frame: StateFrame) -> None:
        """Compute it, for when the state has succeeded; raises StateError for what is no path."""
        if self.computed:
            path = self.fields(data, frame).way(self.field)
            steps = None if path is None else path.segments
            frame.destinations = {**(frame.destinations or {}), self.name: steps}

    def placed(self, output: Json, value: Json, frame: Any) -> Json:
        """Return an output with a value in its place, if it has one."""
        steps = frame.destinations[self.name] if self.computed else self.written
        return output if steps is None else insert_at(output, steps, value)


def compile_call(
    compiler: Compiler, target: Target, limits: Limits | None, wraps: Iterator[Wrap]
) -> Work:
    """Compile the work of a Task with blocks; *wraps* go from the call outwards."""
    perform: Perform = _call
    for wrap in wraps:
        perform = wrap(compiler, perform)
    effective, whole = compiler.input(), perform

    def work(raw: Json, frame: StateFrame) -> Awaitable[Json]:
        options = None if limits is None else limits(raw, frame)
        return whole(Attempt(frame, raw, effective(raw, frame), target, options))

    return work


def make_parameters(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what turns the effective input into parameters, the memory in it included."""
    template = compiler.template("Arguments" if compiler.jsonata else "Parameters")

    def perform(attempt: Attempt) -> Awaitable[Json]:
        data, frame = attempt.data, attempt.frame
        attempt.payload = data if template is None else template(data, frame)
        if attempt.injected is not None:
            path, value = attempt.injected
            if not _has(attempt.payload, path):
                attempt.payload = insert_at(attempt.payload, path.segments, value)
            frame.note("TaskScheduled", {"parameters": attempt.payload})
        return inner(attempt)

    return perform


def _has(value: Json, path: Path) -> bool:
    """Whether there is something at a path, or something in its way."""
    for step in path.segments:
        if type(value) is not dict:
            return True
        if step not in value:
            return False
        value = value[step]
    return True


def _call(attempt: Attempt) -> Awaitable[Json]:
    frame, options = attempt.frame, attempt.options
    if options is not None and options.began is not None:
        left = options.left(frame.now)
        if left is not None and left <= 0:
            raise StateError("States.Timeout", options.cause("answer", options.timeout))
    return frame.effects.call(frame, Invocation(attempt.target, attempt.payload, options))
