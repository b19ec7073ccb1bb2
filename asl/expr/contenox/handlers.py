"""What handlers make of the answer of a model or tool: an output, and what it evaluates to.

Each gives `{"output", "eval"}`, or fails as its task would.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from asl.core.errors import StateError
from asl.core.json_text import read_data
from asl.core.values import Json, type_name
from asl.expr.contenox.rendering import render_result
from asl.expr.contenox.texts import FIRST_NUMBER, INPUT_TYPE, LONGEST, input_text, is_chat, to_json

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

_RANGE: Final = re.compile(r"([0-9]{1,300})(?:-([0-9]{1,300}))?")


def handler_result(output: Json, evaluated: str) -> HandlerResult:
    """Return an output with what it evaluates to."""
    return {"output": output, "eval": evaluated}


def prompt_to_string(answer: Json) -> HandlerResult:
    """prompt_to_string: the trimmed answer is both."""
    found = input_text(answer).strip()
    return handler_result(found, found)


def condition_key(answer: Json, conditions: Mapping[str, Json]) -> HandlerResult:
    """condition_key: the answer is one of the keys, and the output what stands under it."""
    found = input_text(answer).strip()
    if found not in conditions:
        known = ", ".join(conditions) or "the valid conditions: there are none"
        raise StateError("Contenox.Condition", f"{found[:200]!r} is none of {known}")
    return handler_result(conditions[found], found)


def parse_number(answer: Json) -> HandlerResult:
    """parse_number: a whole number, the first one that the answer holds."""
    found = _first_number(input_text(answer), "a whole number")
    try:
        whole = Decimal(found)
    except InvalidOperation:  # pragma: no cover - the pattern gives numbers only
        raise _number_error(found, "a whole number") from None
    if whole != whole.to_integral_value() or abs(whole) >= 2**63:
        raise _number_error(found, "a whole number")
    return handler_result(int(whole), str(int(whole)))


def parse_score(answer: Json) -> HandlerResult:
    """parse_score: a number; it evaluates to its text with two decimals."""
    found = float(_first_number(input_text(answer), "a number"))
    if not math.isfinite(found):
        raise _number_error(input_text(answer), "a number")
    return handler_result(found, f"{found:.2f}")


def parse_range(answer: Json) -> HandlerResult:
    """parse_range: `a-b` without spaces and quotes; one number is a range of itself."""
    written = re.sub(r"[\s\"']", "", input_text(answer))
    match = _RANGE.fullmatch(written)
    if match is None:
        raise _number_error(written, "one number or two")
    found = f"{match[1]}-{match[2] or match[1]}"
    return handler_result(found, found)


def _first_number(answer: str, wanted: str) -> str:
    match = FIRST_NUMBER.search(answer[:LONGEST])
    if match is None:
        raise _number_error(answer, wanted)
    return match[0]


def _number_error(answer: str, wanted: str) -> StateError:
    return StateError("Contenox.Number", f"{answer[:200]!r} does not say {wanted}")


def route(given: Json, answer: Json, labels: list[str]) -> HandlerResult:
    """route: the label that the answer is, or the first one in it; its input moves on."""
    if not labels:
        raise StateError("Contenox.Route", "there is no label to choose: no branch is by equals")
    said = input_text(answer).strip()
    plain = said.casefold()
    exact = (each for each in labels if each.casefold() == plain)
    within = (each for each in labels if each and each.casefold() in plain)
    return handler_result(given, next(exact, None) or next(within, said))


def parse_transition(given: Json) -> HandlerResult:
    """parse_transition: the word behind `/`; `pass` without one; the input moves on."""
    written = input_text(given).strip()
    if not written.startswith("/"):
        return handler_result(given, "pass" if written else "")
    word = written[1:].split(None, 1)
    if not word or written[1:2].isspace():
        raise StateError("Contenox.Command", "there is no word behind the slash")
    return handler_result(given, word[0])


def parse_key_value(given: Json) -> HandlerResult:
    """parse_key_value: an object of pairs, parted by `;`, else by lines, else by `,`."""
    written = input_text(given).strip()
    mark = next((each for each in (";", "\n") if each in written), ",")
    found: dict[str, Json] = {}
    for part in filter(None, (each.strip() for each in written.split(mark))):
        sign = "=" if "=" in part else ":"
        key, middle, value = part.partition(sign)
        if not middle:
            raise StateError("Contenox.KeyValue", f"{part[:200]!r} is no pair")
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
    """hook and tools: the result; with an output template its text is both."""
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
"""What chat_completion and execute_tool_calls evaluate to, by profile."""


def to_chat(given: Json, system: str | None = None) -> Message:
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


def chat_completion(chat: Json, answer: Json, profile: str = "union") -> HandlerResult:
    """chat_completion: the chat with the answer of the model behind it.

    The answer is a text, or an object with `content`, `tool_calls` (each with `id`, `name` and
    `arguments`) and `finish_reason`.
    """
    before = to_chat(chat)
    said = answer if isinstance(answer, dict) else {"content": input_text(answer)}
    content = said.get("content", "")
    message: Message = {"role": "assistant", "content": content if content is not None else ""}
    requested = said.get("tool_calls")
    if requested:
        message["tool_calls"] = [_to_call(each) for each in _call_list(requested)]
    kind = "call" if requested else "length" if said.get("finish_reason") == "length" else "stop"
    after = {**before, "messages": [*before["messages"], message]}
    return handler_result(after, TOKENS[profile][kind])


def _to_call(requested: Json) -> Message:
    if not isinstance(requested, dict) or not isinstance(requested.get("name"), str):
        raise StateError("Contenox.ToolCall", "a tool call has an id, a name and arguments")
    given = requested.get("arguments", {})
    written = given if isinstance(given, str) else to_json(given)
    return {"id": str(requested.get("id", "")), "name": requested["name"], "arguments": written}


def tool_calls(chat: Json, tools: list[str] | None = None) -> list[Json]:
    """Return the calls that the last message asks for and *tools* allow: id, name, arguments."""
    return [each for each in _requested_calls(chat) if _allowed(each["name"], tools)]


def _requested_calls(chat: Json) -> list[Message]:
    if not is_chat(chat):
        raise StateError(INPUT_TYPE, f"a chat is needed, not {type_name(chat)}")
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    found = messages[-1].get("tool_calls") if messages else None
    return [_parse_arguments(_to_call(each)) for each in _call_list(found or [])]


def _call_list(found: Json) -> list[Json]:
    if not isinstance(found, list):
        raise StateError("Contenox.ToolCall", f"tool calls are a list, not {type_name(found)}")
    return found


def _parse_arguments(call: Message) -> Message:
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


def execute_tool_calls(
    chat: Json, results: Json, tools: list[str] | None = None, profile: str = "union"
) -> HandlerResult:
    """execute_tool_calls: the chat with a message for each call.

    *results* has one for each call that was allowed, in order; `{"error": "..."}` is the message of
    a tool that failed.
    """
    requested = _requested_calls(chat)
    messages = cast(list[Message], cast(dict[str, Any], chat)["messages"])
    if not messages:
        return handler_result(chat, "noop")
    allowed = [each for each in requested if _allowed(each["name"], tools)]
    if not isinstance(results, list) or len(results) != len(allowed):
        cause = f"there must be a list of {len(allowed)} results, one for each call"
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
    """convert_to_openai_chat_response: the last message as one choice of a completion."""
    found = to_chat(chat)["messages"]
    last = found[-1] if found else {"role": "assistant", "content": ""}
    reason = "tool_calls" if last.get("tool_calls") else "stop"
    choice = {"index": 0, "message": last, "finish_reason": reason}
    return handler_result({"object": "chat.completion", "choices": [choice]}, "converted")
