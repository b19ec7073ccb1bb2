"""Time limits that hold whatever foreign code makes of them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from asl.engine.blame import is_own

if TYPE_CHECKING:
    import asyncio

__all__ = ["has_passed", "punctual"]

T = TypeVar("T")


def has_passed(limit: asyncio.Timeout) -> bool:
    """Whether the time of a limit is over; it cannot ring while somebody holds up the loop."""
    from asyncio import get_running_loop

    when = limit.when()
    late = when is not None and get_running_loop().time() > when
    return limit.expired() or late


async def punctual(
    answer: Awaitable[T], limit: asyncio.Timeout, pulse: asyncio.Timeout | None = None
) -> T:
    """Return what comes in time; raises TimeoutError for all else that comes of *answer*.

    Foreign code may catch the cancellation by which a limit ends it, and return or raise what it
    likes. *pulse* counts only once it has rung: the signs of life that move it wait for the loop.
    """
    try:
        found = await answer
    except BaseException as error:
        if is_own(error) or not _is_late(limit, pulse):
            raise
        raise TimeoutError from error
    if _is_late(limit, pulse):
        raise TimeoutError
    return found


def _is_late(limit: asyncio.Timeout, pulse: asyncio.Timeout | None) -> bool:
    return has_passed(limit) or (pulse is not None and pulse.expired())
