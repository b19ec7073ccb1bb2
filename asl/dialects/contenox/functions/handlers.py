"""Results of task handlers: the output for an answer, and the text that selects a branch.

A result is `{"output", "eval"}`. A chat is an object with a list of `messages`.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, type_name
from asl.dialects.contenox.functions.rendering import render_result
from asl.dialects.contenox.functions.texts import (
    INPUT_TYPE,
    NUMBER,
    find_digits,
    find_number,
    input_text,
    is_chat,
    to_json,
)
from asl.expr.agent_answers import ANSWER

__all__ = [
    "TOKENS",
    "HandlerResult",
    "chat_completion",
    "condition_key",
    "execute_tool_calls",
    "handler_result",
    "parse_key_value",
    "parse_number",
    "parse_range",
    "parse_score",
    "parse_transition",
    "prompt_to_string",
    "route",
    "to_chat",
    "to_openai_response",
    "tool_calls",
    "tool_result",
]

HandlerResult = dict[str, Json]

_RANGE: Final = re.compile(rf"({NUMBER})(?:-({NUMBER}))?")
MAX_RANGE: Final = 1_000
"""Characters of a range."""


def handler_result(output: Json, evaluated: str) -> HandlerResult:
    """Return a result: the output and the text that selects a branch."""
    return {"output": output, "eval": evaluated}


def prompt_to_string(answer: Json) -> HandlerResult:
    """Return the trimmed answer as output and as selecting text."""
    found = input_text(answer).strip()
    return handler_result(found, found)


def condition_key(answer: Json, conditions: Mapping[str, Json]) -> HandlerResult:
    """Return the value of the condition that the answer names.

    Args:
        answer: The answer of the model.
        conditions: The values by condition.

    Raises:
        StateError: Contenox.Condition for any other answer.
    """
    found = input_text(answer).strip()
    if found not in conditions:
        known = ", ".join(conditions) or "the conditions, as there are none"
        raise StateError("Contenox.Condition", f"{found[:200]!r} is none of {known}")
    return handler_result(conditions[found], found)


def parse_number(answer: Json) -> HandlerResult:
    """Return the number in the answer, which must be an integer.

    Raises:
        StateError: Contenox.Number for an answer without one.
    """
    written = input_text(answer)
    digits = find_digits(written)
    if digits is None:
        raise _number_error(written, "a whole number")
    whole = Decimal(digits)
    if whole != whole.to_integral_value() or abs(whole) >= 2**63:
        raise _number_error(digits, "a whole number")
    return handler_result(int(whole), str(int(whole)))


def parse_score(answer: Json) -> HandlerResult:
    """Return the number in the answer; two of its decimals select the branch.

    Raises:
        StateError: Contenox.Number for an answer without one.
    """
    written = input_text(answer)
    found = find_number(written)
    if found is None:
        raise _number_error(written, "a number")
    return handler_result(found, f"{found:.2f}")


def parse_range(answer: Json) -> HandlerResult:
    """Return a range `a-b` without blanks and quotes; one number is a range of itself.

    Raises:
        StateError: Contenox.Number for any other answer.
    """
    written = re.sub(r"[\s\"']", "", input_text(answer))
    match = _RANGE.fullmatch(written)
    if match is None or len(written) > MAX_RANGE:
        raise _number_error(written, "one number or two")
    found = f"{match[1]}-{match[2] or match[1]}"
    return handler_result(found, found)


def _number_error(answer: str, wanted: str) -> StateError:
    return StateError("Contenox.Number", f"{answer[:200]!r} does not contain {wanted}")


def route(given: Json, answer: Json, labels: list[str]) -> HandlerResult:
    """Return the input with the label that the answer is, or that it contains first.

    Args:
        given: The input of the task.
        answer: The answer of the model.
        labels: The labels of the branches.

    Raises:
        StateError: Contenox.Route without labels.
    """
    if not labels:
        raise StateError(
            "Contenox.Route", "there is no label to choose: no branch has the operator equals"
        )
    said = input_text(answer).strip()
    plain = said.casefold()
    exact = (each for each in labels if each.casefold() == plain)
    within = (each for each in labels if each and each.casefold() in plain)
    return handler_result(given, next(exact, None) or next(within, said))


def parse_transition(given: Json) -> HandlerResult:
    """Return the input with the word after `/`; `pass` without one.

    Raises:
        StateError: Contenox.Command for a slash without a word.
    """
    written = input_text(given).strip()
    if not written.startswith("/"):
        return handler_result(given, "pass" if written else "")
    word = written[1:].split(None, 1)
    if not word or written[1:2].isspace():
        raise StateError("Contenox.Command", "the slash is not followed by a word")
    return handler_result(given, word[0])


def parse_key_value(given: Json) -> HandlerResult:
    """Return an object of the pairs in a text, separated by `;`, else by lines, else by `,`.

    Raises:
        StateError: Contenox.KeyValue for a part that is no pair.
    """
    written = input_text(given).strip()
    mark = next((each for each in (";", "\n") if each in written), ",")
    found: dict[str, Json] = {}
    for part in filter(None, (each.strip() for each in written.split(mark))):
        sign = "=" if "=" in part else ":"
        key, middle, value = part.partition(sign)
        if not middle:
            raise StateError("Contenox.KeyValue", f"{part[:200]!r} is no key-value pair")
        found[key.strip().strip("\"'")] = _parse_scalar(value.strip())
    return handler_result(found, "parsed")


def _parse_scalar(written: str) -> Json:
    if written in ("true", "false"):
        return written == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", written):
        return int(written)
    if re.fullmatch(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", written):
        return float(written)
    return written.strip("\"'")


def tool_result(result: Json, evaluated: str, template: str | None = None) -> HandlerResult:
    """Return the result of a tool; the text of an output template selects the branch, too."""
    if template is None:
        return handler_result(result, evaluated)
    shown = render_result(result, template)
    return handler_result(shown, shown)


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
"""Selecting texts of chat_completion and execute_tool_calls, by profile."""


def to_chat(given: Json, system: str | None = None) -> Message:
    """Return a text or a chat as a chat.

    Args:
        given: The input.
        system: A system message to put first; None for none.

    Raises:
        StateError: Contenox.InputType for any other input.
    """
    if isinstance(given, str):
        found: Message = {"messages": [{"role": "user", "content": given}]}
    elif is_chat(given):
        found = cast(Message, given)
    else:
        shown = type_name(given)
        raise StateError(INPUT_TYPE, f"the input must be a text or a chat, not {shown}")
    if not system:
        return found
    first = {"role": "system", "content": system}
    if first in [{key: each.get(key) for key in first} for each in found["messages"]]:
        return found
    return {**found, "messages": [first, *found["messages"]]}


def chat_completion(chat: Json, answer: Json, profile: str = "union") -> HandlerResult:
    """Return the chat with the answer of the model added.

    The answer is a text, or an object with `content`, `tool_calls` (each with `id`, `name` and
    `arguments`) and `finish_reason`; a model that reports its usage calls its content `response`.
    """
    before = to_chat(chat)
    said = answer if isinstance(answer, dict) else {"content": input_text(answer)}
    content = said.get("content", said.get(ANSWER, ""))
    message: Message = {"role": "assistant", "content": content if content is not None else ""}
    requested = said.get("tool_calls")
    if requested:
        message["tool_calls"] = [_to_call(each) for each in _call_list(requested)]
    kind = "call" if requested else "length" if said.get("finish_reason") == "length" else "stop"
    after = {**before, "messages": [*before["messages"], message]}
    return handler_result(after, TOKENS[profile][kind])


def _to_call(requested: Json) -> Message:
    if not isinstance(requested, dict) or not isinstance(requested.get("name"), str):
        raise StateError("Contenox.ToolCall", "a tool call must have an id, a name and arguments")
    given = requested.get("arguments", {})
    written = given if isinstance(given, str) else to_json(given)
    return {"id": str(requested.get("id", "")), "name": requested["name"], "arguments": written}


def tool_calls(chat: Json, tools: list[str] | None = None) -> list[Json]:
    """Return the allowed tool calls of the last message: id, name, arguments."""
    return [each for each in _requested_calls(chat) if _allowed(each["name"], tools)]


def _requested_calls(chat: Json) -> list[Message]:
    if not is_chat(chat):
        raise StateError(INPUT_TYPE, f"the input must be a chat, not {type_name(chat)}")
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    found = messages[-1].get("tool_calls") if messages else None
    return [_parse_arguments(_to_call(each)) for each in _call_list(found or [])]


def _call_list(found: Json) -> list[Json]:
    if not isinstance(found, list):
        raise StateError("Contenox.ToolCall", f"tool calls must be a list, not {type_name(found)}")
    return found


def _parse_arguments(call: Message) -> Message:
    try:
        given = read_data(call["arguments"] or "{}")
    except ValueError:
        cause = f"the arguments of tool {call['name']!r} are not JSON"
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


def execute_tool_calls(
    chat: Json, results: Json, tools: list[str] | None = None, profile: str = "union"
) -> HandlerResult:
    """Return the chat with a message for each tool call.

    Args:
        chat: The chat.
        results: The results of the allowed calls, in order; `{"error": "..."}` is the message of a
            failed tool.
        tools: Names of the allowed tools, None for all.
        profile: A key of `TOKENS`.

    Raises:
        StateError: Contenox.ToolResult for another number of results.
    """
    requested = _requested_calls(chat)
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    if not messages:
        return handler_result(chat, "noop")
    allowed = [each for each in requested if _allowed(each["name"], tools)]
    if not isinstance(results, list) or len(results) != len(allowed):
        cause = f"the results must be a list of {len(allowed)}, one for each call"
        raise StateError("Contenox.ToolResult", cause)
    coming = iter(results)
    told = [
        _tool_message(each, next(coming) if each in allowed else _unavailable(each["name"]))
        for each in requested
    ]
    after = {**cast(Message, chat), "messages": [*messages, *told]}
    return handler_result(after, TOKENS[profile]["ran" if allowed else "none"])


def _unavailable(name: str) -> Json:
    return {"error": f"the tool {name} is not available"}


def _tool_message(call: Message, result: Json) -> Message:
    if isinstance(result, dict) and result.keys() == {"error"}:
        result = result["error"]
    content = result if isinstance(result, str) else to_json(result)
    return {"role": "tool", "content": content, "tool_call_id": call["id"]}


def to_openai_response(chat: Json) -> HandlerResult:
    """Return the last message as the only choice of a completion."""
    found = to_chat(chat)["messages"]
    last = found[-1] if found else {"role": "assistant", "content": ""}
    reason = "tool_calls" if last.get("tool_calls") else "stop"
    choice = {"index": 0, "message": last, "finish_reason": reason}
    return handler_result({"object": "chat.completion", "choices": [choice]}, "converted")
