"""Agent blocks: one module and one row of the table each (`asl.states.blocks.BLOCKS`).

A block for single calls wraps them: a function from one `Perform` to another, composed when the
state is compiled. A block for all calls is performed elsewhere and has a row as well.
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
    """One attempt of a Task; blocks may change its data, options and payload."""

    frame: StateFrame
    raw: Json
    """The raw input."""
    data: Json
    """The effective input."""
    target: Target
    options: CallOptions | None
    payload: Json = None
    """The parameters, after `make_parameters`."""
    injected: tuple[Path, Json] | None = None
    """The memory in the effective input, with its path."""
    answer: Json = None
    """The raw result of the agent before output guardrails."""
    judge: "Judge | None" = None
    """The output guardrails, for other content."""

    def set_call_attribute(self, name: str, value: Any) -> None:
        """Pass a value to the agent, as an attribute of the call with this name."""
        if self.options is None:
            self.options = CallOptions(None, None)
        elif self.options.shared:
            self.options = self.options.copy()
        self.options.blocks[name] = value

    def call_attribute(self, name: str) -> Any:
        """Return the value passed to the agent with this name, or None."""
        return None if self.options is None else self.options.blocks.get(name)

    def may_repeat(self) -> None:
        """Mark that the agent may be called again in this attempt."""
        if self.options is not None and self.options.is_limited:
            self.options.repeats = True

    async def call_helper(self, agent: str, payload: Json) -> Json:
        """Call a helper of the state's agent: a validator or a summariser."""
        target = Target("agent", agent, self.target.state, is_helper=True)
        options = None
        if self.options is not None and "tools" in self.options.blocks:
            options = CallOptions(None, None)  # it may use no more than the agent of the state
            options.blocks["tools"] = self.options.blocks["tools"]
        return await self.frame.effects.call(self.frame, Invocation(target, payload, options))


Judge: TypeAlias = Callable[[Attempt, Json], Awaitable[Json]]
"""Returns the content after guardrails; raises StateError for rejected content."""
Perform: TypeAlias = Callable[[Attempt], Awaitable[Json]]
"""Makes an attempt, or a part of it, and returns the raw result. One that only passes values on
returns the awaitable of the next one, without its own coroutine."""
Wrap: TypeAlias = Callable[[Compiler, Perform], Perform]
"""Compiles a block around an inner `Perform`."""
Limits: TypeAlias = Callable[[Json, StateFrame], CallOptions]
"""Returns the options of a call by its raw input."""


def _nothing_of_a_state(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


def _nothing_of_a_field(node: Node, field: str) -> Iterator[Finding]:
    yield from ()


def _nothing_missing(block: Mapping[str, Json], node: Node | None) -> Iterator[tuple[str, str]]:
    yield from ()


def _nothing_of_a_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


class Block(NamedTuple):
    """A row of the table of executed blocks."""

    name: str
    """The field of states, and of documents that have such a block."""
    check: Callable[[Node, Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_state
    """Yields the findings on the block of a state beyond its schema, given that of the document."""
    check_workflow: Callable[[Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_workflow
    """The same for the block of the document."""
    missing: Callable[[Mapping[str, Json], Node | None], Iterator[tuple[str, str]]] = (
        _nothing_missing
    )
    """Yields pointers and reasons of unsupported parts of a block, given the state (None for the
    document)."""
    lacks: tuple[str, ...] = ()
    """The paths of fields that are checked but not executed: `Input/Rules.$`."""
    scalar: bool = False
    """Whether it is a single value, which may be computed as a whole (`F.$`, 3.9)."""
    check_field: Callable[[Node, str], Iterator[Finding]] = _nothing_of_a_field
    """Yields the findings on a single value in this field: `CacheTTL`, `CacheTTL.$`."""


def compile_fields(
    block: Compiler, fields: tuple[str, ...]
) -> Callable[[Json, Any], dict[str, Json]]:
    """Compile the existing ones of some fields, constant or computed."""
    found = [(field, value) for field in fields if (value := block.scalar(field)) is not None]
    return lambda data, frame: {field: value(data, frame) for field, value in found}


def compile_settings(
    compiler: Compiler, block: str, fields: tuple[str, ...]
) -> Callable[[Json, Any], BlockSettings]:
    """Compile fields of a block, of an object in it (`Streaming.Buffer`) or of the state itself.

    Computed values are checked when they are read from the settings.

    Args:
        compiler: The compiler of the state.
        block: The path of the object, with dots; empty for the state.
        fields: The fields.
    """
    inner = compiler.compiler_at(*block.split(".")) if block else compiler
    return compile_settings_of(inner, fields, f"{block}." if block else "")


def compile_settings_of(
    inner: Compiler, fields: tuple[str, ...], prefix: str
) -> Callable[[Json, Any], BlockSettings]:
    """Compile fields of an object; *prefix* precedes their names in errors."""
    jsonata, state = inner.jsonata, inner.name
    if not is_computed(inner, fields):
        written = {field: inner.state[field] for field in fields if field in inner.state}
        whole = BlockSettings(written, jsonata, prefix, state)
        return lambda data, frame: whole
    values = compile_fields(inner, fields)
    return lambda data, frame: BlockSettings(values(data, frame), jsonata, prefix, state)


def is_computed(block: Compiler, fields: Iterable[str]) -> bool:
    """Return whether one of the fields is computed when the state runs."""
    if block.jsonata:
        return any("{%" in compact(block.state.get(field)) for field in fields)
    return not block.state.keys().isdisjoint(f"{field}.$" for field in fields)


class Destination:
    """The place of a block's value in the output of a state (step 13 of Specification 3.1).

    A computed path is evaluated after the memory is read, as all fields are, so a wrong path fails
    the state before the call.
    """

    def __init__(self, block: Compiler, field: str, prefix: str) -> None:
        self.field = field
        self.name = prefix + field
        self.fields = compile_settings_of(block, (field,), prefix)
        self.computed = is_computed(block, (field,))
        written = None if self.computed else self.fields(None, None).path(field)
        self.segments = None if written is None else written.segments

    def settle(self, data: Json, frame: StateFrame) -> None:
        """Compute it, for when the state has succeeded; raises StateError for what is no path."""
        if self.computed:
            path = self.fields(data, frame).path(self.field)
            steps = None if path is None else path.segments
            frame.destinations = {**(frame.destinations or {}), self.name: steps}

    def evaluate_before(self, inner: Perform) -> Perform:
        """Return *inner* preceded by the evaluation of the path; *inner* for a constant path."""
        if not self.computed:
            return inner

        def perform(attempt: Attempt) -> Awaitable[Json]:
            self.settle(attempt.data, attempt.frame)
            return inner(attempt)

        return perform

    def insert(self, output: Json, value: Json, frame: Any) -> Json:
        """Return an output with a value in its place, if it has one."""
        steps = frame.destinations[self.name] if self.computed else self.segments
        return output if steps is None else insert_at(output, steps, value)


def compile_call(
    compiler: Compiler, target: Target, limits: Limits | None, wraps: Iterator[Wrap]
) -> Work:
    """Compile the work of a Task with blocks; *wraps* begin with the innermost."""
    perform: Perform = _call
    for wrap in wraps:
        perform = wrap(compiler, perform)
    effective, whole = compiler.input(), perform

    def work(raw: Json, frame: StateFrame) -> Awaitable[Json]:
        options = None if limits is None else limits(raw, frame)
        return whole(Attempt(frame, raw, effective(raw, frame), target, options))

    return work


def make_parameters(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the parameters from the effective input, including its memory."""
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
    """Return whether a path has a value, or a value that is no object blocks it."""
    for step in path.segments:
        if type(value) is not dict:
            return True
        if step not in value:
            return False
        value = value[step]
    return True


def _call(attempt: Attempt) -> Awaitable[Json]:
    frame, options = attempt.frame, attempt.options
    if options is not None and options.start is not None:
        left = options.remaining(frame.now)
        if left is not None and left <= 0:
            raise StateError("States.Timeout", options.cause("answer", options.timeout))
    return frame.effects.call(frame, Invocation(attempt.target, attempt.payload, options))
