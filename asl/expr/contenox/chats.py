"""Chats: a history of messages, what a model answers, the calls of tools and their results."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, type_name
from asl.expr.contenox.answers import Handled, handled
from asl.expr.contenox.texts import INPUT_TYPE, as_json, handed, is_chat

__all__ = ["TOKENS", "answered", "calls", "chat_of", "converted", "ran"]

Message = dict[str, Any]

TOKENS: Final[Mapping[str, Mapping[str, str]]] = {
    "seed": {"call": "tool-call", "stop": "stop", "length": "length", "ran": "ok", "none": "ok"},
    "union": {
        "call": "tool_call",
        "stop": "executed",
        "length": "executed",
        "ran": "tools_executed",
        "none": "no_calls_found",
    },
}
"""What chat_completion and execute_tool_calls evaluate to, by profile."""


def chat_of(given: Json, system: str | None = None) -> Message:
    """Return a chat of a text or a chat, with a system message in front where one is given."""
    if isinstance(given, str):
        found: Message = {"messages": [{"role": "user", "content": given}]}
    elif is_chat(given):
        found = cast(Message, given)
    else:
        shown = type_name(given)
        raise StateError(INPUT_TYPE, f"a text or a chat is needed, not {shown}")
    if not system:
        return found
    first = {"role": "system", "content": system}
    if first in [{key: each.get(key) for key in first} for each in found["messages"]]:
        return found
    return {**found, "messages": [first, *found["messages"]]}


def answered(chat: Json, answer: Json, profile: str = "union") -> Handled:
    """chat_completion: the chat with the answer of the model behind it.

    The answer is a text, or an object with `content`, `tool_calls` (each with `id`, `name` and
    `arguments`) and `finish_reason`.
    """
    before = chat_of(chat)
    said = answer if isinstance(answer, dict) else {"content": handed(answer)}
    content = said.get("content", "")
    message: Message = {"role": "assistant", "content": content if content is not None else ""}
    requested = said.get("tool_calls")
    if requested:
        message["tool_calls"] = [_call(each) for each in _listed(requested)]
    kind = "call" if requested else "length" if said.get("finish_reason") == "length" else "stop"
    after = {**before, "messages": [*before["messages"], message]}
    return handled(after, TOKENS[profile][kind])


def _call(requested: Json) -> Message:
    if not isinstance(requested, dict) or not isinstance(requested.get("name"), str):
        raise StateError("Contenox.ToolCall", "a tool call has an id, a name and arguments")
    given = requested.get("arguments", {})
    written = given if isinstance(given, str) else as_json(given)
    return {"id": str(requested.get("id", "")), "name": requested["name"], "arguments": written}


def calls(chat: Json, tools: list[str] | None = None) -> list[Json]:
    """Return the calls that the last message asks for and *tools* allow: id, name, arguments."""
    return [each for each in _requested(chat) if _allowed(each["name"], tools)]


def _requested(chat: Json) -> list[Message]:
    if not is_chat(chat):
        raise StateError(INPUT_TYPE, f"a chat is needed, not {type_name(chat)}")
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    found = messages[-1].get("tool_calls") if messages else None
    return [_parsed(_call(each)) for each in _listed(found or [])]


def _listed(found: Json) -> list[Json]:
    if not isinstance(found, list):
        raise StateError("Contenox.ToolCall", f"tool calls are a list, not {type_name(found)}")
    return found


def _parsed(call: Message) -> Message:
    try:
        given = read_data(call["arguments"] or "{}")
    except ValueError:
        cause = f"the arguments of {call['name']} are no JSON"
        raise StateError("Contenox.ToolCall", cause) from None
    return {**call, "arguments": given}


def _allowed(name: str, tools: Iterable[str] | None) -> bool:
    if tools is None:
        return True
    names = (name, name.partition(".")[0])
    listed = list(tools)
    if any(f"!{each}" in listed for each in names):
        return False
    return "*" in listed or any(each in listed for each in names)


def ran(
    chat: Json, results: Json, tools: list[str] | None = None, profile: str = "union"
) -> Handled:
    """execute_tool_calls: the chat with a message for each call.

    *results* has one for each call that was allowed, in order; `{"error": "..."}` is the message of
    a tool that failed.
    """
    requested = _requested(chat)
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    if not messages:
        return handled(chat, "noop")
    allowed = [each for each in requested if _allowed(each["name"], tools)]
    if not isinstance(results, list) or len(results) != len(allowed):
        cause = f"there must be a list of {len(allowed)} results, one for each call"
        raise StateError("Contenox.ToolResult", cause)
    coming = iter(results)
    told = [
        _told(each, next(coming) if each in allowed else _refused(each["name"]))
        for each in requested
    ]
    after = {**cast(Message, chat), "messages": [*messages, *told]}
    return handled(after, TOKENS[profile]["ran" if allowed else "none"])


def _refused(name: str) -> Json:
    return {"error": f"the tool {name} is not available"}


def _told(call: Message, result: Json) -> Message:
    if isinstance(result, dict) and result.keys() == {"error"}:
        result = result["error"]
    content = result if isinstance(result, str) else as_json(result)
    return {"role": "tool", "content": content, "tool_call_id": call["id"]}


def converted(chat: Json) -> Handled:
    """convert_to_openai_chat_response: the last message as one choice of a completion."""
    found = chat_of(chat)["messages"]
    last = found[-1] if found else {"role": "assistant", "content": ""}
    reason = "tool_calls" if last.get("tool_calls") else "stop"
    choice = {"index": 0, "message": last, "finish_reason": reason}
    return handled({"object": "chat.completion", "choices": [choice]}, "converted")
