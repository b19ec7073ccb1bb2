"""Documents without the functions of their dialects: what each call computes, in plain JSONata."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.terms import NOTHING, Meanings, Term
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
    return _Expansion(meanings, report).document(value) if meanings else dict(value)


class _Expansion:
    def __init__(self, meanings: Meanings, report: Callable[[str, str], None]) -> None:
        self.meanings = meanings
        self.report = report
        self.calls = re.compile(rf"\$(?:{'|'.join(map(re.escape, meanings))})\s*\(")

    def document(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: each if key == "Metadata" else self.expand(each, f"/{escape(key)}")
            for key, each in value.items()
        }

    def expand(self, part: Json, pointer: str) -> Json:
        if isinstance(part, dict):
            return {
                key: self.expand(each, f"{pointer}/{escape(key)}")
                for key, each in part.items()
                if self.term(each) != NOTHING
            }
        if isinstance(part, list):
            return [
                self.expand(each, f"{pointer}/{index}")
                for index, each in enumerate(part)
                if not self.is_never_taken(each)
            ]
        term = self.term(part)
        if term is None:
            return part
        printed = print_jsonata(term)
        if printed is None:
            self.report(pointer, query_source(str(part)) or "")
            return part
        return query(printed)

    def is_never_taken(self, handler: Json) -> bool:
        return (
            isinstance(handler, dict)
            and "ErrorEquals" in handler
            and self.term(handler.get("Output")) == NOTHING
        )

    def term(self, value: Json) -> Term | None:
        """Return the term of an expression that calls a function of the dialect."""
        source = query_source(value) if isinstance(value, str) else None
        if source is None or not self.calls.search(source):
            return None
        return read_jsonata(source, self.meanings)
