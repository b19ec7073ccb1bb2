"""What an agent block is: one module, one row of the table (`asl.states.blocks.BLOCKS`)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from asl.core.diagnostics import Finding
from asl.core.values import Json
from asl.states.base import Node

__all__ = ["Block"]


def _nothing_of_a_state(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


def _nothing_of_a_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    yield from ()


@dataclass(frozen=True, slots=True)
class Block:
    """One row of the table of blocks that this version executes."""

    name: str
    """The field of a state, and of the document where it has such a block."""
    check: Callable[[Node, Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_state
    """Find what is wrong with the block of a state, given that of the document, and no schema can
    say."""
    check_workflow: Callable[[Mapping[str, Json]], Iterator[Finding]] = _nothing_of_a_workflow
    """The same for the block of the document."""
    lacks: tuple[str, ...] = ()
    """The fields that are checked but not executed."""
