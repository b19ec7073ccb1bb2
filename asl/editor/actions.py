"""Code actions: the changes that the hint of a finding names."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lsprotocol.types import CodeAction, CodeActionKind, Diagnostic, TextEdit, WorkspaceEdit

from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.navigation import inner_span, quote_like
from asl.editor.syntax import SyntaxPart

__all__ = ["code_actions"]

_MEANT: Final = re.compile(r"did you mean (?P<quote>['\"])(.+?)(?P=quote)\?")
_WRITE_FIELD: Final = re.compile(r"write \"([^\"]+)\" for '([^']+)'")
_WRITE: Final = re.compile(r"write \"([^\"]+)\" for its value")


def code_actions(document: EditedDocument, diagnostics: Sequence[Diagnostic]) -> list[CodeAction]:
    """Return the actions that mend diagnostics."""
    return [action for each in diagnostics for action in _actions(document, each)]


def _actions(document: EditedDocument, diagnostic: Diagnostic) -> Iterator[CodeAction]:
    data = diagnostic.data
    hint = data.get("hint") if isinstance(data, dict) else None
    if not isinstance(hint, str):
        return
    version = document.current
    for title, part, text in _replacements(version, diagnostic, hint):
        written = quote_like(version, part, text)
        edit = TextEdit(version.index.range(part.start, part.end), written)
        yield CodeAction(
            title,
            kind=CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            edit=WorkspaceEdit({document.uri: [edit]}),
            is_preferred=True,
        )


def _replacements(
    version: TextVersion, diagnostic: Diagnostic, hint: str
) -> Iterator[tuple[str, SyntaxPart, str]]:
    """Yield the title of an action, the key or value to replace, and its new text."""
    steps, at_key, part = version.steps_at(version.index.offset(diagnostic.range.start))
    meant = _MEANT.search(hint)
    if meant is not None and part.kind == "string":
        yield f"Replace by {meant[2]!r}", part, _replaced(version, part, diagnostic, meant[2])
    field = _WRITE_FIELD.search(hint)
    if field is not None:
        around = version.tree.root.find(steps)
        if around is not None and (at_key or around.kind == "string"):
            inner = version.tree.root.find(steps[:-1])
            around = around if around.member(field[2]) is not None else inner
        member = None if around is None else around.member(field[2])
        if member is not None and member.key is not None:
            yield f"Rename {field[2]!r} to {field[1]!r}", member.key, field[1]
    written = _WRITE.search(hint)
    if written is not None and steps:
        around = version.tree.root.find(steps[:-1])
        member = None if around is None else around.member(steps[-1])
        if member is not None and member.key is not None:
            yield f"Rename to {written[1]!r}", member.key, written[1]


def _replaced(version: TextVersion, part: SyntaxPart, diagnostic: Diagnostic, meant: str) -> str:
    """Return the text of a string in which the misspelt word is replaced.

    The finding may concern a word within an expression: that which begins at its place.
    """
    value = str(part.value)
    start, _ = inner_span(version.text, part)
    at = version.index.offset(diagnostic.range.start) - start
    if at <= 0 or at >= len(value):
        return meant
    word = re.match(r"[$\w.]+", value[at:])
    return value[:at] + meant + value[at + (word.end() if word else 0) :]
