"""What readers write in JSONata."""

import json
from json.encoder import encode_basestring

from asl.core.values import Json

__all__ = ["handed", "literal", "query"]


def query(source: str) -> str:
    """Return an expression between its delimiters."""
    return f"{{% {source} %}}"


def literal(value: object) -> str:
    """Return a value as JSONata writes it."""
    if isinstance(value, str):
        written = encode_basestring(value)
        return written if "'" in value else f"'{written[1:-1]}'".replace('\\"', '"')
    if isinstance(value, dict):
        pairs = ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value)


def handed(value: Json) -> Json:
    """Return a value that is handed over as it is: what looks like an expression is a text."""
    if isinstance(value, dict):
        return {key: handed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [handed(each) for each in value]
    if isinstance(value, str) and ("{%" in value or "%}" in value):
        return query(literal(value))
    return value
