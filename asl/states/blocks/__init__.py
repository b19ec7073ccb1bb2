"""The agent blocks (Specification 8): what an agent may spend, see, say and do."""

from collections.abc import Mapping
from types import MappingProxyType

from asl.states.blocks.base import Block
from asl.states.blocks.budget import BUDGET

__all__ = ["BLOCKS"]

BLOCKS: Mapping[str, Block] = MappingProxyType({each.name: each for each in (BUDGET,)})
"""The blocks that this version executes."""
