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
from asl.expr.contenox.rendering import of_result
from asl.expr.contenox.texts import INPUT_TYPE, as_json, handed, is_chat

__all__ = [
    "TOKENS",
    "Handled",
    "answered",
    "calls",
    "chat_of",
    "command",
    "condition",
    "converted",
    "handled",
    "number",
    "pairs",
    "ran",
    "range_of",
    "route",
    "score",
    "text",
    "tool",
]

Handled = dict[str, Json]

_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_RANGE: Final = re.compile(r"([0-9]{1,300})(?:-([0-9]{1,300}))?")


def handled(output: Json, evaluated: str) -> Handled:
    """Return an output with what it evaluates to."""
    return {"output": output, "eval": evaluated}


def text(answer: Json) -> Handled:
    """prompt_to_string: the trimmed answer is both."""
    found = handed(answer).strip()
    return handled(found, found)


def condition(answer: Json, conditions: Mapping[str, Json]) -> Handled:
    """condition_key: the answer is one of the keys, and the output what stands under it."""
    found = handed(answer).strip()
    if found not in conditions:
        known = ", ".join(conditions) or "the valid conditions: there are none"
        raise StateError("Contenox.Condition", f"{found[:200]!r} is none of {known}")
    return handled(conditions[found], found)


def number(answer: Json) -> Handled:
    """parse_number: a whole number, the first one that the answer holds."""
    found = _first(handed(answer), "a whole number")
    try:
        whole = Decimal(found)
    except InvalidOperation:  # pragma: no cover - the pattern gives numbers only
        raise _no_number(found, "a whole number") from None
    if whole != whole.to_integral_value() or abs(whole) >= 2**63:
        raise _no_number(found, "a whole number")
    return handled(int(whole), str(int(whole)))


def score(answer: Json) -> Handled:
    """parse_score: a number; it evaluates to its text with two decimals."""
    found = float(_first(handed(answer), "a number"))
    if not math.isfinite(found):
        raise _no_number(handed(answer), "a number")
    return handled(found, f"{found:.2f}")


def range_of(answer: Json) -> Handled:
    """parse_range: `a-b` without spaces and quotes; one number is a range of itself."""
    written = re.sub(r"[\s\"']", "", handed(answer))
    match = _RANGE.fullmatch(written)
    if match is None:
        raise _no_number(written, "one number or two")
    found = f"{match[1]}-{match[2] or match[1]}"
    return handled(found, found)


def _first(answer: str, wanted: str) -> str:
    match = _NUMBER.search(answer[:10_000])
    if match is None:
        raise _no_number(answer, wanted)
    return match[0]


def _no_number(answer: str, wanted: str) -> StateError:
    return StateError("Contenox.Number", f"{answer[:200]!r} does not say {wanted}")


def route(given: Json, answer: Json, labels: list[str]) -> Handled:
    """route: the label that the answer is, or the first one in it; its input moves on."""
    if not labels:
        raise StateError("Contenox.Route", "there is no label to choose: no branch is by equals")
    said = handed(answer).strip()
    plain = said.casefold()
    exact = (each for each in labels if each.casefold() == plain)
    within = (each for each in labels if each and each.casefold() in plain)
    return handled(given, next(exact, None) or next(within, said))


def command(given: Json) -> Handled:
    """parse_transition: the word behind `/`; `pass` without one; the input moves on."""
    written = handed(given).strip()
    if not written.startswith("/"):
        return handled(given, "pass" if written else "")
    word = written[1:].split(None, 1)
    if not word or written[1:2].isspace():
        raise StateError("Contenox.Command", "there is no word behind the slash")
    return handled(given, word[0])


def pairs(given: Json) -> Handled:
    """parse_key_value: an object of pairs, parted by `;`, else by lines, else by `,`."""
    written = handed(given).strip()
    mark = next((each for each in (";", "\n") if each in written), ",")
    found: dict[str, Json] = {}
    for part in filter(None, (each.strip() for each in written.split(mark))):
        sign = "=" if "=" in part else ":"
        key, middle, value = part.partition(sign)
        if not middle:
            raise StateError("Contenox.KeyValue", f"{part[:200]!r} is no pair")
        found[key.strip().strip("\"'")] = _meant(value.strip())
    return handled(found, "parsed")


def _meant(written: str) -> Json:
    if written in ("true", "false"):
        return written == "true"
    if re.fullmatch(r"[-+]?[0-9]{1,18}", written):
        return int(written)
    if re.fullmatch(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", written):
        return float(written)
    return written.strip("\"'")


def tool(result: Json, evaluated: str, template: str | None = None) -> Handled:
    """hook and tools: the result; with an output template its text is both."""
    if template is None:
        return handled(result, evaluated)
    shown = of_result(result, template)
    return handled(shown, shown)


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
