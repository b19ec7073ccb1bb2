"""What readers write in JSONata."""

import json

__all__ = ["literal", "query"]


def query(source: str) -> str:
    """Return an expression between its delimiters."""
    return f"{{% {source} %}}"


def literal(value: object) -> str:
    """Return a value as JSONata writes it."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    written = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and "'" not in value:
        return f"'{written[1:-1]}'".replace('\\"', '"')
    return written
