"""Every expression of the JSONata states: that it can be read and suits its place.

V-JSONATA-*. Specification 3.6. The query language itself is imported with the first expression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asl.checks.workflow import Workflow, below, objects
from asl.core import aws
from asl.core.diagnostics import Finding, Wording, escape
from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.states.base import Node

if TYPE_CHECKING:
    from asl.expr.jsonata import Query

__all__ = ["Written", "check", "queries_of", "read"]

ALWAYS = frozenset({"input", "context"})
RESULT = ALWAYS | {"result"}
ERROR = ALWAYS | {"errorOutput"}
"""The members of `$states`, by place."""

WITHOUT_RESULT = ("Pass", "Wait", "Choice", "Succeed", "Fail")

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
)
"""The same of agent-native states."""

AFTERWARDS = ("Output", "Assign")
"""The same where there may be a result."""

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


@dataclass(frozen=True, slots=True)
class Written:
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
    """Yield what is wrong with the expressions of every JSONata state."""
    right: set[tuple[str, frozenset[str], str | None]] = set()
    for node in workflow.nodes():
        if node.query_language == "JSONata":
            for written in queries_of(workflow, node):
                if node.open(written.text):
                    continue
                judged = written.text, written.members, written.wanted
                if judged not in right:
                    found = [*_judged(workflow, written)]
                    yield from found
                    if not found:
                        right.add(judged)


# --------------------------------------------------------------------------------------------
# Where expressions stand


def queries_of(workflow: Workflow, node: Node) -> Sequence[Written]:
    """Return every string of a JSONata state that may be an expression; it is looked for once."""
    found = workflow.written.get(node.pointer)
    if found is None:
        found = workflow.written[node.pointer] = _written(node)
    return found


def _written(node: Node) -> list[Written]:
    from asl.expr.jsonata import expression

    found: list[Written] = []

    def look(value: Json, pointer: str, members: frozenset[str], wanted: str | None = None) -> None:
        if type(value) is str:
            found.append(Written(pointer, value, expression(value), members, wanted))
        elif type(value) is dict:
            for key, part in value.items():
                look(part, f"{pointer}/{escape(key)}", members)
        elif type(value) is list:
            for index, part in enumerate(value):
                look(part, f"{pointer}/{index}", members)

    def look_after(entry: Mapping[str, Json], pointer: str, members: frozenset[str]) -> None:
        for field in AFTERWARDS:
            if field in entry:
                look(entry[field], f"{pointer}/{field}", members)

    state = node.value
    kind = state.get("Type")
    for field, value in state.items():
        if field in FIELDS or (field == "Parameters" and kind == "Include"):
            look(value, node.at(field), ALWAYS, FIELDS.get(field))
    look_after(state, node.pointer, ALWAYS if kind in WITHOUT_RESULT else RESULT)
    for index, rule in objects(state, "Choices"):
        pointer = node.at("Choices", index)
        if "Condition" in rule:
            look(rule["Condition"], f"{pointer}/Condition", ALWAYS, "boolean")
        look_after(rule, pointer, ALWAYS)
    for index, catcher in objects(state, "Catch"):
        look_after(catcher, node.at("Catch", index), ERROR)
    for steps, field, wanted in NESTED:
        if steps[0] in state:
            holder = below(state, *steps)
            if field in holder:
                look(holder[field], node.at(*steps, field), ALWAYS, wanted)
    return found


# --------------------------------------------------------------------------------------------
# Judging one expression


def read(workflow: Workflow, source: str) -> Query | ExpressionFault:
    """Return an expression parsed, or why it cannot be; each text is parsed once."""
    from asl.expr.jsonata import parse

    known = workflow.queries.get(source)
    if known is None:
        try:
            known = parse(source)
        except ExpressionFault as fault:
            known = fault
        workflow.queries[source] = known
    return known


def _judged(workflow: Workflow, written: Written) -> Iterator[Finding]:
    source = written.source
    if source is None:
        if written.wanted is None or written.wanted == "string":
            yield from _delimiters(written)
        return
    query, lead = read(workflow, source), written.lead
    if isinstance(query, ExpressionFault):
        # AWS gives the words of JSONata without its code (recorded).
        words = Wording(query.message.partition(": ")[2])
        place = lead + query.offset
        yield Finding(
            query.code, query.message, written.pointer, query.hint, aws=words, inside=place
        )
        return
    yield from _context(written, query, lead)
    yield from _references(workflow, written, query, lead)
    yield from _constant(written, query)


def _delimiters(written: Written) -> Iterator[Finding]:
    from asl.expr.jsonata import DELIMITERS

    opening, closing = DELIMITERS
    opened, closed = written.text.startswith(opening), written.text.endswith(closing)
    if opened is not closed:
        missing, where = (closing, "end") if opened else (opening, "begin")
        yield Finding(
            "V-JSONATA-02",
            f"the string does not {where} with {missing!r}, so it is no expression",
            written.pointer,
            "an expression is written '{% ... %}', without blanks before or after",
            aws=Wording(aws.DELIMITERS),
        )


def _context(written: Written, query: Query, lead: int) -> Iterator[Finding]:
    from asl.expr.jsonata.context import context_reads

    for name, offset in dict(reversed(context_reads(query))).items():
        root = name == "$$"
        yield Finding(
            "V-JSONATA-03",
            f"{name!r} stands for nothing here: there is no document around an expression",
            written.pointer,
            _advice(name),
            aws=Wording(
                f"Reference to '{name}' {'is' if root else 'at the top level is'} not supported."
            ),
            inside=lead + offset,
        )


def _advice(name: str) -> str:
    if name.startswith("$"):
        return "the input is $states.input"
    if name == "States":
        return "intrinsic functions belong to JSONPath; JSONata has functions of its own"
    return f"write $states.input.{name} for a field of the input, ${name} for a variable"


def _references(workflow: Workflow, written: Written, query: Query, lead: int) -> Iterator[Finding]:
    for reference in query.references:
        if reference.name == "states":
            member = reference.member
            if member is not None and member not in written.members:
                yield _no_member(workflow, written, member, lead + reference.offset)
        elif reference.called and not _is_function(workflow, reference.name):
            yield _no_function(workflow, written, reference.name, lead + reference.offset)


def _no_member(workflow: Workflow, written: Written, member: str, offset: int) -> Finding:
    reasons = {
        "result": "only 'Output' and 'Assign' of a state that does work have a result",
        "errorOutput": "only 'Output' and 'Assign' of a catcher have an error",
    }
    near = workflow.suggestions.near(member, written.members)
    return Finding(
        "V-JSONATA-04",
        f"$states has no member {member!r} here",
        written.pointer,
        reasons.get(member) or near or f"one of {', '.join(sorted(written.members))}",
        aws=Wording(f"Field '$states.{member}' does not exist."),
        inside=offset,
    )


def _no_function(workflow: Workflow, written: Written, name: str, offset: int) -> Finding:
    from asl.expr.jsonata.functions.dialects import belonging

    known = [f"${each}" for each in (*_functions(), *belonging(name))]
    hint = workflow.suggestions.near(f"${name}", known)
    if name == "eval":
        hint = "$parse reads JSON text"
    return Finding(
        "V-JSONATA-05",
        f"there is no function ${name}",
        written.pointer,
        hint,
        inside=offset,
    )


def _is_function(workflow: Workflow, name: str) -> bool:
    """Whether a query may call a function; AWS has none of those that belong to a dialect."""
    from asl.expr.jsonata.functions.dialects import belonging

    return name in _functions() or (not workflow.profile.aws and name in belonging(name))


def _functions() -> Collection[str]:
    from asl.expr.jsonata.functions.table import NATIVES

    return NATIVES


def _constant(written: Written, query: Query) -> Iterator[Finding]:
    from asl.expr.jsonata.context import constant

    found = constant(query)
    if written.wanted is not None and found is not None and found != written.wanted:
        yield Finding(
            "V-JSONATA-06",
            f"the value must be of type {written.wanted}, and this is always of type {found}",
            written.pointer,
            inside=written.lead,
        )
