"""Rules of one JSONata expression: V-JSONATA-* (Specification 3.6).

This module is imported with the first expression, as is the query language.
"""

import re
from collections.abc import Iterator

from asl.checks import syntax_hints
from asl.checks.jsonata_expressions import parse_query
from asl.checks.workflow import CheckedWorkflow, JsonataString
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import ExpressionFault
from asl.expr.jsonata import function_names, is_function
from asl.expr.query_protocol import DELIMITERS, CalledMember, ParsedQuery, TextOperand

__all__ = ["check_expression"]


def check_expression(workflow: CheckedWorkflow, written: JsonataString) -> Iterator[Finding]:
    """Yield the faults of a string that may be an expression."""
    source = written.source
    if source is None:
        if written.wanted is None or written.wanted == "string":
            yield from _delimiters(written)
        return
    query = parse_query(workflow, source)
    if isinstance(query, ExpressionFault):
        # AWS gives the words of JSONata without its code (recorded).
        words = Wording(query.message.partition(": ")[2])
        place = written.lead + query.offset
        joined = syntax_hints.text_hint(written.text) if DELIMITERS[1] in source else None
        hint = query.hint or joined or syntax_hints.syntax_hint(source, query.offset)
        yield Finding(query.code, query.message, written.pointer, hint, aws=words, inside=place)
        return
    yield from _context(written, query)
    yield from _references(workflow, written, query)
    yield from _constant(written, query)
    if _OPERAND.search(source) or _CALLED.search(source):
        yield from _failing(workflow, written, query)


def _delimiters(written: JsonataString) -> Iterator[Finding]:
    opening, closing = DELIMITERS
    opened, closed = written.text.startswith(opening), written.text.endswith(closing)
    if opened is not closed:
        missing, where = (closing, "end") if opened else (opening, "begin")
        yield Finding(
            "V-JSONATA-02",
            f"the string does not {where} with {missing!r}, so it is no expression",
            written.pointer,
            syntax_hints.text_hint(written.text) or syntax_hints.ALONE,
            aws=Wording(aws_messages.DELIMITERS),
        )
    elif hint := syntax_hints.text_hint(written.text):
        yield Finding(
            "V-JSONATA-07",
            "the string is no expression, but a part of it looks like one",
            written.pointer,
            hint,
            inside=written.text.index(opening),
        )


def _context(written: JsonataString, query: ParsedQuery) -> Iterator[Finding]:
    for name, offset in dict(reversed(query.context)).items():
        root = name == "$$"
        yield Finding(
            "V-JSONATA-03",
            f"{name!r} has no value here: an expression has no enclosing document",
            written.pointer,
            _advice(name),
            aws=Wording(
                f"Reference to '{name}' {'is' if root else 'at the top level is'} not supported."
            ),
            inside=written.lead + offset,
        )


def _advice(name: str) -> str:
    if name.startswith("$"):
        return "the input is $states.input"
    habit = syntax_hints.name_hint(name)
    if habit is not None:
        return habit
    if name == "States":
        return "intrinsic functions belong to JSONPath; JSONata has functions of its own"
    return f"write $states.input.{name} for a field of the input, ${name} for a variable"


def _references(
    workflow: CheckedWorkflow, written: JsonataString, query: ParsedQuery
) -> Iterator[Finding]:
    for index, reference in enumerate(query.shape.references):
        if reference.name == "states":
            member = reference.member
            if member is not None and member not in written.members:
                offset = query.references[index].offset
                yield _no_member(workflow, written, member, offset)
        elif reference.called and not _is_function(workflow, reference.name):
            offset = query.references[index].offset
            yield _no_function(workflow, written, reference.name, offset)


def _no_member(
    workflow: CheckedWorkflow, written: JsonataString, member: str, offset: int
) -> Finding:
    reasons = {
        "result": "only 'Output', 'Assign' and 'Memory.Write' of a state with work have a result",
        "errorOutput": "only 'Output' and 'Assign' of a catcher have an error",
    }
    near = workflow.suggestions.near(member, written.members)
    return Finding(
        "V-JSONATA-04",
        f"$states has no member {member!r} here",
        written.pointer,
        reasons.get(member) or near or f"one of {', '.join(sorted(written.members))}",
        aws=Wording(f"Field '$states.{member}' does not exist."),
        inside=written.lead + offset,
    )


def _no_function(
    workflow: CheckedWorkflow, written: JsonataString, name: str, offset: int
) -> Finding:
    known = [f"${each}" for each in function_names(name)]
    hint = syntax_hints.function_hint(name) or workflow.suggestions.near(f"${name}", known)
    return Finding(
        "V-JSONATA-05",
        f"there is no function ${name}",
        written.pointer,
        hint,
        inside=written.lead + offset,
    )


def _is_function(workflow: CheckedWorkflow, name: str) -> bool:
    """Return whether a query may call a function; AWS has no functions of dialects."""
    return is_function(name, of_dialects=not workflow.profile.aws)


def _constant(written: JsonataString, query: ParsedQuery) -> Iterator[Finding]:
    found = query.constant
    if written.wanted is not None and found is not None and found != written.wanted:
        yield Finding(
            "V-JSONATA-06",
            f"the value must be of type {written.wanted}, and this is always of type {found}",
            written.pointer,
            inside=written.lead,
        )


_OPERAND = re.compile(r"""[-+*/%](?:\s*['"]|(?<=['"].)|(?<=['"]..)|(?<=['"]...))""")
_CALLED = re.compile(r"\.\s*[a-z]\w*\s*\(")
"""Filters for `_failing`: a string next to an operator, a called name. A pattern that begins with
one of few characters is the fastest to search."""


def _failing(
    workflow: CheckedWorkflow, written: JsonataString, query: ParsedQuery
) -> Iterator[Finding]:
    """Yield failures for any data: operators on strings, functions without `$`."""
    context = {name for name, _ in query.context}
    for failure in query.certain_failures():
        if isinstance(failure, TextOperand):
            yield Finding(
                "V-JSONATA-06",
                f"a text is no operand of {failure.operator!r}, so this always fails",
                written.pointer,
                "& joins texts" if failure.operator == "+" else "$number(...) reads a number",
                inside=written.lead + failure.offset,
            )
        elif failure.name not in context:
            yield _no_function_of_data(workflow, written, failure)


def _no_function_of_data(
    workflow: CheckedWorkflow, written: JsonataString, call: CalledMember
) -> Finding:
    known = f"write ${call.name}(...)" if _is_function(workflow, call.name) else None
    return Finding(
        "V-JSONATA-05",
        f"{call.name!r} is a member here and no function, which begins with $",
        written.pointer,
        syntax_hints.function_hint(call.name) or known,
        inside=written.lead + call.offset,
    )
