"""Every expression of the JSONPath states: that it can be read and suits its place.

V-ST-05, V-ST-09, V-INTR-*, and the rules of the fields that hold a path. Specification 3.2, 3.4,
3.9 and 5.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.checks.workflow import CheckedWorkflow, objects
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape, split_pointer
from asl.core.profile import Profile
from asl.core.values import Json
from asl.expr import intrinsics
from asl.expr.choice_rules import COMBINATORS, OPERATORS
from asl.expr.paths import Path, concerns, parse_path, parse_reference_path, parse_result_path
from asl.expr.templates import (
    SUFFIX,
    ParsedExpression,
    dynamic_fields,
    is_path,
    parse_expression,
    paths_in,
    template_faults,
)
from asl.states import type_of
from asl.states.base import Node
from asl.states.fields import FieldIndex, Reading

__all__ = ["PathExpression", "check", "expressions_of", "parts", "read"]


class PathExpression(NamedTuple):
    """A text of the document that is evaluated when the state runs."""

    pointer: str
    text: str
    kind: Reading
    rule: str
    """The rule that a malformed path breaks here."""


_EXPRESSIONS: Final = FieldIndex(
    lambda field: field.jsonpath in (Reading.PATH, Reading.REFERENCE, Reading.RESULT, Reading.TEXT)
)
"""The fields that hold one expression."""
_TEMPLATES: Final = FieldIndex(
    lambda field: field.jsonpath in (Reading.TEMPLATE, Reading.BLOCK), outermost=True
)
"""The fields in which a key that ends in `.$` is evaluated, at any depth."""


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the expressions of every JSONPath state."""
    for node in workflow.nodes():
        if node.query_language == "JSONPath":
            for pointer, template in _templates(node):
                for place, fault in template_faults(template, pointer):
                    holder, field = split_pointer(place)
                    wording = Wording(aws_messages.no_expression(field), at=holder)
                    yield Finding(fault.code, fault.message, place, fault.hint, aws=wording)
            yield from _twins(node)
            for expression in expressions_of(node):
                if not node.open(expression.text):
                    yield from _judged(expression, node)


def _twins(node: Node) -> Iterator[Finding]:
    """Fields of the state itself that are given both plain and computed."""
    for field in node.value:
        plain = field.removesuffix(SUFFIX)
        # A Fail state has its own rule for its two groups.
        if plain != field and plain in node.value and node.value.get("Type") != "Fail":
            message = f"both {plain!r} and {field!r} are given"
            yield Finding("V-ST-09", message, node.at(field), at_key=True)


# --------------------------------------------------------------------------------------------
# Where expressions stand


def expressions_of(node: Node) -> Iterator[PathExpression]:
    """Yield every expression of a state that is a string, in no particular order."""
    single = _EXPRESSIONS.fields(type_of(node.value))
    for name, value in node.value.items():
        if type(value) is str and name.endswith(SUFFIX) and name not in single:
            yield PathExpression(node.at(name), value, Reading.EXPRESSION, "V-ST-09")
    for field, steps, value in _EXPRESSIONS.of(node.value):
        if type(value) is str and field.jsonpath is not None:
            yield PathExpression(node.at(*steps), value, field.jsonpath, field.rule)
    for pointer, template in _templates(node):
        for place, _, value in dynamic_fields(template, pointer):
            if type(value) is str:
                yield PathExpression(place, value, Reading.EXPRESSION, "V-ST-09")
    for index, rule in objects(node.value, "Choices"):
        yield from _conditions(rule, node.at("Choices", index))


def _templates(node: Node) -> Iterator[tuple[str, Json]]:
    for _, steps, value in _TEMPLATES.of(node.value):
        yield node.at(*steps), value


def _conditions(rule: Mapping[str, Json], pointer: str) -> Iterator[PathExpression]:
    for field, value in rule.items():
        place = f"{pointer}/{escape(field)}"
        if field in COMBINATORS:
            for step, part in parts(value):
                yield from _conditions(part, place + step)
        elif type(value) is not str:
            continue
        elif field == "Variable":
            yield PathExpression(place, value, Reading.PATH, "V-ST-09")
        elif field == "Variable.$":
            yield PathExpression(place, value, Reading.EXPRESSION, "V-ST-09")
        elif field in OPERATORS and OPERATORS[field].operand == "path":
            yield PathExpression(place, value, Reading.REFERENCE, "V-CHOICE-04")


def parts(value: Json) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the rules in `And`, `Or` or `Not`, each with the step to it."""
    if type(value) is dict:
        yield "", value
    elif type(value) is list:
        for index, part in enumerate(value):
            if type(part) is dict:
                yield f"/{index}", part


# --------------------------------------------------------------------------------------------
# Judging one expression


def _judged(expression: PathExpression, node: Node) -> Iterator[Finding]:
    aws = node.profile.aws
    try:
        parsed = read(expression, aws=aws)
    except ExpressionFault as refusal:
        fault = _general(expression, refusal) if aws else refusal
        code = expression.rule if fault.code in ("V-ST-05", "V-ST-09") else fault.code
        message = f"{fault.message}{_position(expression.text, fault.offset)}"
        yield Finding(code, message, expression.pointer, fault.hint, aws=_wording(expression))
        return
    if aws:
        yield from _concerns(expression, parsed)
    if isinstance(parsed, Path):
        return
    if expression.kind is Reading.TEXT and parsed.name not in intrinsics.ALLOWED_IN_ERROR_PATH:
        allowed = ", ".join(sorted(intrinsics.ALLOWED_IN_ERROR_PATH))
        message = f"{parsed.name} is not available here"
        hint = f"one of {allowed}"
        wording = _wording(expression)
        yield Finding(expression.rule, message, expression.pointer, hint, aws=wording)
    yield from _remarks(expression, parsed, node.profile)


def _general(expression: PathExpression, refusal: ExpressionFault) -> ExpressionFault:
    """Return the fault of the language where it refuses what AWS refuses: it says more."""
    try:
        read(expression)
    except ExpressionFault as fault:
        return fault
    return refusal


def _concerns(expression: PathExpression, parsed: ParsedExpression) -> Iterator[Finding]:
    """Warn of paths that AWS takes, but not for what they seem to be."""
    for path in paths_in(parsed, aws=True):
        for message, hint in concerns(path):
            yield Finding(
                expression.rule, message, expression.pointer, hint, severity=Severity.WARNING
            )


def _remarks(
    expression: PathExpression, call: intrinsics.IntrinsicCall, profile: Profile
) -> Iterator[Finding]:
    for remark in intrinsics.check(call, profile):
        message = f"{remark.message}{_position(expression.text, remark.offset)}"
        wording = _wording(expression)
        yield Finding(remark.code, message, expression.pointer, remark.hint, aws=wording)


def _wording(expression: PathExpression) -> Wording:
    """Return how AWS words that a text cannot be read as what its place wants."""
    holder, field = split_pointer(expression.pointer)
    if expression.kind in (Reading.EXPRESSION, Reading.TEXT):
        return Wording(aws_messages.no_expression(field), at=holder)
    if expression.kind is Reading.PATH and field != "Variable":
        return Wording(aws_messages.NO_PATH)
    starts = expression.text.startswith("$")
    return Wording(
        aws_messages.NO_REFERENCE
        if starts
        else f"{aws_messages.NO_REFERENCE}: {aws_messages.NO_DOLLAR}"
    )


def _position(text: str, offset: int) -> str:
    """Say where in a longer text the fault is; at its beginning there is no need."""
    return f" (at character {offset + 1} of {text!r})" if offset > 0 and len(text) <= 200 else ""


def read(expression: PathExpression, *, aws: bool = False) -> ParsedExpression:
    """Parse an expression, as *aws* would if asked to; raises ExpressionFault for what does not
    suit its place."""
    text, kind = expression.text, expression.kind
    if kind is Reading.PATH:
        return parse_path(text, aws)
    if kind is Reading.REFERENCE:
        return parse_reference_path(text, aws)
    if kind is Reading.RESULT:
        return parse_result_path(text, expression.rule, aws)
    if kind is Reading.TEXT and is_path(text, aws):
        return parse_reference_path(text, aws)
    return parse_expression(text, aws)
