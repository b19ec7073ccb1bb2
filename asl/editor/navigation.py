"""Definitions, references, names, symbols and folding."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from lsprotocol.types import DocumentSymbol, FoldingRange, Range, SymbolKind, TextEdit

from asl.checks.workflow import MachineScope
from asl.core.errors import AslError
from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.states import NamedState, named_states, workflow_states
from asl.editor.syntax import SyntaxPart
from asl.states import type_of

__all__ = [
    "document_symbols",
    "folding_ranges",
    "inner_span",
    "quote_like",
    "rename_edits",
    "symbol_ranges",
]

_PLAIN: Final = re.compile(r"[A-Za-z_][\w .-]*(?<! )")
"""A name that YAML reads as text without quotes."""
_WORDS: Final = frozenset(("true", "false", "null", "True", "False", "Null", "TRUE", "FALSE"))


def symbol_ranges(version: TextVersion, state: NamedState, with_key: bool) -> list[Range]:
    """Return the ranges of the names of a state, without their quotes."""
    return [
        version.index.range(*inner_span(version.text, part)) for part in _names(state, with_key)
    ]


def _names(state: NamedState, with_key: bool = True) -> list[SyntaxPart]:
    own = [state.key] if with_key and state.key is not None else []
    return [*own, *state.references]


def inner_span(text: str, part: SyntaxPart) -> tuple[int, int]:
    """Return the extent of a string without its quotes."""
    if text[part.start : part.start + 1] in ("'", '"') and part.end > part.start + 1:
        return part.start + 1, part.end - 1
    return part.start, part.end


def rename_edits(document: EditedDocument, state: NamedState, name: str) -> list[TextEdit]:
    """Return the edits that rename a state and everything that leads to it.

    Raises:
        AslError: The name is empty, too long, or that of another state, or the document is in
            another language, whose expressions may name states.
    """
    version = document.current
    if document.kind != "asl":
        raise AslError("states are renamed in Amazon States Language only")
    if not name or len(name) > 80:
        raise AslError("the name of a state has 1 to 80 characters")
    names = {each for _, workflow in version.workflows for each in workflow.names}
    if name in names and name != state.name:
        raise AslError(f"there is a state {name!r} already: names are unique in a document")
    return [
        TextEdit(version.index.range(part.start, part.end), quote_like(version, part, name))
        for part in _names(state)
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
    if document.kind == "agents":
        return [*_member_symbols(version)]
    if document.kind != "asl":
        return [*filter(None, (_symbol(version, each) for each in named_states(document)))]
    found = []
    for definition, workflow in version.workflows:
        scopes: dict[str, list[MachineScope]] = {}
        for scope in workflow.scopes:
            holder = "" if scope.holder is None else scope.holder.pointer
            scopes.setdefault(holder, []).append(scope)
        states = {each.pointer: each for each in workflow_states(definition.root, workflow)}
        symbols = [*_scope_symbols(version, states, scopes, "")]
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
    states: Mapping[str, NamedState],
    scopes: Mapping[str, list[MachineScope]],
    holder: str,
) -> Iterator[DocumentSymbol]:
    for scope in scopes.get(holder, ()):
        for node in scope.nodes:
            symbol = _symbol(version, states[node.pointer]) if node.pointer in states else None
            if symbol is not None:
                symbol.children = [*_scope_symbols(version, states, scopes, node.pointer)] or None
                yield symbol


def _symbol(version: TextVersion, state: NamedState) -> DocumentSymbol | None:
    """Return the symbol of a state; None for one that does not exist."""
    key, part = state.key, state.part
    if key is None or part is None:
        return None
    value = state.value if type(state.value) is dict else {}
    kind = value.get("Type")
    return DocumentSymbol(
        state.name or "(no name)",
        SymbolKind.Enum if type_of(value).decides else SymbolKind.Function,
        version.index.range(min(key.start, part.start), max(key.end, part.end)),
        version.index.range(key.start, key.end),
        detail=kind if type(kind) is str else None,
    )


def _member_symbols(version: TextVersion) -> Iterator[DocumentSymbol]:
    """Yield the members of an agents file."""
    for step, member in version.tree.root.steps():
        if member.key is not None:
            where = version.index.range(member.key.start, member.value.end)
            own = version.index.range(member.key.start, member.key.end)
            yield DocumentSymbol(str(step) or "(no name)", SymbolKind.Namespace, where, own)


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
