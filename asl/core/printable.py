"""Make text of documents, agents and people safe for a terminal."""

from unicodedata import category

__all__ = ["is_printable", "printable", "printable_json"]

JOINER = "\u200d"
"""The zero-width joiner: invisible, but part of many emoji."""


def is_printable(text: str) -> bool:
    """Return whether a text is one line that a terminal shows unchanged.

    Spaces of all kinds count as printable, such as the no-break space and the ideographic space.
    """
    return text.isprintable() or all(map(_is_shown, text))


def printable(text: str, *, lines: bool = False) -> str:
    """Replace the characters that could control a terminal, reorder a line or hide in it.

    Args:
        text: Any text, such as a state name, a prompt or the answer of a model.
        lines: Keep line breaks and tabs. Without it, the result is one line.

    Returns:
        The text with ASCII control characters as their symbols (`␛`), and with other control,
        format, bidirectional and unassigned characters as `�`.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(each if _is_shown(each) or each in kept else _symbol(ord(each)) for each in text)


def printable_json(text: str) -> str:
    r"""Return a JSON text of the same value with unsafe characters escaped (`\u202e`)."""
    if text.isprintable():
        return text
    return "".join(each if _is_shown(each) or each == "\n" else _escape(ord(each)) for each in text)


def _is_shown(character: str) -> bool:
    return character.isprintable() or character == JOINER or category(character) == "Zs"


def _symbol(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def _escape(code: int) -> str:
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"
