"""Streaming: emission of an agent's answer in chunks (Specification 8.12).

Effects emit the chunks as they arrive. With output guardrails nothing is emitted before the whole
answer has passed them; this module emits it then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.errors import StateError
from asl.core.values import Json
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings
from asl.states.blocks.chunks import LONGEST, MODES, Buffer, Chunker
from asl.states.blocks.progress import check_streaming
from asl.states.settings import read_duration

__all__ = [
    "CHUNK",
    "STREAMING",
    "StreamOutput",
    "StreamPlan",
    "callback_warning",
    "request_stream",
    "response_text",
    "show_guarded",
]

CHUNK: Final = "StreamChunk"
WARNING: Final = "StreamWarning"
FIELDS: Final = ("Enabled", "Mode", "ChunkSize")
BUFFER: Final = ("Size", "FlushInterval", "FlushOnNewline")
CALLBACKS: Final = ("OnChunk", "OnComplete", "OnError")
LEAST: Final[Mapping[str, int]] = {"chunk": 100}
"""Default minimum length of a chunk by mode; 1 for other modes."""


class StreamPlan(NamedTuple):
    """The streaming of an answer; times in seconds, sizes in characters."""

    mode: str
    minimum: int
    buffer: int | None
    """Maximum size of the buffer; None without a buffer."""
    interval: float | None
    on_newline: bool
    callbacks: Mapping[str, str]
    """The agents of callbacks, by their fields."""
    guarded: bool
    """Whether guardrails check the whole answer before its emission."""


class StreamOutput:
    """The emitted chunks of an answer: cuts, buffers and counts them."""

    def __init__(self, plan: StreamPlan) -> None:
        self.chunker = Chunker(plan.mode, plan.minimum)
        self.buffer = None if plan.buffer is None else Buffer(plan.buffer, plan.on_newline)
        self.count = 0

    def feed(self, text: str) -> Iterator[dict[str, Json]]:
        """Add a piece of the answer; yield the details of due events."""
        for chunk in self.chunker.feed(text):
            yield from self._sent([chunk] if self.buffer is None else self.buffer.put(chunk))

    def flush(self) -> Iterator[dict[str, Json]]:
        """Yield the buffered text."""
        if self.buffer is not None:
            yield from self._sent([self.buffer.flush()])

    def end(self) -> Iterator[dict[str, Json]]:
        """Yield the rest at the end."""
        rest = self.chunker.rest()
        if self.buffer is not None:
            yield from self._sent(self.buffer.put(rest))
            yield from self.flush()
        else:
            yield from self._sent([rest])

    def _sent(self, chunks: Iterable[str]) -> Iterator[dict[str, Json]]:
        for chunk in chunks:
            if chunk:
                self.count += 1
                yield {"chunk": chunk, "index": self.count - 1}


def response_text(result: Json) -> str:
    """Return the text of a result, for an agent that does not stream."""
    if type(result) is dict:
        result = result.get("response")
    return result if type(result) is str else ""


def request_stream(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the request to stream the answer."""
    plan_of = _planned(compiler)

    async def perform(attempt: Attempt) -> Json:
        plan = plan_of(attempt)
        if plan is not None:
            attempt.set_call_attribute("stream", plan)
        return await inner(attempt)

    return perform


def _planned(compiler: Compiler) -> Callable[[Attempt], StreamPlan | None]:
    own = compile_settings(compiler, "Streaming", FIELDS)
    buffer = compile_settings(compiler, "Streaming.Buffer", BUFFER)
    callbacks = compile_settings(compiler, "Streaming.Callbacks", CALLBACKS)
    buffered = "Buffer" in compiler.state["Streaming"]
    guarded = "Output" in compiler.state.get("Guardrails", {})

    def plan(attempt: Attempt) -> StreamPlan | None:
        data, frame = attempt.data, attempt.frame
        found = own(data, frame)
        if not found.flag("Enabled", absent=True):
            return None
        held, told = buffer(data, frame), callbacks(data, frame)
        mode = found.choice("Mode", tuple(MODES)) or "token"
        interval = held.values.get("FlushInterval")
        return StreamPlan(
            mode,
            found.count("ChunkSize", LONGEST) or LEAST.get(mode, 1),
            held.count("Size", LONGEST) or LONGEST if buffered else None,
            None if interval is None else read_duration("Streaming.Buffer.FlushInterval", interval),
            held.flag("FlushOnNewline"),
            {kind: name for kind in CALLBACKS if (name := told.name(kind)) is not None},
            guarded,
        )

    return plan


# --------------------------------------------------------------------------------------------
# Behind guardrails


def show_guarded(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the emission of an answer after the guardrails around *inner*."""
    if "Output" not in compiler.state.get("Guardrails", {}):
        return inner

    async def perform(attempt: Attempt) -> Json:
        try:
            result = await inner(attempt)
        except StateError as error:
            plan = attempt.call_attribute("stream")
            if plan is not None and error.name == "Agent.GuardrailViolation":
                details = {"error": error.name, "cause": error.cause}
                await _callback(attempt, plan, "OnError", details)
            raise
        plan = attempt.call_attribute("stream")
        if plan is not None and attempt.frame.partial_answer is not None:
            text = await _passed(attempt, result)
            attempt.frame.partial_answer = None
            await _show(attempt, plan, text, result)
        return result

    return perform


async def _passed(attempt: Attempt, result: Json) -> str:
    """Return the text to emit for a streamed answer.

    It is the text in the result after the guardrails. A streamed text that is not in the result is
    judged separately, and not emitted if it is rejected.
    """
    streamed, judge, before = attempt.frame.partial_answer, attempt.judge, attempt.answer
    assert judge is not None
    if not streamed:
        return response_text(result)
    found = _counterpart(before, result, streamed)
    if found is not None:
        return found
    try:
        passed = await judge(attempt, streamed)
    except StateError as error:
        attempt.frame.note(WARNING, {"reason": f"nothing is shown: {error.cause}"})
        return ""
    return passed if type(passed) is str else ""


def _counterpart(before: Json, after: Json, streamed: str) -> str | None:
    """Return the text in *after* at the place of *streamed* in *before*; None if there is none."""
    if type(before) is str:
        return after if before == streamed and type(after) is str else None
    if type(before) is dict and type(after) is dict:
        pairs = [(before[key], after[key]) for key in before if key in after]
    elif type(before) is list and type(after) is list and len(before) == len(after):
        pairs = list(zip(before, after, strict=True))
    else:
        return None
    return next(
        (found for each in pairs if (found := _counterpart(*each, streamed)) is not None), None
    )


async def _show(attempt: Attempt, plan: StreamPlan, text: str, result: Json) -> None:
    shown = StreamOutput(plan)
    for details in [*shown.feed(text), *shown.end()]:
        attempt.frame.note(CHUNK, details)
        await _callback(attempt, plan, "OnChunk", details)
    await _callback(attempt, plan, "OnComplete", {"result": result, "chunks": shown.count})


async def _callback(
    attempt: Attempt, plan: StreamPlan, kind: str, details: dict[str, Json]
) -> None:
    agent = plan.callbacks.get(kind)
    if agent is not None:
        payload = {"state": attempt.target.state, **details}
        try:
            await attempt.call_helper(agent, payload)
        except StateError as error:
            attempt.frame.note(*callback_warning(kind, error))


def callback_warning(kind: str, error: StateError) -> tuple[str, dict[str, Json]]:
    """Return the warning event of a failed callback."""
    return WARNING, {"callback": kind, "error": error.name, "cause": error.cause}


STREAMING = Block(
    "Streaming",
    check_streaming,
    lacks=("Callbacks.$", "Buffer.$", "Milestones.$"),
)
