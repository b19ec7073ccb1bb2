"""Which strings of a document are JSONata expressions."""

DELIMITERS = ("{%", "%}")
"""What an expression begins and ends with, blanks before or after them not being allowed."""


def expression(text: str) -> str | None:
    """The source between the delimiters, without the blanks around it; None for other strings.

    `" {% 1 %} "` is an ordinary string (AWS, recorded).
    """
    opening, closing = DELIMITERS
    if len(text) < 4 or not text.startswith(opening) or not text.endswith(closing):
        return None
    return text[2:-2].strip()
