"""CodeLens: lines above states and workflows with commands that the editor performs."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from lsprotocol.types import CodeLens, Command, Location

from asl.editor.edited import EditedDocument
from asl.editor.navigation import inner_span, symbol_ranges
from asl.editor.states import NamedState, named_states
from asl.editor.syntax import SyntaxPart

__all__ = ["GRAPH", "REFERENCES", "RUN", "TEST", "code_lenses"]

RUN: Final = "asl.run"
"""Run a workflow: URI of the document, name of the workflow in a template or null."""
TEST: Final = "asl.test"
"""Run test cases: URI of a file with cases, text that selects some or null."""
GRAPH: Final = "asl.showGraph"
"""Show the drawing of a document: its URI."""
REFERENCES: Final = "asl.showReferences"
"""Show the references of a state: URI, position, and list of locations."""

_SUITE_ENDINGS: Final = (".asl-test.yaml", ".asl-test.yml", ".asl-test.json")


def code_lenses(document: EditedDocument, commands: Collection[str]) -> list[CodeLens]:
    """Return the lenses of a document.

    Args:
        document: The document.
        commands: The commands that the editor has; only their lenses are returned.
    """
    if document.uri.endswith(_SUITE_ENDINGS):
        found = _suite_lenses(document)
    else:
        found = _document_lenses(document)
    return [each for each in found if each.command is not None and each.command.command in commands]


def _document_lenses(document: EditedDocument) -> Iterator[CodeLens]:
    version = document.current
    states = named_states(document)
    for definition in version.definitions if document.kind == "asl" else ():
        name = str(definition.steps[-3]) if len(definition.steps) > 2 else None
        yield _lens(document, definition.root.start, "Run", RUN, [document.uri, name])
    if document.kind not in ("asl", "agents"):
        yield _lens(document, version.tree.root.start, "Run", RUN, [document.uri, None])
    if states:
        start = version.tree.root.start
        for suite in _suites(document):
            yield _lens(document, start, "Test", TEST, [suite, None])
        yield _lens(document, start, "Graph", GRAPH, [document.uri])
    for state in states:
        if state.key is not None:
            yield _reference_lens(document, state, state.key)


def _suites(document: EditedDocument) -> Iterator[str]:
    """Yield the URI of the file with the test cases of a document, if there is one."""
    if document.path is None:
        return
    path = Path(document.path)
    name = path.stem.removesuffix(".asl")
    for ending in _SUITE_ENDINGS:
        if path.with_name(name + ending).exists():
            yield path.with_name(name + ending).as_uri()
            return


def _reference_lens(document: EditedDocument, state: NamedState, key: SyntaxPart) -> CodeLens:
    version, count = document.current, len(state.references)
    start, _ = inner_span(version.text, key)
    where = version.index.position(start)
    places = [Location(document.uri, each) for each in symbol_ranges(version, state, False)]
    title = f"{count} reference{'' if count == 1 else 's'}"
    return _lens(document, start, title, REFERENCES, [document.uri, where, places])


def _suite_lenses(document: EditedDocument) -> Iterator[CodeLens]:
    root = document.current.tree.root
    yield _lens(document, root.start, "Run tests", TEST, [document.uri, None])
    cases = root.member("cases")
    for case in [] if cases is None else cases.value.members:
        name = case.value.member("id") or case.value.member("title")
        if name is not None and type(name.value.value) is str:
            start, text = case.value.start, name.value.value
            yield _lens(document, start, "Run test", TEST, [document.uri, text])


def _lens(
    document: EditedDocument, offset: int, title: str, command: str, arguments: Sequence[object]
) -> CodeLens:
    where = document.current.index.range(offset, offset)
    return CodeLens(where, Command(title, command, arguments=arguments))
