"""Definitions, references, names, symbols and folding."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from lsprotocol.types import DocumentSymbol, FoldingRange, Range, SymbolKind, TextEdit

from asl.checks.transitions import targets
from asl.checks.workflow import MachineScope
from asl.core.errors import AslError
from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.registry import find
from asl.editor.edited import Definition, EditedDocument, TextVersion
from asl.editor.syntax import SyntaxPart
from asl.states import type_of

__all__ = [
    "StateUse",
    "document_symbols",
    "folding_ranges",
    "inner_span",
    "quote_like",
    "rename_edits",
    "state_at",
    "symbol_ranges",
]

_PLAIN: Final = re.compile(r"[A-Za-z_][\w .-]*(?<! )")
"""A name that YAML reads as text without quotes."""
_WORDS: Final = frozenset(("true", "false", "null", "True", "False", "Null", "TRUE", "FALSE"))


class StateUse(NamedTuple):
    """A state of a machine, with the places that name it."""

    name: str
    definition: Definition
    scope: MachineScope

    @property
    def key(self) -> SyntaxPart | None:
        """Its key in `States`."""
        return self.definition.key(f"{self.scope.pointer}/States/{escape(self.name)}")

    def references(self) -> Iterator[SyntaxPart]:
        """Yield the places that name it as the next or the first state."""
        for pointer, name in _references(self.scope):
            part = self.definition.part(pointer) if name == self.name else None
            if part is not None and part.kind == "string":
                yield part


def _references(scope: MachineScope) -> Iterator[tuple[str, str]]:
    """Yield `(pointer, name)` of the places of a machine that name a state."""
    start = scope.value.get("StartAt")
    if type(start) is str:
        yield f"{scope.pointer}/StartAt", start
    for node in scope.nodes:
        yield from targets(node)


def state_at(version: TextVersion, offset: int) -> StateUse | None:
    """Return the state that is defined or named at an offset."""
    steps, at_key, part = version.steps_at(offset)
    found = version.scope_at(steps)
    if found is None or part.kind != "string":
        return None
    definition, scope, node = found
    name = str(part.value)
    if at_key:
        if node is not None and definition.key(node.pointer) is part:
            return StateUse(name, definition, scope)
        return None
    if any(definition.part(pointer) is part for pointer, _ in _references(scope)):
        return StateUse(name, definition, scope)
    return None


def symbol_ranges(version: TextVersion, use: StateUse, with_key: bool) -> list[Range]:
    """Return the ranges of the names of a state, without their quotes."""
    parts = [*use.references()]
    if with_key and use.key is not None:
        parts.insert(0, use.key)
    return [version.index.range(*inner_span(version.text, part)) for part in parts]


def inner_span(text: str, part: SyntaxPart) -> tuple[int, int]:
    """Return the extent of a string without its quotes."""
    if text[part.start : part.start + 1] in ("'", '"') and part.end > part.start + 1:
        return part.start + 1, part.end - 1
    return part.start, part.end


def rename_edits(version: TextVersion, use: StateUse, name: str) -> list[TextEdit]:
    """Return the edits that rename a state and everything that leads to it.

    Raises:
        AslError: The name is empty, too long, or that of another state.
    """
    if not name or len(name) > 80:
        raise AslError("the name of a state has 1 to 80 characters")
    names = {each for _, workflow in version.workflows for each in workflow.names}
    if name in names and name != use.name:
        raise AslError(f"there is a state {name!r} already: names are unique in a document")
    parts = [*use.references()]
    if use.key is not None:
        parts.insert(0, use.key)
    return [
        TextEdit(version.index.range(part.start, part.end), quote_like(version, part, name))
        for part in parts
    ]


def quote_like(version: TextVersion, part: SyntaxPart, value: str) -> str:
    """Return a text as it is written in the place of a part."""
    first = version.text[part.start : part.start + 1]
    if first == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if first != '"' and version.is_yaml and _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def document_symbols(document: EditedDocument) -> list[DocumentSymbol]:
    """Return the states as a tree: those of branches are below their state."""
    version = document.current
    if document.kind != "asl":
        return [*_dialect_symbols(document)]
    found = []
    for definition, workflow in version.workflows:
        scopes: dict[str, list[MachineScope]] = {}
        for scope in workflow.scopes:
            holder = "" if scope.holder is None else scope.holder.pointer
            scopes.setdefault(holder, []).append(scope)
        symbols = [*_scope_symbols(version, definition, scopes, "")]
        if definition.steps and symbols:
            root = definition.root
            where = version.index.range(root.start, root.end)
            name = str(definition.steps[-3] if len(definition.steps) > 2 else definition.steps[-1])
            found.append(DocumentSymbol(name, SymbolKind.Module, where, where, children=symbols))
        else:
            found += symbols
    return found


def _scope_symbols(
    version: TextVersion,
    definition: Definition,
    scopes: dict[str, list[MachineScope]],
    holder: str,
) -> Iterator[DocumentSymbol]:
    for scope in scopes.get(holder, ()):
        for node in scope.nodes:
            key, part = definition.key(node.pointer), definition.part(node.pointer)
            if key is None or part is None:
                continue
            kind = node.value.get("Type")
            yield DocumentSymbol(
                node.name or "(no name)",
                SymbolKind.Enum if type_of(node.value).decides else SymbolKind.Function,
                version.index.range(key.start, max(key.end, part.end)),
                version.index.range(key.start, key.end),
                detail=kind if type(kind) is str else None,
                children=[*_scope_symbols(version, definition, scopes, node.pointer)] or None,
            )


def _dialect_symbols(document: EditedDocument) -> Iterator[DocumentSymbol]:
    """Yield the states of a document of another language, or the members of an agents file."""
    version = document.current
    root = version.tree.root
    dialect = find(document.kind)
    value = root.to_json()
    if dialect is None or type(value) is not dict:
        for step, member in root.steps():
            if member.key is not None:
                where = version.index.range(member.key.start, member.value.end)
                own = version.index.range(member.key.start, member.key.end)
                yield DocumentSymbol(str(step) or "(no name)", SymbolKind.Namespace, where, own)
        return
    names = {name for name, _ in dialect.named_states(value)}
    for part, name in _named_parts(root, names):
        where = version.index.range(part.start, part.end)
        yield DocumentSymbol(name, SymbolKind.Function, where, where)


_NAMING: Final = ("id", "name")


def _named_parts(part: SyntaxPart, names: set[str]) -> Iterator[tuple[SyntaxPart, str]]:
    """Yield the objects that have one of the names, each name once, in their order."""
    own: Json = None
    for step, member in part.steps():
        if step in _NAMING:
            own = member.value.value
    if type(own) is str and own in names:
        names.discard(own)
        yield part, own
    for _, member in part.steps():
        yield from _named_parts(member.value, names)


def folding_ranges(version: TextVersion) -> list[FoldingRange]:
    """Return the objects and arrays of several lines."""
    found, parts = [], [version.tree.root]
    while parts:
        part = parts.pop()
        part = part.embedded or part
        for member in part.members:
            start = version.index.position((member.key or member.value).start).line
            end = version.index.position(member.value.end).line
            if not version.is_yaml and member.value.kind in ("object", "array"):
                end -= 1  # the closing bracket remains visible
            if end > start:
                found.append(FoldingRange(start, end))
            parts.append(member.value)
    return found
