"""Metadata: what an agent and the events of its call are told besides (Specification 8.5)."""

from asl.core.values import Json
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Block, Perform

__all__ = ["METADATA", "tell_metadata"]


def tell_metadata(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what hands the metadata over."""
    metadata = compiler.template("Metadata")
    assert metadata is not None

    async def perform(attempt: Attempt) -> Json:
        attempt.tell("metadata", metadata(attempt.data, attempt.frame))
        return await inner(attempt)

    return perform


METADATA = Block("Metadata")
