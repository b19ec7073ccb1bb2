"""Interpolated texts: V-TXT-01, and V-ST-11 where nothing is inserted (Specification 3.8)."""

from collections.abc import Iterator

from asl.checks.query_languages import is_jsonata
from asl.checks.workflow import CheckedWorkflow, MachineScope
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.templates import check_text
from asl.states import type_of

__all__ = ["check"]

_INSERTION = lazy_pattern(r"\{\{\s*\$")
_PARAMETER = lazy_pattern(r"\{\{\s*[^\W\d]\w*\s*(\|[^{}]*)?\}\}")


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the texts into which values are inserted."""
    for node in workflow.nodes():
        # In JSONata such texts are expressions (Specification 3.6).
        inserts = node.query_language != "JSONata"
        for steps in type_of(node.value).insertions:
            value, pointer = _at(node.value, steps), node.at(*steps)
            yield from _texts(value, pointer, node.unfilled) if inserts else _braces(value, pointer)
    for scope in workflow.scopes:
        if scope.pointer == scope.home:
            yield from _of_document(scope)


def _of_document(scope: MachineScope) -> Iterator[Finding]:
    value, pointer = scope.value, scope.pointer
    if value.get("QueryLanguage") != "JSONata":
        namespace = _at(value, ("Memory", "Namespace"))
        yield from _texts(namespace, f"{pointer}/Memory/Namespace", scope.unfilled)
    alerts = _at(value, ("Budget", "Alerts"))
    for index, alert in enumerate(alerts if type(alerts) is list else ()):
        message = _at(alert, ("Message",))
        yield from _texts(message, f"{pointer}/Budget/Alerts/{index}/Message", scope.unfilled)


def _at(value: Json, steps: tuple[str, ...]) -> Json:
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value


def _braces(value: Json, pointer: str) -> Iterator[Finding]:
    """Find texts of a JSONata state that are written as JSONPath states have them."""
    if type(value) is dict or type(value) is list:
        for key, part in value.items() if type(value) is dict else enumerate(value):
            yield from _braces(part, f"{pointer}/{escape(str(key))}")
    elif type(value) is str and _INSERTION.search(value) and not is_jsonata(value):
        yield Finding(
            "V-ST-11",
            "nothing is inserted between '{{' and '}}' in a JSONata state, so this stays text",
            pointer,
            "write the whole text as an expression: {% 'text ' & $states.input.name %}",
            aws=Wording(code=""),
        )


def _texts(value: Json, pointer: str, unfilled: bool) -> Iterator[Finding]:
    """Check a text, or every text within a structured value that is not itself computed."""
    if type(value) is dict:
        for key, part in value.items():
            if not key.endswith(".$"):
                yield from _texts(part, f"{pointer}/{escape(key)}", unfilled)
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _texts(part, f"{pointer}/{index}", unfilled)
    elif type(value) is str:
        # Parameters of a template are filled in before the text is read.
        text = _PARAMETER.sub("", value) if unfilled else value
        try:
            check_text(text)
        except ExpressionFault as fault:
            yield Finding(fault.code, fault.message, pointer, fault.hint)
