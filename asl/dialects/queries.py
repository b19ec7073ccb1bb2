"""What readers write in JSONata."""

from asl.core.values import Json
from asl.expr.jsonata.javascript import literal

__all__ = ["handed", "query"]


def query(source: str) -> str:
    """Return an expression between its delimiters."""
    return f"{{% {source} %}}"


def handed(value: Json) -> Json:
    """Return a value that is handed over as it is: what looks like an expression is a text."""
    if isinstance(value, dict):
        return {key: handed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [handed(each) for each in value]
    if isinstance(value, str) and ("{%" in value or "%}" in value):
        return query(literal(value))
    return value
