"""Errors of queries, with the codes and messages of JSONata's reference implementation.

AWS shows them unchanged: `T1006: Attempted to invoke a non-function`.
"""

import re
from functools import cache
from typing import Any

from asl.expr.jsonata.javascript import UNDEFINED, stringify

LONGEST = 1000
"""Characters of a value in a message."""


class QueryFault(Exception):
    """An evaluation failed; the text is AWS's, such as `T1006: Attempted to invoke ...`.

    `fields` are the values for the places of the message. Those unknown where the error arises,
    such as the name of the function, are added by its callers.
    """

    def __init__(self, code: str, **fields: Any) -> None:
        super().__init__(code)
        self.code = code
        self.fields = fields

    def __str__(self) -> str:
        return f"{self.code}: {message(self.code, self.fields)}"


def fault(code: str, **fields: Any) -> QueryFault:
    """Return the error of a code; *fields* fill the places of its message."""
    return QueryFault(code, **fields)


OWN = {
    "D1011": "Stack overflow. Check for non-terminating recursive function",
    "D1012": "Expression evaluation exceeded {{{limit}}} steps. Check for infinite loop",
    "D1013": "The expression computed a {{{what}}} that exceeds the limit of {{{limit}}}",
    "D1014": "The result of the expression has no JSON form: {{{what}}}",
    "D1015": "The text is not Base64",
    "D1016": "The result of the expression has no JSON form: a function",
    "D3150": "{{{message}}}",
}
"""Messages of this implementation: its limits, and failures of AWS's functions."""


OF_AWS = {
    "D1011": (
        "Stack overflow error: Check for non-terminating recursive function. "
        "Consider rewriting as tail-recursive"
    ),
    "D1012": "Expression evaluation timeout: Check for infinite loop",
    "D1013": "Expression evaluation memory limit exceeded: Check for excessive memory usage",
}
"""AWS's messages for exceeded limits, which have no code."""

INTERNAL = "D1015"
"""The code of AWS's internal errors."""

UNSUPPORTED = "D1016"
"""The code of AWS's unsupported result types."""


@cache
def _messages() -> dict[str, str]:
    """Return the library's messages, restored to those of the JavaScript original."""
    from asl.expr.jsonata.library import MESSAGES

    ported = {
        code: text.replace("Object", "function").replace('"', "'").replace("function_name", "name")
        for code, text in MESSAGES.items()
    }
    return ported | OWN


def places(code: str) -> list[str]:
    """Return the names of the places in the message of a code, in order."""
    return re.findall(r"\{\{(\w+)\}\}", _messages().get(code, ""))


def message(code: str, fields: dict[str, Any]) -> str:
    """Return the message of a code: `{{{x}}}` is a field as text, `{{x}}` as JSON."""
    template = _messages().get(code, code)
    text = re.sub(r"\{\{\{(\w+)\}\}\}", lambda place: str(fields.get(place[1], "")), template)
    return re.sub(r"\{\{(\w+)\}\}", lambda place: _shown(fields, place[1]), text)


def _shown(fields: dict[str, Any], name: str) -> str:
    if fields.get(name, UNDEFINED) is UNDEFINED:
        return "undefined"
    text = stringify(fields[name], LONGEST)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
