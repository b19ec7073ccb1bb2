"""Messages of a conversation as pydantic-ai has them, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from asl.agents.conversation import Conversation, Message, ToolUse
from asl.agents.framework import prompt_parts
from asl.agents.model_runs import HISTORY, use_arguments
from asl.core.values import Json, compact

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["model_history", "new_messages", "user_prompt"]

_NOTHING: Final = ToolUse("", "", {})


def user_prompt(conversation: Conversation, context: Json) -> str | list[str] | None:
    """Return the prompt for pydantic-ai, after the parts of the document's context."""
    if context is None:
        return conversation.prompt
    return prompt_parts(conversation, context) or None


def model_history(conversation: Conversation, system: str = "") -> list[ModelMessage]:
    """Return the history of a conversation for pydantic-ai.

    Args:
        conversation: The conversation.
        system: Text of a system message to begin with; empty for none.
    """
    from pydantic_ai import messages as ai

    history = conversation.history
    if system and history:
        history = (Message("system", system), *history)
    found: list[ModelMessage] = []
    parts: list[ai.ModelRequestPart] = []
    for message in history:
        if message.role != "assistant":
            use = message.answers or _NOTHING
            if message.role == "system":
                parts.append(ai.SystemPromptPart(message.content))
            elif message.role == "user":
                parts.append(ai.UserPromptPart(message.content))
            else:
                parts.append(ai.ToolReturnPart(use.name, message.content, use.id))
            continue
        if parts:
            found.append(ai.ModelRequest(parts))
            parts = []
        answer: list[ai.ModelResponsePart] = []
        if message.content or not message.uses:
            answer.append(ai.TextPart(message.content))
        answer += (ai.ToolCallPart(use.name, use.arguments, use.id) for use in message.uses)
        found.append(ai.ModelResponse(answer, metadata={HISTORY: True}))
    if parts:
        found.append(ai.ModelRequest(parts))
    return found


def new_messages(
    conversation: Conversation,
    run: Iterable[ModelMessage],
    answer: str,
    hidden: Collection[str] = (),
) -> Iterator[Message]:
    """Yield the messages that a run adds to its conversation.

    An answer that the model had to correct is left out.

    Args:
        conversation: The conversation.
        run: The new messages of the run.
        answer: The final answer.
        hidden: The tools that stand for an answer.
    """
    yield from conversation.new
    for message in run:
        for part in message.parts:
            if part.part_kind == "tool-return" or part.part_kind == "retry-prompt":
                name = part.tool_name
                if name is not None and name not in hidden:
                    use = ToolUse(part.tool_call_id, name, {})
                    yield Message("tool", _returned(part), answers=use)
        if message.kind == "response":
            calls = [call for call in message.tool_calls if call.tool_name not in hidden]
            uses = (
                ToolUse(each.tool_call_id, each.tool_name, use_arguments(each) or {})
                for each in calls
            )
            if calls:
                yield Message("assistant", message.text or "", tuple(uses))
    yield Message("assistant", answer)


def _returned(part: Any) -> str:
    """Return what a tool has answered to a model, as text."""
    if part.part_kind == "retry-prompt":
        text: str = part.model_response()
        return text
    return part.content if type(part.content) is str else compact(part.content)
