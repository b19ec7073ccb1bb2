"""JSONata expressions of a document: where they are, parsed once, and checked (V-JSONATA-*).

(Specification 3.6.) The query language is imported with the first expression.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Final

from asl.checks.workflow import CheckedWorkflow, JsonataString
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.query_protocol import ParsedQuery, query_source
from asl.states import type_of
from asl.states.base import Node, StateType
from asl.states.blocks import DOCUMENT_BLOCKS
from asl.states.fields import Field, FieldIndex

__all__ = ["check", "document_strings", "parse_query", "state_strings"]

ALWAYS = frozenset({"input", "context"})
RESULT = ALWAYS | {"result"}
ERROR = ALWAYS | {"errorOutput"}
"""The members of `$states` by place."""

_COMPUTED: Final = FieldIndex(lambda field: field.jsonata is not None)
"""The fields that JSONata reads."""
_TYPES: Final[Mapping[str | None, str | None]] = {
    **{name: name for name in ("number", "string", "array", "boolean")},
    "timestamp": "string",
}
"""Type of a field -> the required JSON type; missing for templates and any value."""
_MEMBERS: Final = {None: ALWAYS, "result": RESULT, "error": ERROR}
"""Time of evaluation -> the members of `$states`."""


def state_strings(workflow: CheckedWorkflow, node: Node) -> Sequence[JsonataString]:
    """Return the strings of a JSONata state that may be expressions; cached per state."""
    found = workflow.written.get(node.pointer)
    if found is None:
        found = workflow.written[node.pointer] = _written(node)
    return found


def document_strings(workflow: CheckedWorkflow) -> list[JsonataString]:
    """Return the strings in the blocks of a JSONata document that may be expressions."""
    found: list[JsonataString] = []
    for scope in workflow.scopes:
        document = scope.pointer == scope.home and scope.value.get("QueryLanguage") == "JSONata"
        for field in DOCUMENT_BLOCKS if document else ():
            if field in scope.value:
                _look(found, scope.value[field], f"{scope.pointer}/{field}", ALWAYS)
    return found


def _written(node: Node) -> list[JsonataString]:
    found: list[JsonataString] = []
    for field, steps, value in _COMPUTED.of(node.value):
        if type(value) is dict and (apart := _apart(type_of(node.value), field)):
            value = {name: part for name, part in value.items() if name not in apart}
        members, wanted = _MEMBERS[field.after], _TYPES.get(field.jsonata)
        _look(found, value, node.at(*steps), members, wanted)
    return found


@cache
def _apart(kind: StateType, field: Field) -> frozenset[str]:
    """Return the members of a field that are fields of their own."""
    within = _COMPUTED.fields(kind)[field.place[0]]
    return frozenset(each.name for each in within if each.is_within(field))


def _look(
    found: list[JsonataString],
    value: Json,
    pointer: str,
    members: frozenset[str],
    wanted: str | None = None,
) -> None:
    if type(value) is str:
        source = query_source(value)
        found.append(JsonataString(pointer, value, source, members, wanted))
    elif type(value) is dict:
        for key, part in value.items():
            _look(found, part, f"{pointer}/{escape(key)}", members)
    elif type(value) is list:
        for index, part in enumerate(value):
            _look(found, part, f"{pointer}/{index}", members)


def parse_query(workflow: CheckedWorkflow, source: str) -> ParsedQuery | ExpressionFault:
    """Return the parsed expression, or its fault; each text is parsed once."""
    known = workflow.queries.get(source)
    if known is None:
        known = workflow.queries[source] = _parser()(source, workflow.profile.aws)
    return known


@cache
def _parser() -> Callable[[str, bool], ParsedQuery | ExpressionFault]:
    """Return the parser; one import for all expressions, since imports cost more than parsing."""
    from asl.expr.jsonata import limits, parse

    def parsed(source: str, aws: bool) -> ParsedQuery | ExpressionFault:
        try:
            return parse(source, limits(aws))
        except ExpressionFault as fault:
            return fault

    return parsed


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield faults in the expressions of JSONata states and of the document."""
    nodes = [node for node in workflow.nodes() if node.query_language == "JSONata"]
    whole = document_strings(workflow)
    if not nodes and not whole:
        return
    from asl.checks.jsonata_rules import check_expression

    right: set[tuple[object, frozenset[str], str | None]] = set()
    for written in chain(whole, *(_of_state(workflow, node) for node in nodes)):
        key = _form(workflow, written), written.members, written.wanted
        if key in right:
            continue
        found = [*check_expression(workflow, written)]
        yield from found
        if not found:
            right.add(key)


def _of_state(workflow: CheckedWorkflow, node: Node) -> Sequence[JsonataString]:
    found = state_strings(workflow, node)
    return [each for each in found if not node.open(each.text)] if node.unfilled else found


def _form(workflow: CheckedWorkflow, written: JsonataString) -> object:
    """Return a key that is equal for strings with the same findings."""
    if written.source is None:
        return written.text
    query = parse_query(workflow, written.source)
    return query if isinstance(query, ExpressionFault) else query.shape
