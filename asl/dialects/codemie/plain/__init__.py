"""Workflows in plain JSONPath: every answer under a key, conditions on that, texts put together."""

from asl.core.document import Document
from asl.core.values import Json
from asl.dialects.codemie.plain.machine import Machine
from asl.dialects.codemie.round_trip import workflow
from asl.dialects.jsonpath_form import JsonPathForm

__all__ = ["plain"]


def plain(document: Document) -> tuple[dict[str, Json], JsonPathForm]:
    """Return the machine of a workflow in plain JSONPath, and what it does not say."""
    return Machine(workflow(document.value), document.value).written()
