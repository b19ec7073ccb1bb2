"""Where expressions of JSONata stand in a document, and each of them parsed."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from asl.checks.workflow import Workflow, Written
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.query_protocol import ParsedQuery, query_source
from asl.states import type_of
from asl.states.base import Node, StateType
from asl.states.blocks import DOCUMENT_BLOCKS
from asl.states.fields import Field, FieldIndex

__all__ = ["of_document", "queries_of", "read"]

ALWAYS = frozenset({"input", "context"})
RESULT = ALWAYS | {"result"}
ERROR = ALWAYS | {"errorOutput"}
"""The members of `$states`, by place."""

_COMPUTED: Final = FieldIndex(lambda field: field.jsonata is not None)
"""The fields that JSONata reads."""
_TYPES: Final[Mapping[str | None, str | None]] = {
    **{name: name for name in ("number", "string", "array", "boolean")},
    "timestamp": "string",
}
"""How a field is read -> the JSON type that must come out; none for a template or any value."""
_MEMBERS: Final = {None: ALWAYS, "result": RESULT, "error": ERROR}
"""What there is when a field is computed -> the members of `$states`."""


def queries_of(workflow: Workflow, node: Node) -> Sequence[Written]:
    """Return every string of a JSONata state that may be an expression; it is looked for once."""
    found = workflow.written.get(node.pointer)
    if found is None:
        found = workflow.written[node.pointer] = _written(node)
    return found


def of_document(workflow: Workflow) -> list[Written]:
    """Return every string in the blocks of a JSONata document that may be an expression."""
    found: list[Written] = []
    for scope in workflow.scopes:
        document = scope.pointer == scope.home and scope.value.get("QueryLanguage") == "JSONata"
        for field in DOCUMENT_BLOCKS if document else ():
            if field in scope.value:
                _look(found, scope.value[field], f"{scope.pointer}/{field}", ALWAYS)
    return found


def _written(node: Node) -> list[Written]:
    found: list[Written] = []
    for field, steps, value in _COMPUTED.of(node.value):
        if type(value) is dict and (apart := _apart(type_of(node.value), field)):
            value = {name: part for name, part in value.items() if name not in apart}
        members, wanted = _MEMBERS[field.after], _TYPES.get(field.jsonata)
        _look(found, value, node.at(*steps), members, wanted)
    return found


@cache
def _apart(kind: StateType, field: Field) -> frozenset[str]:
    """Return the members of a field that are read in a way of their own."""
    within = _COMPUTED.fields(kind)[field.place[0]]
    return frozenset(each.name for each in within if each.is_within(field))


def _look(
    found: list[Written],
    value: Json,
    pointer: str,
    members: frozenset[str],
    wanted: str | None = None,
) -> None:
    if type(value) is str:
        source = query_source(value)
        found.append(Written(pointer, value, source, members, wanted))
    elif type(value) is dict:
        for key, part in value.items():
            _look(found, part, f"{pointer}/{escape(key)}", members)
    elif type(value) is list:
        for index, part in enumerate(value):
            _look(found, part, f"{pointer}/{index}", members)


def read(workflow: Workflow, source: str) -> ParsedQuery | ExpressionFault:
    """Return an expression parsed, or why it cannot be; each text is parsed once."""
    known = workflow.queries.get(source)
    if known is None:
        known = workflow.queries[source] = _parser()(source, workflow.profile.aws)
    return known


@cache
def _parser() -> Callable[[str, bool], ParsedQuery | ExpressionFault]:
    """Return what parses expressions; an import for each costs more than parsing most of them."""
    from asl.expr.jsonata import limits, parse

    def parsed(source: str, aws: bool) -> ParsedQuery | ExpressionFault:
        try:
            return parse(source, limits(aws))
        except ExpressionFault as fault:
            return fault

    return parsed
