"""Every expression of the JSONata states: that it can be read and suits its place.

V-JSONATA-*. Specification 3.6. The query language itself is imported with the first expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.states import type_of
from asl.states.base import Node, StateType
from asl.states.blocks import DOCUMENT_BLOCKS
from asl.states.fields import Field, FieldIndex

if TYPE_CHECKING:
    from asl.expr.jsonata import Query

__all__ = ["Written", "check", "queries_of", "read"]

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


class Written(NamedTuple):
    """A string that is evaluated when it stands between the delimiters.

    `source` is what stands between the delimiters, None for a string that is no expression.
    `wanted` is the JSON type that must come out, `members` are those of `$states` that exist here.
    """

    pointer: str
    text: str
    source: str | None
    members: frozenset[str]
    wanted: str | None = None

    @property
    def lead(self) -> int:
        """How many characters stand before the source."""
        from asl.expr.jsonata import DELIMITERS

        return self.text.index(self.source or "", len(DELIMITERS[0]))


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with the expressions of every JSONata state, and of the document."""
    nodes = [node for node in workflow.nodes() if node.query_language == "JSONata"]
    of_document = _of_document(workflow)
    if not nodes and not of_document:
        return
    from asl.checks.judging import judged

    right: set[tuple[object, frozenset[str], str | None]] = set()
    for written in chain(of_document, *(_of_state(workflow, node) for node in nodes)):
        key = _form(workflow, written), written.members, written.wanted
        if key in right:
            continue
        found = [*judged(workflow, written)]
        yield from found
        if not found:
            right.add(key)


def _of_state(workflow: Workflow, node: Node) -> Sequence[Written]:
    found = queries_of(workflow, node)
    return [each for each in found if not node.open(each.text)] if node.unfilled else found


def _form(workflow: Workflow, written: Written) -> object:
    """Return what strings have in common of which one is as right as the other."""
    if written.source is None:
        return written.text
    query = read(workflow, written.source)
    return query if isinstance(query, ExpressionFault) else query.shape


# --------------------------------------------------------------------------------------------
# Where expressions stand


def queries_of(workflow: Workflow, node: Node) -> Sequence[Written]:
    """Return every string of a JSONata state that may be an expression; it is looked for once."""
    found = workflow.written.get(node.pointer)
    if found is None:
        found = workflow.written[node.pointer] = _written(node)
    return found


@cache
def _language() -> Any:
    """Return the query language; `from ... import` in a function costs more than most sources."""
    return import_module("asl.expr.jsonata")


def _of_document(workflow: Workflow) -> list[Written]:
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
        apart = _apart(type_of(node.value), field)
        if apart and type(value) is dict:
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
        source = _language().expression(value)
        found.append(Written(pointer, value, source, members, wanted))
    elif type(value) is dict:
        for key, part in value.items():
            _look(found, part, f"{pointer}/{escape(key)}", members)
    elif type(value) is list:
        for index, part in enumerate(value):
            _look(found, part, f"{pointer}/{index}", members)


def read(workflow: Workflow, source: str) -> Query | ExpressionFault:
    """Return an expression parsed, or why it cannot be; each text is parsed once."""
    known = workflow.queries.get(source)
    if known is None:
        try:
            language = _language()
            known = language.parse(source, language.limits(workflow.profile.aws))
        except ExpressionFault as fault:
            known = fault
        workflow.queries[source] = known
    return known
