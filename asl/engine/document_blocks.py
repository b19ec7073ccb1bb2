"""The document-level blocks of an execution, with their computed fields."""

from collections.abc import Mapping
from types import MappingProxyType

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.execution import Execution
from asl.engine.frame import Frame

__all__ = ["computed_blocks", "document_block"]


def computed_blocks(execution: Execution) -> Mapping[str, Mapping[str, Json]]:
    """Return the blocks of the document that have computed fields; computed once per execution.

    Raises:
        StateError: A computed value is invalid.
    """
    program, known = execution.program, vars(execution)
    if program.settle is None:
        return MappingProxyType({})
    if "blocks" not in known:
        start = program.machine.start
        at = Frame().init(
            execution,
            None,  # type: ignore[arg-type]  # evaluation performs no effect
            start,
            execution.input,
            execution.started,
        )
        known["blocks"] = program.settle(execution.input, at)
    blocks: Mapping[str, Mapping[str, Json]] = known["blocks"]
    return blocks


def document_block(execution: Execution, name: str) -> Mapping[str, Json] | None:
    """Return a block of the document, None without one.

    A child execution has the blocks of the execution that it belongs to.
    """
    whole = execution.outermost
    try:
        own = computed_blocks(whole).get(name)
    except StateError:  # the execution has failed with this error at its start
        return None
    return whole.program.document.get(name) if own is None else own
