"""The blocks of a document with their computed fields, per execution."""

from collections.abc import Mapping
from types import MappingProxyType

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.execution import Execution
from asl.engine.frame import Frame

__all__ = ["computed_blocks", "document_block"]


def computed_blocks(execution: Execution) -> Mapping[str, Mapping[str, Json]]:
    """Return the blocks of the document with computed fields; they are computed once.

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
            None,  # type: ignore[arg-type]  # nothing is performed for it
            start,
            execution.input,
            execution.started,
        )
        known["blocks"] = program.settle(execution.input, at)
    blocks: Mapping[str, Mapping[str, Json]] = known["blocks"]
    return blocks


def document_block(execution: Execution, name: str) -> Mapping[str, Json] | None:
    """Return a block of the document, None without one.

    A child execution has the blocks of the whole execution.
    """
    whole = execution.whole
    try:
        own = computed_blocks(whole).get(name)
    except StateError:  # the execution has failed of it before anything was done
        return None
    return whole.program.document.get(name) if own is None else own
