"""The shape of a document: every object against its JSON Schema (`schemas/README.md`).

The document and each state are validated one at a time, so a fault is reported once; so are an
agents file and each agent in it. Which rule a failure breaks is read off the annotations of the
schemas.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from asl.checks import suggestions
from asl.checks.schema_messages import (
    abbreviate,
    aws_wording,
    complaint_of,
    expected_types,
    with_article,
)
from asl.checks.schema_predicates import Accepts, compile_schema
from asl.checks.workflow import CheckedWorkflow
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Suggestions, Wording
from asl.core.pointers import escape
from asl.core.schemas import jsonschema
from asl.core.values import Json, Opaque, compact, type_name
from asl.expr.templates import SUFFIX
from asl.states import STATE_TYPES, UNKNOWN, type_of
from asl.states.base import has_parameter
from asl.states.blocks import BLOCKS
from asl.states.fields import ANNOTATIONS, FieldIndex, Reading
from asl.states.schemas import URN, Schema, known_fields, resolve_schema

__all__ = [
    "computed_form",
    "declares",
    "shape",
    "structure",
    "verbatim",
]


def structure(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what the schemas have against the document and against each of its states."""
    near = workflow.suggestions
    for scope in workflow.scopes:
        if scope.is_included or not scope.pointer:
            jsonata = scope.value.get("QueryLanguage") == "JSONata"
            whole = {**scope.value, **workflow.included_fields.get(scope.pointer, {})}
            is_open = _undeclared(_open(scope.unfilled, jsonata, BLOCKS))
            yield from shape("asl", whole, scope.pointer, near, is_open, jsonata)
    for node in workflow.nodes():
        kind = node.value.get("Type")
        if type(kind) is str and kind in STATE_TYPES:
            jsonata = node.query_language == "JSONata"
            computed = _COMPUTED.fields(type_of(node.value))
            is_open = _open(node.unfilled, jsonata, computed)
            yield from shape(f"states:{kind}", node.value, node.pointer, near, is_open, jsonata)
        elif not node.open(kind):
            yield _unknown_type(workflow, node.value, node.pointer)


_Open: TypeAlias = Callable[[Any], bool]
"""Whether a failure is that of a value which is not known yet."""


def _never(error: Any) -> bool:
    return False


def _undeclared(is_open: _Open) -> _Open:
    """Return the same, but for the declarations of parameters, which none of these fills in."""
    return lambda error: "Parameters" not in list(error.absolute_path)[:1] and is_open(error)


def _open(unfilled: bool, jsonata: bool, computed: Container[str]) -> _Open:
    """Return what recognises the failures of placeholders, and of queries in JSONata.

    Args:
        unfilled: Whether parameters of a template have no values yet.
        jsonata: Whether the object is written in JSONata.
        computed: The fields with queries in any part.
    """

    def is_open(error: Any) -> bool:
        text = error.instance
        if type(text) is not str:
            return type(text) is Opaque
        return (unfilled and has_parameter(text)) or (jsonata and _is_query(text, error, computed))

    return is_open


_COMPUTED = FieldIndex(
    lambda field: len(field.place) == 1 and field.jsonata == "template" and field.language is None
)


def _is_query(text: str, error: Any, computed: Container[str]) -> bool:
    steps = error.absolute_path
    if not (text.startswith("{%") and text.endswith("%}") and steps and steps[0] in computed):
        return False
    return error.validator != "type" or not {*expected_types(error)} <= {"array", "object"}


def _unknown_type(workflow: CheckedWorkflow, state: Mapping[str, Json], pointer: str) -> Finding:
    if "Type" not in state:
        wording = Wording("The field 'Type' is required")
        hint = workflow.suggestions.misspelt("Type", [*state.keys() - _state_fields()])
        return Finding("V-ST-01", "'Type' is missing", pointer, hint, at_key=True, aws=wording)
    kind = state["Type"]
    if type(kind) is not str:
        message = f"'Type' must be a string, not {with_article(type_name(kind))}"
        return Finding("V-ST-01", message, f"{pointer}/Type")
    return Finding(
        "V-ST-01",
        f"there is no state type {kind!r}",
        f"{pointer}/Type",
        workflow.suggestions.near(kind, STATE_TYPES) or f"one of {', '.join(STATE_TYPES)}",
        aws=Wording(f"The field 'Type' should have one of these values: [{_OF_AWS}]"),
    )


_OF_AWS = "Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map"


# --------------------------------------------------------------------------------------------
# Schemas. References are replaced by what they lead to when a schema is first used: that makes
# validating twice as fast, and nothing can ever be fetched.

_ASIDE = frozenset(
    {
        "title",
        "description",
        "$id",
        "$schema",
        "$defs",
        "$ref",
        "x-rule",
        "x-inert",
        "x-native",
        "x-decides",
        *ANNOTATIONS,
    }
)
"""The keywords without effect on whether a value is right."""
_MAPS = ("properties", "patternProperties")
_LISTS = ("allOf", "anyOf")


class _Inliner:
    """Merges schemas with the targets of their references; `x-rules` keeps each keyword's rule."""

    def __init__(self) -> None:
        self.resolved: dict[tuple[str, str], dict[str, Any]] = {}

    def resolve(self, reference: str, rule: str = "") -> Schema:
        """Return the schema of a reference, without any in it; *rule* is that of its holder."""
        known = self.resolved.get((reference, rule))
        if known is None:
            # Choice rules lead back to themselves, so the entry comes before its content.
            known = self.resolved[reference, rule] = {}
            known.update(self.merge(resolve_schema(reference), rule))
        return known

    def merge(self, schema: Any, rule: str) -> Any:
        if not isinstance(schema, dict):
            return schema
        rule = schema.get("x-rule", rule)
        own = {keyword: value for keyword, value in schema.items() if keyword not in _ASIDE}
        target = self.resolve(schema["$ref"], rule) if "$ref" in schema else {}
        if "$ref" in schema and not own:
            return target
        parts = {keyword: self.children(keyword, value, rule) for keyword, value in own.items()}
        rules = {**target.get("x-rules", {}), **dict.fromkeys(own, rule)}
        return {**target, **parts, "x-rules": rules}

    def children(self, keyword: str, value: Any, rule: str) -> Any:
        if keyword in _MAPS:
            return {name: self.merge(schema, rule) for name, schema in value.items()}
        if keyword in _LISTS:
            return [self.merge(schema, rule) for schema in value]
        return value if keyword.startswith("x-") else self.merge(value, rule)


@cache
def _schema(name: str) -> Schema:
    return _Inliner().resolve(URN + name)


@cache
def _accepts(name: str) -> Accepts:
    return compile_schema(_schema(name))


@cache
def _validator(name: str) -> Any:
    return jsonschema().Draft202012Validator(_schema(name))


def declares(name: str, field: str) -> bool:
    """Whether a schema names a field, or has a pattern for names such as this."""
    return suggestions.declares(resolve_schema(URN + name), field)


def verbatim(name: str, steps: Iterable[str]) -> bool:
    """Whether `$` has a meaning of its own at the end of a way: that of a path or of a pattern."""
    return any("x-dollar" in schema for part in _along(name, steps) for schema in part)


def computed_form(name: str, steps: Sequence[str], expression: str) -> str | None:
    """Return what to write for the field at the end of a way to compute it; None if nothing can.

    That is the field with `.$` at its end, or a template with computed members.
    """
    *_, around, schemas = _along(name, steps)
    field, value = steps[-1], compact(expression)
    forms = [form for schema in around for form in _forms(schema) if "properties" in form]
    if not forms or any(suggestions.declares(form, f"{field}.$") for form in forms):
        return f'"{field}{SUFFIX}": {value}'
    whole = [form for schema in schemas for form in _forms(schema)]
    if steps[0] in _templates(name) and not any("properties" in form for form in whole):
        return f'"{field}": {{"name{SUFFIX}": {value}}}'
    return None


_TEMPLATES = FieldIndex(
    lambda field: len(field.place) == 1 and field.jsonpath in (Reading.TEMPLATE, Reading.BLOCK)
)


def _templates(name: str) -> Container[str]:
    """Return the fields in which members may be computed; those of all types for a document."""
    return _TEMPLATES.fields(STATE_TYPES.get(name.removeprefix("states:"), UNKNOWN))


def _along(name: str, steps: Iterable[str]) -> Iterator[list[Schema]]:
    """Yield the schemas of a whole and of each part on a way into it."""
    found = [_schema(name)]
    yield found
    for step in steps:
        found = [part for schema in found for part in _parts(schema, step)]
        yield found


def _forms(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and those that hold for a value of one kind."""
    yield from (schema, *(schema[each] for each in ("then", "else") if each in schema))


def _parts(schema: Schema, step: str) -> Iterator[Schema]:
    """Yield the schemas of a member: a field, or the item of a list."""
    for form in _forms(schema):
        named, others = form.get("properties", {}), form.get("additionalProperties")
        if step in named:
            yield named[step]
        elif isinstance(others, dict):
            yield others
        elif step.isdigit() and "items" in form:
            yield form["items"]


def _state_fields() -> frozenset[str]:
    return frozenset().union(*(known_fields(f"states:{kind}") for kind in STATE_TYPES))


# --------------------------------------------------------------------------------------------
# From failures to findings


class _Whole(NamedTuple):
    """What is held against a schema."""

    name: str
    """The schema: `states:Task`."""
    pointer: str
    suggestions: Suggestions
    jsonata: bool
    """Whether it is written in JSONata."""


def shape(
    name: str,
    value: Json,
    pointer: str,
    suggestions: Suggestions,
    is_open: _Open = _never,
    jsonata: bool = False,
) -> Iterator[Finding]:
    """Yield what the schema of this name has against a value, each thing once.

    *pointer* is the place of the value. Failures accepted by *is_open* are skipped.
    """
    if _accepts(name)(value):
        return
    errors = list(_validator(name).iter_errors(value))
    missing = _missing(errors)
    whole = _Whole(name, pointer, suggestions, jsonata)
    told: dict[tuple[str, str, str], Finding] = {}
    for error in errors:
        if not is_open(error):  # several keywords may say the same of a value
            for each in _findings(whole, error, missing):
                told.setdefault((each.code, each.message, each.pointer), each)
    yield from told.values()


_Missing: TypeAlias = Mapping[tuple[str | int, ...], set[str]]


def _missing(errors: list[Any]) -> _Missing:
    """Gather the fields that each object lacks, whichever keywords demand them."""
    missing: dict[tuple[str | int, ...], set[str]] = {}
    for error in errors:
        if error.validator == "required":
            fields = missing.setdefault(tuple(error.absolute_path), set())
            fields.update(set(error.validator_value).difference(error.instance))
    return missing


def _findings(whole: _Whole, error: Any, missing: _Missing) -> Iterator[Finding]:
    steps = tuple(error.absolute_path)
    pointer = whole.pointer + "".join(f"/{escape(str(step))}" for step in steps)
    rule = _rule(whole.name, error)
    if error.validator == "additionalProperties":
        yield from _unknown_fields(whole, error, steps, pointer)
    elif error.validator == "required":
        rules = error.schema.get("x-required", {})
        wording = Wording(aws_messages.required_fields(missing[steps]))
        for field in error.validator_value:
            if field not in error.instance:
                code = rules.get(field, rule)
                message = f"{field!r} is missing"
                hint = _misspelt(whole, field, error) or _start(field, error.instance)
                yield Finding(code, message, pointer, hint, at_key=True, aws=wording)
    elif "propertyNames" in error.absolute_schema_path:
        complaint, shown = complaint_of(error, whole.jsonata), abbreviate(error.instance)
        message = f"the name {'' if complaint.endswith(shown) else f'{shown} '}{complaint}"
        place, hint = f"{pointer}/{escape(error.instance)}", _meant(whole, error)
        yield Finding(rule, message, place, hint, at_key=True)
    else:
        subject, complaint = _subject(steps, _called(whole)), complaint_of(error, whole.jsonata)
        separator = ": " if complaint.startswith("a ") else " "
        message = f"{subject}{separator}{complaint}"
        yield Finding(rule, message, pointer, _meant(whole, error), aws=aws_wording(error, pointer))


def _start(field: str, machine: Mapping[str, Json]) -> str | None:
    """Return the hint at the state with which a machine would begin as it is written."""
    states = machine.get("States")
    if field != "StartAt" or type(states) is not dict or not states:
        return None
    return f'add "StartAt": {compact(next(iter(states)))}'


def _misspelt(whole: _Whole, field: str, error: Any) -> str | None:
    """Return the hint at the field that is written in place of a missing one."""
    *_, schemas = _along(whole.name, map(str, error.absolute_path))
    forms = [error.schema, *(form for schema in schemas for form in _forms(schema))]
    others = [
        each
        for each in error.instance
        if not any(suggestions.declares(form, each) for form in forms)
    ]
    return whole.suggestions.misspelt(field, others)


def _meant(whole: _Whole, error: Any) -> str | None:
    """Return the hint at the value that is probably meant."""
    path = list(error.absolute_schema_path)
    last = max((at for at, step in enumerate(path) if step == "properties"), default=0)
    *_, holder = _nodes(whole.name, path[:last])
    return suggestions.value_hint(error, holder, whole.suggestions, whole.jsonata)


def _rule(name: str, error: Any) -> str:
    """Return the rule that a failure breaks: the nearest one around the failing keyword."""
    rule = ""
    steps = error.absolute_schema_path
    for node, step in zip(_nodes(name, steps), steps, strict=False):
        if isinstance(node, dict):
            rule = node.get("x-rules", {}).get(step, rule)
    return rule


def _nodes(name: str, steps: Iterable[Any]) -> Iterator[Any]:
    """Yield the schemas along the steps of a path, beginning with the schema itself."""
    node: Any = _schema(name)
    yield node
    for step in steps:
        node = node[step]
        yield node


def _unknown_fields(
    whole: _Whole, error: Any, steps: tuple[str | int, ...], pointer: str
) -> Iterator[Finding]:
    schema: Schema = error.schema
    known: Mapping[str, Schema] = schema.get("properties", {})
    rules: Mapping[str, str] = schema.get("x-unknown", {})
    kind = None if steps else whole.name.partition(":")[0]
    for field in (each for each in error.instance if not suggestions.declares(schema, each)):
        place = f"{pointer}/{escape(field)}"
        wording = Wording(aws_messages.unknown_field(field), at=pointer)
        elsewhere = kind == "states" and field in _state_fields()
        plain = field.removesuffix(SUFFIX)
        if plain in known and not elsewhere and not whole.name.startswith("agents"):
            code = rules.get(field) or rules.get("*", "V-TOP-09")
            message = f"{plain!r} cannot be computed as a whole, so it has no effect"
            way = (*map(str, steps), plain)
            hint = _computing(whole.name, way, known, error.instance[field])
        elif field in rules or elsewhere:
            code, message = rules.get(field, "V-ST-06"), _misplaced(field, whole.name)
            hint = suggestions.renamed_field_hint(field, schema, whole.jsonata)
        else:
            of_branch = len(steps) == 2 and steps[0] == "Branches"
            code = rules.get("*", "V-PAR-03" if of_branch else "V-TOP-09")
            noun = "comparison operator" if code == "V-CHOICE-09" else "field"
            message = f"there is no {noun} {field!r} here"
            if kind == "asl" and field in _state_fields():
                hint = (
                    suggestions.renamed_field_hint(field, schema)
                    or "it is a field of states: write it there"
                )
            else:
                around = [*_along(whole.name, map(str, steps))][-2] if steps else ()
                hint = suggestions.field_hint(
                    field, schema, whole.suggestions, around, whole.jsonata
                )
        yield Finding(code, message, place, hint, at_key=True, aws=wording)


def _computing(
    name: str, way: Sequence[str], known: Mapping[str, Schema], expression: Json
) -> str | None:
    """Return the hint at what computes a field that has no form with `.$` at its end."""
    field = way[-1]
    if f"{field}Path" in known:
        return f"use {f'{field}Path'!r}"
    form = computed_form(name, way, expression) if type(expression) is str else None
    if form is not None:
        return f"write {form}"
    whole = field in _templates(name) or field in BLOCKS or _has_fields(name, way)
    return f"write {field!r}; its fields may be computed" if whole else None


def _has_fields(name: str, way: Sequence[str]) -> bool:
    """Whether a field of a template holds an object of the language."""
    *_, schemas = _along(name, way)
    forms = [form for schema in schemas for form in _forms(schema)]
    return way[0] in _templates(name) and any("properties" in form for form in forms)


def _misplaced(field: str, name: str) -> str:
    kind = name.removeprefix("states:")
    article = "an" if kind[0] in "AEIOU" else "a"
    return f"{article} {kind} state has no {field!r}"


def _called(whole: _Whole) -> str:
    if whole.name.startswith("agents"):
        return "the agent" if whole.pointer else "an agents file"
    return "the state" if whole.pointer else "the document"


def _subject(steps: tuple[str | int, ...], whole: str) -> str:
    """Name the faulty value as a reader would: `'End'`, `item 2 of 'Branches'`."""
    words: list[str] = []
    for step in reversed(steps):
        if type(step) is str:
            return " of ".join([*words, repr(step)])
        words.append(f"item {int(step) + 1}")
    return " of ".join([*words, whole])
