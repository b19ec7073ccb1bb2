"""Every expression of the JSONata states: that it can be read and suits its place.

V-JSONATA-*. Specification 3.6. The query language itself is imported with the first expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    `wanted` is the JSON type that must come out, `members` are those of `$states` that exist here.
    """

    pointer: str
    text: str
    members: frozenset[str]
    wanted: str | None = None

    @property
    def source(self) -> str | None:
        """What stands between the delimiters, None for a string that is no expression."""
        from asl.expr.jsonata import expression

        return expression(self.text)

    @property
    def lead(self) -> int:
        """How many characters stand before the source."""
        from asl.expr.jsonata import DELIMITERS

        return self.text.index(self.source or "", len(DELIMITERS[0]))


def check(workflow: Workflow) -> Iterator[Finding]:
    """Yield what is wrong with the expressions of every JSONata state."""
    for node in workflow.nodes():
        if node.query_language == "JSONata":
            for written in queries_of(node):
                if not node.open(written.text):
                    yield from _judged(workflow, written)


# --------------------------------------------------------------------------------------------
# Where expressions stand


def queries_of(node: Node) -> Iterator[Written]:
    """Yield every string of a JSONata state that may be an expression."""
    state = node.value
    after = ALWAYS if state.get("Type") in WITHOUT_RESULT else RESULT
    templates = (*TEMPLATES, "Parameters") if state.get("Type") == "Include" else TEMPLATES
    for field in (*templates, *AGENT_TEMPLATES):
        yield from _under(node, state, ALWAYS, field)
    for field in AFTERWARDS:
        yield from _under(node, state, after, field)
    for field, wanted in TYPED.items():
        yield from _under(node, state, ALWAYS, field, wanted=wanted)
    for index, rule in objects(state, "Choices"):
        yield from _under(node, rule, ALWAYS, "Choices", index, "Condition", wanted="boolean")
    for entries, members in (("Choices", ALWAYS), ("Catch", ERROR)):
        for index, entry in objects(state, entries):
            for field in AFTERWARDS:
                yield from _under(node, entry, members, entries, index, field)
    for steps, field, kind in NESTED:
        if steps[0] in state:
            yield from _under(node, below(state, *steps), ALWAYS, *steps, field, wanted=kind)


def _under(
    node: Node,
    holder: Mapping[str, Json],
    members: frozenset[str],
    *way: str | int,
    wanted: str | None = None,
) -> Iterator[Written]:
    """Yield the strings of the field at the end of a way, if its holder has that field."""
    value = holder.get(str(way[-1]))
    if value is not None:
        yield from _strings(value, node.at(*way), members, wanted)


def _strings(
    value: Json, pointer: str, members: frozenset[str], wanted: str | None = None
) -> Iterator[Written]:
    if type(value) is str:
        yield Written(pointer, value, members, wanted)
    elif type(value) is dict:
        for key, part in value.items():
            yield from _strings(part, f"{pointer}/{escape(key)}", members)
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _strings(part, f"{pointer}/{index}", members)


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

    for name, offset in dict(reversed([*context_reads(query)])).items():
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


def _functions() -> frozenset[str]:
    from asl.expr.jsonata.functions.table import NATIVES

    return frozenset(NATIVES)


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
