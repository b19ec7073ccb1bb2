"""Values as text for templates and handlers, numbers in texts, and chats."""

import json
import math
import re
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from asl.core.errors import StateError
from asl.core.values import Json, type_name

__all__ = [
    "INPUT_TYPE",
    "NUMBER",
    "Chat",
    "content_of",
    "find_digits",
    "find_number",
    "input_text",
    "is_between",
    "is_chat",
    "is_greater",
    "is_less",
    "prompt_text",
    "template_text",
    "to_json",
]

INPUT_TYPE = "Contenox.InputType"
"""The error of a task with an input of the wrong type."""

Chat: TypeAlias = Mapping[str, Json]


def is_chat(value: Json) -> bool:
    """Return whether a value is a chat history: an object with a list of `messages`."""
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    return all(isinstance(each, dict) for each in value["messages"])


def content_of(chat: Chat) -> str:
    """Return the content of the last message, empty if there is none."""
    messages = cast(list[dict[str, Json]], chat["messages"])
    content = messages[-1].get("content") if messages else ""
    return content if isinstance(content, str) else ""


def input_text(value: Json) -> str:
    """Return an input as text for a handler.

    Raises:
        StateError: Contenox.InputType for a value that is no text, number or chat.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6f}"
    if is_chat(value):
        return content_of(cast(Chat, value))
    raise StateError(
        INPUT_TYPE, f"the input must be a text, a number or a chat, not {type_name(value)}"
    )


def prompt_text(value: Json, filled: bool = False) -> str:
    """Return an input as the text of a prompt.

    Args:
        value: The input.
        filled: Whether an empty prompt is an error.

    Raises:
        StateError: Contenox.InputType for any other input.
    """
    found = input_text(value)
    if filled and not found:
        raise StateError(INPUT_TYPE, "the prompt is empty")
    return found


def template_text(value: Json, nested: bool = False) -> str:
    """Return a value as templates print it: objects as `map[k:v]`, lists as `[a b]`."""
    if value is None:
        return "<nil>" if nested else "<no value>"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        parts = (f"{key}:{template_text(each, True)}" for key, each in sorted(value.items()))
        return f"map[{' '.join(parts)}]"
    if isinstance(value, list):
        return f"[{' '.join(template_text(each, True) for each in value)}]"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        return _exponent(repr(value))
    return str(value)


def _exponent(text: str) -> str:
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].zfill(2)}"


def to_json(value: Json, *, ordered: bool = False) -> str:
    """Return a value as compact JSON; with *ordered* the keys of objects are sorted."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=ordered)


_FIRST_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
NUMBER: Final = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?"
"""The pattern of a number that is a whole text."""
_WHOLE: Final = re.compile(NUMBER)
_LONGEST: Final = 10_000
"""Characters of a text that are searched for a number."""


def find_digits(text: str) -> str | None:
    """Return the digits of the number in a text.

    Args:
        text: The text. Without its blanks and quotes it may be a number as a whole; otherwise its
            first number counts.

    Returns:
        The number as text, None if there is none.
    """
    text = text[:_LONGEST]
    bare = text.strip().translate(str.maketrans("", "", "\"' "))
    found = _WHOLE.fullmatch(bare) or _FIRST_NUMBER.search(text)
    return found[0] if found else None


def find_number(text: str) -> float | None:
    """Return the number in a text, as `find_digits` finds it; None without a finite one."""
    digits = find_digits(text)
    number = float(digits) if digits is not None else math.inf
    return number if math.isfinite(number) else None


def is_greater(text: str, than: float) -> Json:
    """Return whether the number of a text is greater; false without one."""
    number = find_number(text)
    return number is not None and number > than


def is_less(text: str, than: float) -> Json:
    """Return whether the number of a text is less; false without one."""
    number = find_number(text)
    return number is not None and number < than


def is_between(text: str, least: float, most: float) -> Json:
    """Return whether the number of a text is in a closed range; false without one."""
    number = find_number(text)
    return number is not None and least <= number <= most
