"""Completion: fields, values, and what may follow in an expression."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    MarkupContent,
    MarkupKind,
    TextEdit,
)

from asl.checks.handlers import ERROR_NAMES
from asl.checks.workflow import MachineScope
from asl.core.values import Json
from asl.editor.edited import Cursor, Definition, EditedDocument, TextVersion
from asl.editor.expressions import Data, Proposal, expression_proposals
from asl.editor.field_schemas import FieldDescription, describe_fields, describe_value
from asl.editor.navigation import quote_like
from asl.editor.project import ProjectNames
from asl.editor.shapes import input_shape, variable_shapes
from asl.editor.states import named_states
from asl.editor.syntax import Step, SyntaxPart
from asl.expr.query_protocol import DELIMITERS
from asl.expr.templates import SUFFIX
from asl.states.base import Node

__all__ = ["TARGET_RULES", "completion_items", "expression_data"]

TARGET_RULES: Final = frozenset(("V-ST-03", "V-CATCH-03", "V-TOP-02"))
"""The rules of fields that name a state of the same machine."""
_KINDS: Final = {
    "function": CompletionItemKind.Function,
    "variable": CompletionItemKind.Variable,
    "member": CompletionItemKind.Property,
}


class _Place(NamedTuple):
    """Where something is completed, and what is known around it."""

    document: EditedDocument
    cursor: Cursor
    offset: int
    definition: Definition
    steps: tuple[Step, ...]
    """The steps from the definition."""

    @property
    def version(self) -> TextVersion:
        return self.document.current


def completion_items(
    document: EditedDocument, offset: int, project: ProjectNames
) -> list[CompletionItem]:
    """Return what may be written at an offset."""
    version = document.current
    cursor = version.cursor(offset)
    definition = version.definition_at(cursor.steps)
    place = _Place(document, cursor, offset, definition, cursor.steps[len(definition.steps) :])
    if cursor.at_key:
        return [*_keys(place)]
    return [*_values(place, project)]


# --------------------------------------------------------------------------------------------
# Keys


def _keys(place: _Place) -> Iterator[CompletionItem]:
    """Yield the fields of the object at the cursor that it does not have."""
    around = place.steps[:-1]
    part = place.definition.root.find(around)
    present = set() if part is None else {step for step, _ in (part.embedded or part).steps()}
    present.discard(place.cursor.typed)
    language = _language(place)
    fields = describe_fields(place.document.kind, place.definition.value, around)
    for name, description in fields.items():
        if name in present or description.notes.get("x-language", language) != language:
            continue
        yield CompletionItem(
            name,
            kind=CompletionItemKind.Field,
            detail=description.title or None,
            documentation=_markdown(description.markdown(name)),
            sort_text=f"{0 if description.is_required else 1}{name}",
            filter_text=_written(place, name),
            text_edit=_edit(place, name, is_key=True),
        )


def _language(place: _Place) -> str:
    """Return the query language at the cursor."""
    found = place.version.scope_at(place.cursor.steps)
    if found is not None and found[2] is not None:
        return found[2].query_language
    value = place.definition.value
    own = value.get("QueryLanguage") if type(value) is dict else None
    return own if type(own) is str else "JSONPath"


# --------------------------------------------------------------------------------------------
# Values


def _values(place: _Place, project: ProjectNames) -> Iterator[CompletionItem]:
    notes = describe_value(place.document.kind, place.definition.value, place.steps)
    if notes is not None:
        yield from _named_values(place, notes, project)
    if place.document.kind == "asl":
        yield from _expression(place, notes)


def _named_values(
    place: _Place, notes: FieldDescription, project: ProjectNames
) -> Iterator[CompletionItem]:
    keywords = notes.notes
    name = place.steps[-1] if place.steps else ""
    if keywords.get("x-rule") in TARGET_RULES or "x-state" in keywords:
        yield from _items(place, _state_names(place), CompletionItemKind.Reference, "state")
    for choice in notes.choices:
        yield CompletionItem(
            str(choice) if type(choice) is str else json.dumps(choice),
            kind=CompletionItemKind.EnumMember,
            text_edit=_edit(place, choice),
        )
    if "x-agent" in keywords or "x-checker" in keywords:
        agents = project.agents or ()
        yield from _items(place, agents, CompletionItemKind.Function, "agent")
    if keywords.get("x-rule") == "V-TASK-02":
        resources = (each for each in project.resources or () if "*" not in each)
        yield from _items(place, resources, CompletionItemKind.Function, "resource")
    if name == "WorkflowId":
        yield from _items(place, project.workflows, CompletionItemKind.Module, "workflow")
    if "ErrorEquals" in place.steps[-2:]:
        yield from _items(place, sorted(ERROR_NAMES), CompletionItemKind.Constant, "error")


def _state_names(place: _Place) -> Iterable[str]:
    """Return the names of the states of the machine, also those of the last complete text."""
    if place.document.kind != "asl":
        known = dict.fromkeys(each.name for each in named_states(place.document))
        return [name for name in known if name != place.cursor.typed]
    names: dict[str, None] = {}
    own: Json = None
    versions = [place.version]
    if not place.version.tree.is_complete:
        versions.append(place.document.complete)
    for version in versions:
        found = version.scope_at(place.cursor.steps)
        if found is not None:
            scope, node = found[1], found[2]
            states = scope.value.get("States")
            names |= dict.fromkeys(states if type(states) is dict else ())
            own = node.name if node is not None else own
    return [name for name in names if name and name != own]


def _items(
    place: _Place, names: Iterable[str], kind: CompletionItemKind, detail: str
) -> Iterator[CompletionItem]:
    for name in names:
        yield CompletionItem(
            name,
            kind=kind,
            detail=detail,
            filter_text=_written(place, name),
            text_edit=_edit(place, name),
        )


# --------------------------------------------------------------------------------------------
# Expressions


def _expression(place: _Place, notes: FieldDescription | None) -> Iterator[CompletionItem]:
    typed = place.cursor.typed
    found = place.version.scope_at(place.cursor.steps)
    if found is None or found[2] is None:
        return
    scope, node = found[1], found[2]
    is_jsonata = typed.startswith(DELIMITERS[0])
    if not is_jsonata and not _is_path(place.steps, node, notes):
        return
    for proposal in expression_proposals(typed, is_jsonata, expression_data(scope, node)):
        yield _proposed(place, proposal)


def _is_path(steps: tuple[Step, ...], node: Node, notes: FieldDescription | None) -> bool:
    """Return whether JSONPath reads a value as a path or an intrinsic function."""
    if node.query_language != "JSONPath":
        return False
    if str(steps[-1]).endswith(SUFFIX):
        return True
    kind = None if notes is None else notes.notes.get("x-jsonpath", notes.notes.get("x-dollar"))
    return kind in ("path", "reference path", "expression", "error text") or (
        notes is not None and notes.title.endswith("Path")
    )


def expression_data(scope: MachineScope, node: Node) -> Data:
    """Return what the expressions of a state can read."""
    return Data(variable_shapes(scope), input_shape(scope, node))


def _proposed(place: _Place, proposal: Proposal) -> CompletionItem:
    start = place.offset - proposal.replaces
    return CompletionItem(
        proposal.word,
        kind=_KINDS[proposal.kind],
        detail=proposal.detail or None,
        documentation=_markdown(proposal.text) if proposal.text else None,
        filter_text=proposal.word,
        text_edit=TextEdit(place.version.index.range(start, place.offset), proposal.word),
    )


# --------------------------------------------------------------------------------------------
# Edits


def _markdown(text: str) -> MarkupContent:
    return MarkupContent(MarkupKind.Markdown, text)


def _written(place: _Place, name: str) -> str:
    """Return a name as it begins in the text, for the filter of the editor."""
    quote = place.version.text[place.cursor.start : place.cursor.start + 1]
    return f"{quote}{name}{quote}" if quote in ("'", '"') else name


def _edit(place: _Place, value: Json, is_key: bool = False) -> TextEdit:
    """Return the edit that replaces the key or value at the cursor."""
    version, start = place.version, min(place.cursor.start, place.offset)
    end = _token_end(version.text, start, place.offset)
    part = SyntaxPart("string", start, end)
    text = quote_like(version, part, value) if type(value) is str else json.dumps(value)
    if is_key and not version.text[end : end + 3].lstrip(" ").startswith(":"):
        text += ": "
    elif not is_key and version.text[start - 1 : start] == ":":
        text = f" {text}"
    return TextEdit(version.index.range(start, end), text)


def _token_end(text: str, start: int, offset: int) -> int:
    """Return the end of the key or value in which the cursor is."""
    quote = text[start : start + 1]
    stops = f"{quote}\r\n" if quote in ("'", '"') else " \t\r\n,:{}[]\"'"
    end = offset
    while end < len(text) and text[end] not in stops:
        end += 1
    if quote in ("'", '"') and text[end : end + 1] == quote and end > start:
        end += 1
    return end
