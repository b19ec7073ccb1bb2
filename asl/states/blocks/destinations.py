"""Where blocks put something into the output of a state, where that is computed."""

from collections.abc import Awaitable

from asl.core.values import Json
from asl.states.base import Compiler
from asl.states.blocks.base import Attempt, Perform
from asl.states.blocks.progress import progress_destination
from asl.states.blocks.reasoning import trace_destination

__all__ = ["settle_destinations"]


def settle_destinations(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what says where blocks put something into the output, where that is computed."""
    found = [each(compiler) for each in (trace_destination, progress_destination)]
    computed = [each for each in found if each.computed]
    if not computed:
        return inner

    def perform(attempt: Attempt) -> Awaitable[Json]:
        for each in computed:
            each.settle(attempt.data, attempt.frame)
        return inner(attempt)

    return perform
