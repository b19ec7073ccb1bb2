"""Hover: the documentation of fields, states, functions, errors and data."""

from collections.abc import Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from asl.checks.handlers import ERROR_NAMES
from asl.core.codes import all_error_names
from asl.editor.completion import expression_data
from asl.editor.edited import EditedDocument, TextVersion
from asl.editor.expressions import Data, function_text, word_at
from asl.editor.field_schemas import describe_value
from asl.editor.navigation import inner_span
from asl.editor.shapes import DataShape, member_shapes
from asl.editor.states import NamedState, state_at
from asl.editor.syntax import SyntaxPart
from asl.expr.intrinsics.table import FUNCTIONS
from asl.expr.jsonata.functions.table import NATIVES
from asl.expr.query_protocol import DELIMITERS

__all__ = ["hover_at"]


def hover_at(document: EditedDocument, offset: int) -> Hover | None:
    """Return what is known of the word at an offset; None for nothing."""
    version = document.current
    steps, at_key, part = version.steps_at(offset)
    if part.kind != "string":
        return None
    use = state_at(document, offset)
    texts = [*_describe_state(use)] if use is not None else []
    definition = version.definition_at(steps)
    own = steps[len(definition.steps) :]
    if at_key and use is None:
        found = describe_value(document.kind, definition.value, own)
        texts += [] if found is None or not found.text else [found.markdown(str(part.value))]
    elif not at_key and use is None:
        texts += _describe_value(version, offset, part)
    if not texts:
        return None
    text = MarkupContent(MarkupKind.Markdown, "\n\n".join(texts))
    return Hover(text, version.index.range(part.start, part.end))


def _describe_state(state: NamedState) -> Iterator[str]:
    value = state.value
    if type(value) is dict:
        yield f"**{state.name}**: {value.get('Type', 'state')}"
        if type(value.get("Comment")) is str:
            yield value["Comment"]


def _describe_value(version: TextVersion, offset: int, part: SyntaxPart) -> Iterator[str]:
    value = str(part.value)
    if value in ERROR_NAMES:
        yield from (
            f"**{each.name}**: {each.title}\n\n{each.explain}"
            for each in all_error_names()
            if each.name == value
        )
        return
    start, _ = inner_span(version.text, part)
    word = word_at(value, offset - start)
    if word is None:
        return
    function = NATIVES.get(word[1:]) if word.startswith("$") else FUNCTIONS.get(word)
    if function is not None:
        signature, text = function_text(function)
        yield f"```\n{signature}\n```"
        yield text
        return
    found = version.scope_at(version.steps_at(offset)[0])
    if found is None or found[2] is None:
        return
    scope, node = found[1], found[2]
    yield from _describe_path(word, value.startswith(DELIMITERS[0]), expression_data(scope, node))


def _describe_path(word: str, is_jsonata: bool, data: Data) -> Iterator[str]:
    root, *steps = word.split(".")
    if root[1:] in data.variables:
        shape = data.variables[root[1:]]
        if not steps:
            yield f"`{word}`: variable"
    elif is_jsonata and (root, *steps[:1]) == ("$states", "input"):
        steps, shape = steps[1:], data.shape
    else:
        shape = data.shape if root == "$" and not is_jsonata else None
    members = member_shapes(shape, steps)
    if members:
        yield f"`{word}`: object with\n\n```\n{DataShape(members).describe()}\n```"
