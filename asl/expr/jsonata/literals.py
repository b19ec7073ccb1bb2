"""Values as an expression writes them."""

import json
from json.encoder import encode_basestring

__all__ = ["literal"]


def literal(value: object) -> str:
    """Return a JSON value as JSONata writes it."""
    if isinstance(value, str):
        written = encode_basestring(value)
        return written if "'" in value else f"'{written[1:-1]}'".replace('\\"', '"')
    if isinstance(value, dict):
        pairs = ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value)
