"""Every expression of the JSONata states: that it can be read and suits its place.

V-JSONATA-*. Specification 3.6. The query language itself is imported with the first expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from asl.checks.workflow import Workflow, below, handlers, objects
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.states import type_of
from asl.states.base import Node
from asl.states.blocks import DOCUMENT_BLOCKS, STATE_BLOCKS

if TYPE_CHECKING:
    from asl.expr.jsonata import Query

__all__ = ["Written", "check", "queries_of", "read"]

ALWAYS = frozenset({"input", "context"})
RESULT = ALWAYS | {"result"}
ERROR = ALWAYS | {"errorOutput"}
"""The members of `$states`, by place."""

TEMPLATES = ("Arguments", "ItemSelector", "Credentials")
"""The fields in which strings are evaluated at any depth, before there is a result."""

AGENT_TEMPLATES = (
    "Topic",
    "Communication",
    "Consensus",
    "Prompt",
    "Options",
    "Timeout",
    "OnTimeout",
    "Escalation",
    "BatchMode",
    "Notifications",
    "Policy",
    "RequiredApprovers",
    "WorkflowId",
    "Input",
    "Name",
    "Storage",
    "TTL",
)
"""The same of agent-native states."""

AFTERWARDS = ("Output", "Assign")
"""The same where there may be a result."""

LATE = frozenset({("Memory", "Write")})
"""The parts of a state's blocks that are evaluated once there is a result."""

TYPED = {
    "TimeoutSeconds": "number",
    "HeartbeatSeconds": "number",
    "Seconds": "number",
    "Timestamp": "string",
    "MaxConcurrency": "number",
    "ToleratedFailureCount": "number",
    "ToleratedFailurePercentage": "number",
    "Rounds": "number",
    "Items": "array",
    "Error": "string",
    "Cause": "string",
}
"""The fields that are computed as a whole -> the type that must come out."""

FIELDS: Mapping[str, str | None] = {**dict.fromkeys((*TEMPLATES, *AGENT_TEMPLATES)), **TYPED}
"""The fields of a state that are evaluated before there is a result -> that type."""

NESTED = (
    (("ItemReader",), "Arguments", None),
    (("ItemReader", "ReaderConfig"), "MaxItems", "number"),
    (("ItemBatcher",), "MaxItemsPerBatch", "number"),
    (("ItemBatcher",), "MaxInputBytesPerBatch", "number"),
    (("ItemBatcher",), "BatchInput", None),
    (("ResultWriter",), "Arguments", None),
)
"""`(way to an object, field of it, type)`; without a type it is a template."""
_NESTING = frozenset(steps[0] for steps, *_ in NESTED)


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
    state = node.value
    kind = state.get("Type")
    for field, value in state.items():
        if field in FIELDS or (field == "Parameters" and kind == "Include"):
            _look(found, value, f"{node.pointer}/{field}", ALWAYS, FIELDS.get(field))
        elif field in STATE_BLOCKS and type(value) is dict:
            for name, part in value.items():
                members = RESULT if (field, name) in LATE else ALWAYS
                _look(found, part, node.at(field, name), members)
        elif field in STATE_BLOCKS:
            _look(found, value, f"{node.pointer}/{field}", ALWAYS)
    _look_after(found, state, node.pointer, RESULT if type_of(state).effect else ALWAYS)
    for index, rule in objects(state, "Choices"):
        pointer = f"{node.pointer}/Choices/{index}"
        if "Condition" in rule:
            _look(found, rule["Condition"], f"{pointer}/Condition", ALWAYS, "boolean")
        _look_after(found, rule, pointer, ALWAYS)
    for index, catcher in handlers(state, "Catch"):
        _look_after(found, catcher, f"{node.pointer}/Catch/{index}", ERROR)
    for steps, field, wanted in () if _NESTING.isdisjoint(state) else NESTED:
        holder = below(state, *steps)
        if field in holder:
            _look(found, holder[field], node.at(*steps, field), ALWAYS, wanted)
    return found


def _look_after(
    found: list[Written], entry: Mapping[str, Json], pointer: str, members: frozenset[str]
) -> None:
    for field in AFTERWARDS:
        if field in entry:
            _look(found, entry[field], f"{pointer}/{field}", members)


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
