"""Runs of pydantic-ai: usage, errors, and recorded answers of paused turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from asl.agents.http import AnswerRefusal, reason
from asl.core.errors import StateError, causes
from asl.core.values import Json, has_more_values
from asl.engine.agent import Call
from asl.engine.usage import request_tokens, requests_usage
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
from hashlib import sha256
from typing import TYPE_CHECKING

from asl.engine.turns import PausableTurn

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = [
    "MAX_ARGUMENTS",
    "chunk_handler",
    "complete",
    "forbidden_use",
    "misbehaviour",
    "named_failure",
    "recorded_model",
    "refuse_uses",
    "refused_by",
    "responses",
    "text_result",
    "tool_uses",
    "unreadable_use",
    "usage_of",
    "use_arguments",
    "with_usage",
]

CUT = "length"
"""Why an answer ends that is as long as the document, or the model, lets it be."""
KEPT = {
    "content_filter": "the provider has filtered the answer",
    "error": "the provider says that its answer ends by an error",
}
"""Why an answer is none, by the reasons for its end."""
UNCONNECTED = ("ConnectError", "ConnectTimeout")
"""Exceptions of the HTTP library before a request is sent."""
MAX_ARGUMENTS = 10_000
"""Values that the arguments of one tool call of a model may have."""
SHOWN = 2000
"""Characters of what a provider says that the cause of an error shows."""
HISTORY = "history"
"""Marks, in the metadata of a response, that it was made in an earlier call."""


def refuse_uses(call: Call, uses: list[Any], tools: set[str]) -> None:
    """Record the tool calls of a model that were not offered or are malformed."""
    for part in uses:
        arguments = use_arguments(part)
        if arguments is None:
            call.tools.refuse(part.tool_name, None, "Agent.ToolError", unreadable_use(part))
        elif part.tool_name not in tools:
            cause = _not_for(call, part.tool_name)
            call.tools.refuse(part.tool_name, arguments, "States.Permissions", cause)


def tool_uses(messages: list[ModelMessage], answers: tuple[str, ...]) -> list[Any]:
    """Return all requests for tools, apart from those that are *answers*."""
    parts = [part for response in responses(messages) for part in response.tool_calls]
    return [part for part in parts if part.tool_name not in answers]


def forbidden_use(call: Call, messages: list[ModelMessage], known: set[str]) -> RaisedError | None:
    """Return the error for a last tool call that is not allowed; None if it is."""
    *_, last = (None, *responses(messages))
    calls = [] if last is None else [part.tool_name for part in last.tool_calls]
    unknown = next((each for each in calls if each not in known), None)
    return None if unknown is None else RaisedError("States.Permissions", _not_for(call, unknown))


def _not_for(call: Call, tool: str) -> str:
    return f"the model may not use the tool {call.hide(tool)[:200]!r}"


def use_arguments(part: Any) -> Json:
    """Return the arguments of a request, None if they are no object or have too many values.

    They are read as by the library that hands them to the tool: what it lets pass is judged there.
    """
    try:
        arguments = part.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return None
    return None if has_more_values(arguments, MAX_ARGUMENTS) else arguments


def unreadable_use(part: Any) -> str:
    return f"tool {part.tool_name!r}: the arguments are no JSON object"


def responses(messages: list[ModelMessage]) -> Iterator[Any]:
    from pydantic_ai.messages import ModelResponse

    for each in messages:
        if isinstance(each, ModelResponse) and HISTORY not in (each.metadata or ()):
            yield each


def usage_of(name: str, messages: list[ModelMessage], answered: bool = True) -> dict[str, Json]:
    """Return the usage of a call in the form of a raw result.

    Args:
        name: The model.
        messages: The messages of the call.
        answered: Whether the last request was answered, or has used nothing.
    """
    usages = (each.usage for each in responses(messages))
    requests = [request_tokens(each.input_tokens, each.output_tokens) for each in usages]
    return {**requests_usage(requests, complete=answered), "model": name}


def with_usage(
    failure: StateError, name: str, messages: list[ModelMessage], error: Exception | None = None
) -> StateError:
    """Return a failure that says what was used before it; *error* is what the library raised."""
    failure.usage = usage_of(name, messages, error is None or not _is_unanswered(error, messages))
    return failure


def _is_unanswered(error: Exception, messages: list[ModelMessage]) -> bool:
    """Return whether a request was sent and its answer could not be read.

    An answer that is a status has used nothing, nor has a connection that was never made.
    """
    from pydantic_ai import exceptions
    from pydantic_ai.messages import ModelResponse

    if messages and isinstance(messages[-1], ModelResponse):
        return False
    if isinstance(error, (exceptions.ModelHTTPError, exceptions.UserError)):
        return False
    if isinstance(error, exceptions.UsageLimitExceeded):
        return False
    if refused := refused_by(error):
        return refused.lost
    return not any(type(each).__name__ in UNCONNECTED for each in causes(error))


def refused_by(error: Exception) -> AnswerRefusal | None:
    """Return why the answer was not read, however the library of a provider wraps that."""
    return next((each for each in causes(error) if isinstance(each, AnswerRefusal)), None)


def complete(output: Any, messages: list[ModelMessage], *, streamed: bool) -> Any:
    """Return the output of a completed run.

    Raises:
        RaisedError: The provider filtered the answer, reported an error or ended the stream early.
    """
    *_, last = responses(messages)
    # The library itself says `stop` where a stream just ends; only this is the provider's word.
    ended = "finish_reason" in (last.provider_details or {})
    if streamed and last.provider_url is not None and not ended:
        raise RaisedError("Agent.ModelError", "the answer breaks off")
    if last.finish_reason in KEPT:
        raise RaisedError("Agent.ModelError", KEPT[last.finish_reason])
    return output


def text_result(text: str, messages: list[ModelMessage]) -> dict[str, Json]:
    """Return a text as the result, which says so where the text was cut."""
    *_, last = responses(messages)
    return {"response": text} | ({"finish_reason": CUT} if last.finish_reason == CUT else {})


def named_failure(error: Exception, call: Call) -> RaisedError:
    """Return the error of the specification for what pydantic-ai raised."""
    from pydantic_ai import exceptions

    if refused := refused_by(error):
        return refused
    names = {
        exceptions.ModelRateLimitError: "States.RateLimitExceeded",
        exceptions.ModelAuthenticationError: "States.Permissions",
        exceptions.ModelContextWindowExceededError: "Agent.ContextOverflow",
        exceptions.ModelTimeoutError: "States.Timeout",
        exceptions.ModelRequestTimeout: "States.Timeout",
        exceptions.ModelConnectionError: "Agent.NetworkError",
        exceptions.ModelAPIError: "Agent.ModelError",
        exceptions.UsageLimitExceeded: "Agent.ModelError",
        exceptions.UserError: "Agent.InvalidInput",
    }
    name = next((name for kind, name in names.items() if isinstance(error, kind)), None)
    text, after = str(error), getattr(error, "retry_after", None)
    if name is None:
        name, text = "Agent.ModelError", f"{type(error).__name__}: {error}"
    elif name == "Agent.NetworkError":
        text = f"{text.rstrip('.')}: {reason(error)}"
    elif after is not None:
        text = f"{text}, retry after {after:g} s"
    text = call.hide(text)  # all of it, so that a secret is seen as a whole
    return RaisedError(name, text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def misbehaviour(
    error: Exception, correction: str, messages: list[ModelMessage], answers: tuple[str, ...]
) -> RaisedError:
    """Return the error of a model that did not correct a reported fault."""
    *_, last = (None, *responses(messages))
    calls = [] if last is None else [part.tool_name for part in last.tool_calls]
    why = correction or str(error.__cause__ or error)
    if not set(calls).isdisjoint(answers):
        return RaisedError("Agent.InvalidOutput", why)
    if calls:
        known = why.startswith("tool ")
        return RaisedError("Agent.ToolError", why if known else f"tool {calls[0]!r}: {why}")
    if last is None or last is not messages[-1]:  # the one after that could not be read
        return RaisedError("Agent.ModelError", str(error))
    if answers:
        return RaisedError("Agent.InvalidOutput", f"no answer by the schema: {error}")
    return RaisedError("Agent.ModelError", f"the answer has no text: {error}")


def chunk_handler(call: Call) -> Any:
    """Return a handler of a run's events that reports the answer of the model piece by piece."""

    async def report(context: Any, events: Any) -> None:
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        async for event in events:
            text = None
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                text = event.part.content
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                text = event.delta.content_delta
            if text:
                call.report_chunk(text)

    return report


def recorded_model(model: Model, call: Call, turn: PausableTurn) -> Model:
    """Return a model that repeats the recorded answers of a paused turn.

    Answers are not streamed: each text is one chunk.

    Args:
        model: The model to ask.
        call: A call within the turn.
        turn: The turn, which has recorded the earlier answers.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_ai.models.wrapper import WrapperModel

    what = f"model.{sha256(call.idempotency_key.encode()).hexdigest()[:24]}"

    class RecordedModel(WrapperModel):
        async def request(self, *args: Any, **options: Any) -> Any:
            async def perform() -> Json:
                response = await self.wrapped.request(*args, **options)
                return ModelMessagesTypeAdapter.dump_python([response], mode="json")

            written = await turn.perform_once(what, perform)
            (response,) = ModelMessagesTypeAdapter.validate_python(written)
            for part in response.parts:
                if part.part_kind == "text":
                    call.report_chunk(part.content)
            return response

    return RecordedModel(model)
