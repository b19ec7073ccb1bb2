"""Documents without the functions of their dialects: what each call computes, in plain JSONata."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.terms import Meanings
from asl.dialects.terms.jsonata import print_jsonata, read_jsonata
from asl.expr.query_protocol import query_source

__all__ = ["expand_functions"]


def expand_functions(
    value: Mapping[str, Any], meanings: Meanings, report: Callable[[str, str], None]
) -> dict[str, Any]:
    """Return a document whose expressions call no function of a dialect.

    Args:
        value: Value of a document.
        meanings: What the functions of its dialect compute.
        report: Called with the JSON Pointer and the text of an expression that cannot be stated
            without them; it stays as it is.

    Returns:
        The document; every other expression and field is unchanged.
    """
    if not meanings:
        return dict(value)
    calls = re.compile(rf"\$(?:{'|'.join(map(re.escape, meanings))})\s*\(")

    def expand(part: Json, pointer: str) -> Json:
        if isinstance(part, dict):
            return {
                key: each if key == "Metadata" else expand(each, f"{pointer}/{escape(key)}")
                for key, each in part.items()
            }
        if isinstance(part, list):
            return [expand(each, f"{pointer}/{index}") for index, each in enumerate(part)]
        source = query_source(part) if isinstance(part, str) else None
        if source is None or not calls.search(source):
            return part
        printed = print_jsonata(read_jsonata(source, meanings))
        if printed is None:
            report(pointer, source)
            return part
        return f"{{% {printed} %}}"

    found = expand(dict(value), "")
    assert isinstance(found, dict)
    return found
