"""Literal strings that look like expressions: V-ST-11, V-ST-12, V-PASS-02.

They are not evaluated (Specification 3.4, 3.6); AWS warns about most of them too.
"""

import re
from collections.abc import Iterator
from typing import Final

from asl.checks.jsonata_expressions import state_strings
from asl.checks.query_languages import is_jsonata
from asl.checks.structure import computed_form, verbatim
from asl.checks.workflow import CheckedWorkflow, objects
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape, tokens
from asl.core.values import Json, compact
from asl.expr.choice_rules import OPERATORS
from asl.expr.templates import SUFFIX, Insertion, parse_expression, parse_text
from asl.states import UNKNOWN, type_of
from asl.states.base import Node, StateType
from asl.states.blocks import BLOCKS
from asl.states.fields import FieldIndex, Reading, Steps

__all__ = ["check"]

_PATH = lazy_pattern(r"\$\$?(?:\.[^\W\d]|\[|$)")
_CALL = lazy_pattern(r"States\.[A-Z]\w*\(.*\)", re.DOTALL)
_INSERTION = lazy_pattern(r"\{\{\s*\$")
_VARIABLE = lazy_pattern(r"\$states\.(?:input|result|context|errorOutput)\b")
_TEMPLATES: Final = FieldIndex(lambda field: field.jsonpath is Reading.TEMPLATE)
"""The payload templates."""
_STRUCTURED: Final = FieldIndex(
    lambda field: (
        field.jsonata == "template"
        and field.language is None
        and field.jsonpath is not Reading.TEMPLATE
    ),
    outermost=True,
)
"""The fields of agents; most of their parts have a computed form."""
_LITERALS: Final = FieldIndex(lambda field: field.jsonpath is Reading.LITERAL)
NO_JSONATA = "JSONata is evaluated in JSONata states only, so this stays text"
OTHER_LANGUAGE = 'set "QueryLanguage": "JSONata" on the state'


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield the literals that their author may have taken for expressions."""
    for node in workflow.nodes():
        jsonata = node.query_language == "JSONata"
        found = _in_jsonata(workflow, node) if jsonata else _in_jsonpath(node)
        yield from (finding for finding in found if not node.open(finding.message))


def _looks_dynamic(text: str) -> bool:
    return bool(_PATH.match(text) or _CALL.fullmatch(text))


# --------------------------------------------------------------------------------------------
# JSONPath


def _in_jsonpath(node: Node) -> Iterator[Finding]:
    kind = type_of(node.value)
    for _, steps, value in _TEMPLATES.of(node.value):
        if type(value) is str and kind is not UNKNOWN:
            yield from _of_agents(node, steps, value)
        else:
            yield from _template(value, node.at(*steps))
    for _, steps, value in _LITERALS.of(node.value):
        yield from _literal(value, node.at(*steps), str(steps[-1]))
    if kind is not UNKNOWN:
        for _, steps, value in _STRUCTURED.of(node.value):
            yield from _of_agents(node, steps, value)
    yield from _fields(node)


def _template(template: Json, pointer: str) -> Iterator[Finding]:
    for place, key, text in _literals(template, pointer):
        if is_jsonata(text):
            yield Finding(
                "V-ST-11",
                NO_JSONATA,
                place,
                OTHER_LANGUAGE,
                aws=Wording(code=""),
            )
        elif key is not None and _looks_dynamic(text):
            yield Finding(
                "V-ST-11",
                f"{text!r} stays text, because its key does not end in {SUFFIX!r}",
                place,
                f'write "{key}{SUFFIX}": {compact(text)}',
            )
        elif key is not None and (expression := _inserted(text)) is not None:
            yield Finding(
                "V-ST-11",
                "nothing is inserted between '{{' and '}}' here, so this stays text",
                place,
                f'write "{key}{SUFFIX}": {compact(expression)}',
                aws=Wording(code=""),
            )


def _literals(
    template: Json, pointer: str, key: str | None = None
) -> Iterator[tuple[str, str | None, str]]:
    """Yield `(pointer, key, text)` of every text that is not evaluated; no key in arrays."""
    if type(template) is str:
        yield pointer, key, template
    elif type(template) is dict:
        for name, part in template.items():
            if not name.endswith(SUFFIX):
                yield from _literals(part, f"{pointer}/{escape(name)}", name)
    elif type(template) is list:
        for index, part in enumerate(template):
            yield from _literals(part, f"{pointer}/{index}")


def _literal(value: Json, pointer: str, field: str) -> Iterator[Finding]:
    for place, _, text in _literals(value, pointer):
        if _looks_dynamic(text):
            message = f"{field!r} is a literal, so {text!r} stays text"
            yield Finding("V-PASS-02", message, place, "use 'Parameters'")
    for place, key in _computed(value, pointer):
        message = f"{field!r} is a literal, and so is its key {key!r}"
        yield Finding("V-PASS-02", message, place, "use 'Parameters'", aws=Wording(code=""))


def _computed(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield `(pointer, key)` of what a payload template would compute."""
    if type(value) is dict or type(value) is list:
        for key, part in value.items() if type(value) is dict else enumerate(value):
            place = f"{pointer}/{escape(str(key))}"
            if type(part) is str and str(key).endswith(SUFFIX) and _looks_dynamic(part):
                yield place, str(key)
            yield from _computed(part, place)


def _fields(node: Node) -> Iterator[Finding]:
    for field in ("Error", "Cause") if node.value.get("Type") == "Fail" else ():
        yield from _plain(node.value.get(field), node.at(field), field)
    for index, rule in objects(node.value, "Choices"):
        for field, value in rule.items():
            if field in OPERATORS and f"{field}Path" in OPERATORS:
                yield from _plain(value, node.at("Choices", index, field), field)


def _plain(value: Json, pointer: str, field: str) -> Iterator[Finding]:
    if type(value) is str and _looks_dynamic(value):
        message = f"{field!r} is a literal, so {value!r} stays text"
        yield Finding("V-ST-12", message, pointer, f"use '{field}Path' for what it leads to")


# --------------------------------------------------------------------------------------------
# The fields of agents


def _of_agents(node: Node, way: Steps, value: Json) -> Iterator[Finding]:
    kind = type_of(node.value)
    schema = f"states:{kind.name}"
    for place, _, text in _literals(value, node.at(*way), str(way[-1])):
        steps = [*tokens(place.removeprefix(node.pointer))]
        expression = _meant(text, _inserts(kind, steps))
        if is_jsonata(text):
            yield Finding("V-ST-11", NO_JSONATA, place, OTHER_LANGUAGE, aws=Wording(code=""))
        elif expression is not None and not verbatim(schema, steps):
            message = f"{text!r} stays text, because no field here computes it"
            hint = _cure(schema, steps, expression)
            yield Finding("V-ST-11", message, place, hint, aws=Wording(code=""))


def _inserts(kind: StateType, steps: list[str]) -> bool:
    """Whether braces insert values into a text."""
    return any(tuple(steps[: len(way)]) == way for way in kind.insertions)


def _meant(text: str, inserts: bool) -> str | None:
    """Return the expression that a text seems to be, None for an ordinary one."""
    if not _looks_dynamic(text):
        return None if inserts else _inserted(text)
    try:
        parse_expression(text)
    except ExpressionFault:
        return None
    return text


def _inserted(text: str) -> str | None:
    """Return what would insert values into a text between `{{` and `}}`, None without any."""
    if not _INSERTION.search(text):
        return None
    try:
        parts = parse_text(text)
    except ExpressionFault:
        return None
    expressions = [part.text for part in parts if isinstance(part, Insertion)]
    if len(parts) == 1:
        return expressions[0]
    form = "".join(_escaped(part) if isinstance(part, str) else "{}" for part in parts)
    return f"States.Format('{form}', {', '.join(expressions)})"


def _escaped(text: str) -> str:
    return re.sub(r"([\\'{}])", r"\\\1", text)


def _cure(schema: str, steps: list[str], expression: str) -> str | None:
    """Return the hint at what computes the text at the end of a way."""
    way = [*steps]
    while way[-1].isdigit():
        way.pop()
    if way != steps:
        expression = f"States.Array({expression})"
    if way == ["Memory", "Read"]:
        form = computed_form(schema, [*way, "Keys"], expression)
        return f'write "Read": {{{form}}}'
    block = BLOCKS.get(way[0])
    if block is not None and f"{'/'.join(way[1:])}{SUFFIX}" in block.lacks:
        return None
    form = computed_form(schema, way, expression)
    return None if form is None else f"write {form}"


# --------------------------------------------------------------------------------------------
# JSONata


def _in_jsonata(workflow: CheckedWorkflow, node: Node) -> Iterator[Finding]:
    for written in state_strings(workflow, node):
        if written.source is None and (
            _VARIABLE.match(written.text)
            or (_looks_dynamic(written.text) and not _is_path(node, written.pointer))
        ):
            yield Finding(
                "V-ST-11",
                f"{written.text!r} stays text, because it is not between {{% and %}}",
                written.pointer,
                f'write "{{% {written.text} %}}"'
                if _VARIABLE.match(written.text)
                else "JSONPath has no meaning in a JSONata state",
                aws=Wording(code=""),
            )


def _is_path(node: Node, pointer: str) -> bool:
    """Whether a field takes paths in either language."""
    kind, steps = type_of(node.value), tokens(pointer.removeprefix(node.pointer))
    return kind is not UNKNOWN and verbatim(f"states:{kind.name}", steps)
