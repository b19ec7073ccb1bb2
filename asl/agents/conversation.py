"""Conversations: the messages of a model as JSON, in the form of OpenAI's Chat Completions.

    {"role": "system" | "user" | "assistant", "content": TEXT}

An assistant's message may have `tool_calls`; a message of the role `tool` answers each of them by
its `tool_call_id`.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from asl.core.values import Json, compact
from asl.states.errors import RaisedError

__all__ = ["Conversation", "Message", "ToolUse", "message_json", "read_conversation", "read_prompt"]

PROMPTS: Final = ("prompt", "task", "message", "input")
"""The parameters that hold the prompt; the first that is there counts (Specification 7)."""
ROLES: Final = ("system", "user", "assistant", "tool")


class ToolUse(NamedTuple):
    """A tool that the assistant has called."""

    id: str
    name: str
    arguments: dict[str, Json]


class Message(NamedTuple):
    """One message of a conversation.

    Args:
        role: One of `ROLES`.
        content: Its text.
        uses: The tools that an assistant's message calls.
        answers: The tool call that a tool's message answers; None for any other message.
    """

    role: str
    content: str
    uses: tuple[ToolUse, ...] = ()
    answers: ToolUse | None = None


class Conversation(NamedTuple):
    """What an agent is asked.

    Args:
        history: The messages before the prompt.
        prompt: The message of the user to answer; None where the history ends with the results of
            tools.
        continued: Whether the parameters have `messages`, so that the result has them too.
        new: The messages that the result adds to those of the parameters before the answer.
    """

    history: tuple[Message, ...]
    prompt: str | None
    continued: bool
    new: tuple[Message, ...] = ()


def read_conversation(payload: Json) -> Conversation:
    """Return the conversation that the parameters of a call hold.

    `messages` is the history, and the prompt continues it. Without a prompt the last message is the
    one to answer. Without `messages` there is a prompt alone.

    Raises:
        RaisedError: `Agent.InvalidInput` for messages that are not a conversation.
    """
    given = payload.get("messages") if type(payload) is dict else None
    if type(given) is not list:
        return Conversation((), read_prompt(payload), False)
    history = tuple(_messages(given))
    assert type(payload) is dict
    if any(name in payload for name in PROMPTS):
        prompt = read_prompt(payload)
        return Conversation(history, prompt, True, (Message("user", prompt),))
    if not history or history[-1].role not in ("user", "tool"):
        found = f"with the role {history[-1].role!r}" if history else "before the first message"
        raise _invalid(
            "messages", f"they end {found}: end them with a message of the user, or give a 'prompt'"
        )
    if history[-1].role == "tool":
        return Conversation(history, None, True)
    return Conversation(history[:-1], history[-1].content, True)


def read_prompt(payload: Json) -> str:
    """Return the prompt among the parameters, else all of them as JSON."""
    if type(payload) is dict:
        payload = next((payload[name] for name in PROMPTS if name in payload), payload)
    return payload if type(payload) is str else compact(payload)


def message_json(message: Message) -> Json:
    """Return a message as JSON."""
    written: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.answers is not None:
        written["tool_call_id"] = message.answers.id
        written["name"] = message.answers.name
    if message.uses:
        written["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": compact(use.arguments)},
            }
            for use in message.uses
        ]
    return written


def _messages(written: Sequence[Json]) -> Iterator[Message]:
    """Yield messages from their JSON; raises RaisedError for one that no conversation can have."""
    open_uses: dict[str, ToolUse] = {}
    for index, each in enumerate(written):
        message = _message(each, f"messages[{index}]", open_uses)
        if message.answers is not None:
            del open_uses[message.answers.id]
        elif open_uses:
            unanswered = ", ".join(map(repr, open_uses))
            raise _invalid(f"messages[{index}]", f"no tool has answered {unanswered} before it")
        open_uses |= {use.id: use for use in message.uses}
        yield message
    if open_uses:
        raise _invalid("messages", f"no tool has answered {', '.join(map(repr, open_uses))}")


def _message(written: Json, place: str, open_uses: dict[str, ToolUse]) -> Message:
    if type(written) is not dict:
        raise _invalid(place, "a message is an object with 'role' and 'content'")
    role = written.get("role")
    if role not in ROLES:
        shown = "no role" if role is None else compact(role)
        raise _invalid(place, f"the role must be one of {', '.join(ROLES)}, got {shown}")
    content = _content(written.get("content"), place, optional="tool_calls" in written)
    if role == "tool":
        use_id = written.get("tool_call_id")
        if type(use_id) is not str or use_id not in open_uses:
            raise _invalid(place, f"'tool_call_id' {compact(use_id)} answers no call of a tool")
        return Message(role, content, answers=open_uses[use_id])
    calls = written.get("tool_calls") or []
    if role != "assistant" or type(calls) is not list:
        calls = []
    uses = [_use(call, f"{place}.tool_calls[{at}]") for at, call in enumerate(calls)]
    return Message(role, content, tuple(uses))


def _content(written: Json, place: str, *, optional: bool) -> str:
    """Return the text of a message, which may have several parts."""
    if type(written) is str:
        return written
    if written is None and optional:
        return ""
    parts = written if type(written) is list else [None]
    found = [part.get("text") for part in parts if type(part) is dict]
    texts = [text for text in found if type(text) is str]
    if len(texts) != len(parts):
        raise _invalid(place, "'content' must be a text")
    return "\n".join(texts)


def _use(written: Json, place: str) -> ToolUse:
    call = written if type(written) is dict else {}
    use_id, function = call.get("id"), call.get("function")
    if type(function) is dict and type(use_id) is str:
        name, arguments = function.get("name"), function.get("arguments", "{}")
        try:
            read = json.loads(arguments) if type(arguments) is str else arguments
        except (ValueError, RecursionError):
            read = None
        if type(name) is str and type(read) is dict:
            return ToolUse(use_id, name, read)
    raise _invalid(
        place, "a call of a tool has an 'id' and a 'function' with 'name' and 'arguments'"
    )


def _invalid(place: str, text: str) -> RaisedError:
    return RaisedError("Agent.InvalidInput", f"{place}: {text}")
