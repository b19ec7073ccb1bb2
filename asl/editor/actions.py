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
_WRITE_TEXT: Final = re.compile(r"^write \"(\{% .* %\})\"$", re.DOTALL)
_WRITE_MEMBER: Final = re.compile(
    r"^write (?P<key>\"[^\"]+\"): (?P<value>.+?)(?P<why> as well| if this is intended)?$", re.DOTALL
)
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
    edits = [
        (title, _edit(version, part, quote_like(version, part, text)))
        for title, part, text in _replacements(version, diagnostic, hint)
    ]
    for title, edit in (*edits, *_member_edits(version, diagnostic, hint)):
        yield CodeAction(
            title,
            kind=CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            edit=WorkspaceEdit({document.uri: [edit]}),
            is_preferred=True,
        )


def _edit(version: TextVersion, part: SyntaxPart, text: str) -> TextEdit:
    return TextEdit(version.index.range(part.start, part.end), text)


def _replacements(
    version: TextVersion, diagnostic: Diagnostic, hint: str
) -> Iterator[tuple[str, SyntaxPart, str]]:
    """Yield the title of an action, the key or value to replace, and its new text."""
    steps, at_key, part = version.steps_at(version.index.offset(diagnostic.range.start))
    meant = _MEANT.search(hint)
    if meant is not None and part.kind == "string":
        yield f"Replace by {meant[2]!r}", part, _replaced(version, part, diagnostic, meant[2])
    expression = _WRITE_TEXT.search(hint)
    if expression is not None and part.kind == "string" and not at_key:
        yield f"Replace by {expression[1]!r}", part, expression[1]
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


def _member_edits(
    version: TextVersion, diagnostic: Diagnostic, hint: str
) -> Iterator[tuple[str, TextEdit]]:
    """Yield the title and the edit of an action that writes a member."""
    found = _WRITE_MEMBER.search(hint)
    if found is None:
        return
    steps, _, _ = version.steps_at(version.index.offset(diagnostic.range.start))
    member = f"{found['key']}: {found['value']}"
    if found["why"] is None:  # the member at the place has the key without the suffix
        holder = version.tree.root.find(steps[:-1]) if steps else None
        own = None if holder is None else holder.member(steps[-1])
        if own is not None and own.key is not None:
            whole = SyntaxPart("string", own.key.start, own.value.end)
            yield f"Write {member}", _edit(version, whole, member)
        return
    within = steps if found["why"] != " as well" else steps[:-1]
    around = version.tree.root.find(within)
    around = None if around is None else around.embedded or around
    if around is None or not around.members or around.members[0].key is None:
        return
    start = around.members[0].key.start
    line = version.text.rfind("\n", 0, start) + 1
    indent = re.sub(r"\S", " ", version.text[line:start])
    comma = "" if version.is_yaml and version.text[around.start] != "{" else ","
    yield (
        f"Write {member}",
        TextEdit(version.index.range(start, start), f"{member}{comma}\n{indent}"),
    )


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
