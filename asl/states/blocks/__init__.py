"""The agent blocks (Specification 8): what an agent may spend, see, say and do."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from asl.core.values import Json
from asl.states.blocks.base import Block, Wrap
from asl.states.blocks.budget import BUDGET
from asl.states.blocks.guardrails import GUARDRAILS, guard_input, guard_output

__all__ = ["BLOCKS", "wraps_of"]

BLOCKS: Mapping[str, Block] = MappingProxyType({each.name: each for each in (BUDGET, GUARDRAILS)})
"""The blocks that this version executes."""

_WRAPS: tuple[tuple[str, Wrap], ...] = (
    ("Guardrails", guard_output),
    ("Guardrails", guard_input),
)
"""What blocks do around a call, from the call outwards (Specification 3.1)."""


def wraps_of(state: Mapping[str, Json]) -> Iterator[Wrap]:
    """Yield what the blocks of a Task do around its call, from the call outwards."""
    if "Agent" in state:
        for field, wrap in _WRAPS:
            if field in state:
                yield wrap
