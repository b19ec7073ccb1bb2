"""Parsing of texts with and without errors."""

import random
from pathlib import Path

import pytest
from lsprotocol.types import Position, TextDocumentContentChangePartial

from asl.core.diagnostics import InvalidDocument
from asl.core.document import read_value
from asl.editor.actions import code_actions
from asl.editor.completion import completion_items
from asl.editor.diagnostics import check_text, to_diagnostics
from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.graph import draw_document
from asl.editor.hover import hover_at
from asl.editor.lenses import code_lenses
from asl.editor.navigation import document_symbols, folding_ranges, rename_edits
from asl.editor.positions import TextIndex
from asl.editor.project import ProjectNames
from asl.editor.states import state_at

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for folder in ("docs/examples", "tests/dialects/documents", "tests/projects")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".json", ".yaml", ".yml") and path.stat().st_size < 20_000
)
ENDS = (
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ",",
    ":",
    "\n",
    "  ",
    "- ",
    "#",
    "|",
    "\\",
    "\u2028",
    "😀",
    "$",
)


def test_values_are_those_of_the_readers() -> None:
    """A complete text has the value that the real readers find."""
    same = count = 0
    for path in DOCUMENTS:
        try:
            value = read_value(path).value
        except InvalidDocument:
            continue
        count += 1
        version = TextVersion(path.read_text(encoding="utf-8"), path.suffix != ".json")
        same += version.tree.root.to_json() == value
    assert count > 80
    assert same > 0.8 * count


@pytest.mark.parametrize(
    ("text", "is_yaml", "steps", "at_key", "typed"),
    [
        ('{"States": {"A": {"Ne', False, ("States", "A", "Ne"), True, "Ne"),
        ('{"States": {"A": {"Next": "B', False, ("States", "A", "Next"), False, "B"),
        ('{"a": [1, {"b": 2}, "x', False, ("a", 2), False, "x"),
        ("States:\n  A:\n    Ne", True, ("States", "A", "Ne"), True, "Ne"),
        ("States:\n  A:\n    Next: B", True, ("States", "A", "Next"), False, "B"),
        ("a:\n- b: 1\n- c: x", True, ("a", 1, "c"), False, "x"),
        ('a: |\n  {"States": {"B', True, ("a", "States", "B"), True, "B"),
        ("a: {b: [1, 'x", True, ("a", "b", 1), False, "x"),
    ],
)
def test_cursor(
    text: str, is_yaml: bool, steps: tuple[str | int, ...], at_key: bool, typed: str
) -> None:
    """The place of the cursor is found from the text before it."""
    cursor = TextVersion(text, is_yaml).cursor(len(text))
    assert (cursor.steps, cursor.at_key, cursor.typed) == (steps, at_key, typed)


def test_positions_count_utf_16_units() -> None:
    """A character beyond the basic plane is two units; only line breaks of the protocol count."""
    index = TextIndex("a😀b\u2028\r\nc")
    assert index.position(3) == Position(0, 4)
    assert index.offset(Position(0, 3)) == 2
    assert [index.offset(index.position(at)) for at in range(7)] == [0, 1, 2, 3, 4, 4, 6]


def use_everything(document: EditedDocument, at: int) -> None:
    """Make every request at an offset."""
    version = document.current
    completion_items(document, at, ProjectNames())
    hover_at(document, at)
    document_symbols(document)
    folding_ranges(version)
    code_lenses(document, ("asl.run", "asl.showReferences"))
    use = state_at(document, at)
    if use is not None and document.kind == "asl":
        rename_edits(document, use, "No state has this name")


@pytest.mark.parametrize(
    "edits", [300, pytest.param(10_000, marks=pytest.mark.full)], ids=["some", "many"]
)
def test_random_edits(edits: int) -> None:
    """No edit of a real document makes a request fail."""
    chance = random.Random(7)
    document = EditedDocument("", None, "", 0)
    for number in range(edits):
        if number % 20 == 0:
            path = chance.choice(DOCUMENTS)
            text = path.read_text(encoding="utf-8")
            document = EditedDocument(path.as_uri(), str(path), text, 0)
        text, index = document.current.text, document.current.index
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 1, 5, 40)))
        piece = chance.choice((*ENDS, "", text[end : end + 30], '"Next": "'))
        change = TextDocumentContentChangePartial(index.range(start, end), piece)
        document.change([change], number)
        at = chance.choice((start, start + len(piece), chance.randrange(len(text) + 1)))
        use_everything(document, min(at, len(document.current.text)))
        if number % 10 == 0:
            checked = check_text(
                document.current.text, document.path, document.format, ProjectNames()
            )
            found = to_diagnostics(checked, document.current, document.path)
            document.kind = checked.kind or document.kind
            code_actions(document, found)
            draw_document(document)
