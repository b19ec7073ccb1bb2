"""The drawing of a document for a preview that follows the cursor: the request `asl/graph`."""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from lsprotocol.types import Range

from asl.core.document import Document, is_workflow
from asl.core.errors import AslError
from asl.dialects import load_each
from asl.dialects.conversion import part_descriptions
from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.states import workflow_states
from asl.editor.syntax import SyntaxPart
from asl.graphs.model import GraphState, MachineGraph, graph_of
from asl.graphs.svg import Marking, embedded_svg

__all__ = ["GRAPH_REQUEST", "DrawnDocument", "DrawnState", "DrawnWorkflow", "draw_document"]

GRAPH_REQUEST: Final = "asl/graph"


class DrawnState(TypedDict):
    """A state of a drawing: the `data-pointer` of its box, and its place in the text.

    `range` is the whole state, `key` the rest of the line that begins with its name.
    """

    name: str
    pointer: str
    range: Range
    key: Range


class DrawnWorkflow(TypedDict):
    """A workflow of a text: its name in a template, its place, drawing and states."""

    name: str
    range: Range
    svg: str
    states: list[DrawnState]


class DrawnDocument(TypedDict):
    """The answer to the request: the drawings, or why there are none."""

    graphs: list[DrawnWorkflow]
    message: str


def draw_document(document: EditedDocument) -> DrawnDocument:
    """Return the drawings of the workflows in the current text.

    Amazon States Language is drawn as far as it is written; other languages have to be readable.
    """
    version = document.current
    try:
        if version.definitions:
            graphs = [*_draw_workflows(version)]
        else:
            graphs = [*_draw_other(document, version)]
    except AslError as error:
        return {"graphs": [], "message": str(error)}
    return {"graphs": graphs, "message": "" if graphs else "there is no workflow in this document"}


def _draw_workflows(version: TextVersion) -> Iterator[DrawnWorkflow]:
    for definition, workflow in version.workflows:
        states = workflow_states(definition.root, workflow)
        places = {
            each.pointer: (each.key, each.part)
            for each in states
            if each.key is not None and each.part is not None
        }
        name = str(definition.steps[-3]) if len(definition.steps) > 2 else ""
        yield _drawn(version, name, definition.root, graph_of(definition.value), places)


def _draw_other(document: EditedDocument, version: TextVersion) -> Iterator[DrawnWorkflow]:
    found = load_each(
        version.text.encode("utf-8", "replace"), name=document.path, format=document.format
    )
    for each in found:
        if not isinstance(each, Document):
            raise AslError("the document has errors")
        if not is_workflow(each.value):
            continue
        graph = graph_of(each.composed_value, part_descriptions(each))
        places = {}
        for state in graph.all_states():
            home, pointer = each.origin(state.pointer)
            part = version.tree.root.at_pointer(pointer) if home.name == each.name else None
            if part is not None:
                places[state.pointer] = (part, part)
        yield _drawn(version, "", version.tree.root, graph, places)


def _drawn(
    version: TextVersion,
    name: str,
    root: SyntaxPart,
    graph: MachineGraph,
    places: Mapping[str, tuple[SyntaxPart, SyntaxPart]],
) -> DrawnWorkflow:
    index = version.index
    states = []
    for state in graph.all_states():
        key, part = places.get(state.pointer, (None, None))
        if key is not None and part is not None:
            whole = index.range(min(key.start, part.start), max(key.end, part.end))
            own = index.range(key.start, index.line_end(index.position(key.start).line))
            states.append(DrawnState(name=state.name, pointer=state.pointer, range=whole, key=own))
    where = index.range(root.start, root.end)
    return {"name": name, "range": where, "svg": embedded_svg(graph, _mark), "states": states}


def _mark(state: GraphState) -> Marking:
    return Marking(f"#{state.pointer}")
