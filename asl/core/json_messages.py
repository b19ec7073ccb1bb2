"""What AWS's JSON parser says of a text that is not JSON (recorded)."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

__all__ = ["ParserMessage", "parser_message"]

_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_LITERALS: Final = ("true", "false", "null")
_EXPECTED: Final = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_SHOWN: Final = 500
"""Characters of the text in a place."""


class ParserMessage(NamedTuple):
    """A message of the parser.

    Attributes:
        text: The message.
        place: Where the parser stopped: the text, line and column.
    """

    text: str
    place: str


def parser_message(text: str) -> ParserMessage | None:
    """Return the message for a text, None if it is JSON or another kind of fault."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        message, end = _message(text, error)
        return ParserMessage(message, _place(text, end))
    except (ValueError, RecursionError):  # numbers or nesting without end
        return None
    return None


def _message(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Return the message, and the position behind the text that caused it."""
    at = error.pos
    if at >= len(text.rstrip()):
        return "Unexpected end-of-input", len(text)
    if error.msg.startswith("Expecting property name"):
        return _unexpected(text, at, "was expecting double-quote to start field name")
    if error.msg.startswith("Expecting ':'"):
        return _unexpected(text, at, "was expecting a colon to separate field name and value")
    if error.msg.startswith("Expecting ','"):
        kind = "Array" if text.rfind("[", 0, at) > text.rfind("{", 0, at) else "Object"
        return _unexpected(text, at, f"was expecting comma to separate {kind} entries")
    word = _WORD.match(text, at)
    if word is not None and word[0] not in _LITERALS:
        return f"Unrecognized token '{word[0]}': was expecting {_EXPECTED}", word.end()
    return _unexpected(text, at, f"expected a valid value {_EXPECTED}")


def _unexpected(text: str, at: int, what: str) -> tuple[str, int]:
    letter = text[at]
    return f"Unexpected character ('{letter}' (code {ord(letter)})): {what}", at + 1


def _place(text: str, end: int) -> str:
    line = text.count("\n", 0, end) + 1
    column = end - text.rfind("\n", 0, end)
    shown = f'"{text[:_SHOWN]}"'
    if len(text) > _SHOWN:
        shown += f"[truncated {len(text) - _SHOWN} chars]"
    return f"[Source: (String){shown}; line: {line}, column: {column}]"
