"""The JSON Schemas that describe a place in a document."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from asl.core.lazy import lazy_pattern
from asl.core.values import Json
from asl.dialects.registry import find
from asl.editor.syntax import Step
from asl.states import STATE_TYPES
from asl.states.schemas import URN, Schema, resolve_schema

__all__ = ["FieldDescription", "describe_fields", "describe_value"]

_STATE: Final = f"{URN}State"
_AGENT: Final = f"{URN}agents:Agent"
_AGENT_KINDS: Final = ("Function", "Process", "Http", "Model", "Mcp", "Script")
_COMPOSING: Final = ("allOf", "anyOf", "oneOf")
_SUFFIX: Final = lazy_pattern(r"\.\$$")


class FieldDescription(NamedTuple):
    """What the schemas say of a value at a place."""

    title: str
    text: str
    notes: Mapping[str, Any]
    """The keywords of its schema, those of a referenced one included."""
    is_required: bool = False

    @property
    def choices(self) -> list[Json]:
        """The values that it may have, if there are only some."""
        found = self.notes.get("enum", [self.notes["const"]] if "const" in self.notes else [])
        return [*found] or ([True, False] if self.notes.get("type") == "boolean" else [])

    def markdown(self, name: str) -> str:
        """Return the description for people."""
        lines = [f"**{name}**", self.text]
        if self.choices:
            lines.append("One of " + ", ".join(f"`{each}`" for each in self.choices) + ".")
        if self.notes.get("x-native"):
            lines.append("*Amazon States Language does not have it.*")
        return "\n\n".join(filter(None, lines))


def describe_fields(kind: str, value: Json, steps: Sequence[Step]) -> dict[str, FieldDescription]:
    """Return the fields of the object at a place, by name.

    Args:
        kind: The language of the document: `asl`, `agents` or the name of a dialect.
        value: The value of the document.
        steps: The steps to the object.
    """
    found: dict[str, FieldDescription] = {}
    for view in _views_at(kind, value, steps):
        required = view.schema.get("required")
        for name, schema in view.schema.get("properties", {}).items():
            if name not in found and isinstance(schema, dict):  # not the schema true
                found[name] = _description(view.root, schema, name in _names(required))
    return found


def _names(required: Json) -> list[Json]:
    return required if isinstance(required, list) else []


def describe_value(kind: str, value: Json, steps: Sequence[Step]) -> FieldDescription | None:
    """Return what the schemas say of the value at a place; None if they do not know it."""
    if steps and type(steps[-1]) is str:
        fields = describe_fields(kind, value, steps[:-1])
        name = str(steps[-1])
        known = fields.get(name) or fields.get(_SUFFIX.sub("", name))
        if known is not None:
            return known
    for view in _views_at(kind, value, steps):
        return _description(view.root, view.schema, False)
    return None


class _View(NamedTuple):
    """A schema, the value that it describes, and the schema that its references lead into."""

    schema: Schema
    value: Json
    root: Schema


def _views_at(kind: str, value: Json, steps: Sequence[Step]) -> list[_View]:
    root = _root_schema(kind)
    views = [] if root is None else [*_expand(root, value, root, 0)]
    for step in steps:
        views = [inner for view in views for inner in _step(view, step)]
    return views


def _root_schema(kind: str) -> Schema | None:
    if kind in ("asl", "agents"):
        return resolve_schema(URN + kind)
    dialect = find(kind)
    return None if dialect is None else dialect.json_schema()


def _step(view: _View, step: Step) -> Iterator[_View]:
    """Yield the views of a member."""
    schema, value, root = view
    inner: Json = None
    if type(step) is int:
        member = schema.get("items")
        if type(value) is list and step < len(value):
            inner = value[step]
    else:
        more = schema.get("additionalProperties")
        member = schema.get("properties", {}).get(step, more if isinstance(more, dict) else None)
        inner = value.get(step) if type(value) is dict else None
    if isinstance(member, dict):
        yield from _expand(member, inner, root, 0)


def _expand(schema: Schema, value: Json, root: Schema, depth: int) -> Iterator[_View]:
    """Yield a schema and those that it is composed of."""
    if depth > 12:
        return
    reference = schema.get("$ref")
    if reference == _STATE:
        kind = value.get("Type") if type(value) is dict else None
        yield _View(_state_schema(kind), value, root)
        return
    if reference == _AGENT:
        for name in _AGENT_KINDS:
            yield _View(resolve_schema(f"{URN}agents:{name}"), value, root)
        return
    if reference is not None:
        own = {keyword: each for keyword, each in schema.items() if keyword != "$ref"}
        schema = {**_resolve(reference, root), **own}
    yield _View(schema, value, root)
    parts = [each for keyword in _COMPOSING for each in schema.get(keyword, ())]
    parts += [schema[keyword] for keyword in ("then", "else") if keyword in schema]
    for part in parts:
        if isinstance(part, dict):
            yield from _expand(part, value, root, depth + 1)


def _state_schema(kind: Json) -> Schema:
    """Return the schema of a state; of one without a known type, its type alone."""
    if type(kind) is str and kind in STATE_TYPES:
        return resolve_schema(f"{URN}states:{kind}")
    text = "What the state does."
    types = {"title": "State type", "description": text, "enum": [*STATE_TYPES]}
    return {"properties": {"Type": types}, "required": ["Type"]}


def _resolve(reference: str, root: Schema) -> Schema:
    if not reference.startswith("#"):
        return resolve_schema(reference)
    node: Any = root
    for step in filter(None, reference[1:].split("/")):
        node = node.get(step.replace("~1", "/").replace("~0", "~"), {})
    found: Schema = node
    return found


def _description(root: Schema, schema: Schema, is_required: bool) -> FieldDescription:
    notes = schema
    if "$ref" in schema and schema["$ref"] not in (_STATE, _AGENT):
        notes = {**_resolve(schema["$ref"], root), **schema}
    return FieldDescription(
        notes.get("title", ""), notes.get("description", ""), notes, is_required
    )
