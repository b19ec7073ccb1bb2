"""A commit on its way, for which all wait that have put something into it."""

from asyncio import Future
from typing import Any

__all__ = ["GroupCommit"]


class GroupCommit(Future[None]):
    """Done when all that was gathered is durable."""

    foreign_version: int | None = None
    """What `Session.foreign_version` was for those that wait, None before one has asked."""

    def cancel(self, msg: Any = None) -> bool:
        """Refuse: others wait for it, too. A task that is cancelled meanwhile ends behind it."""
        return False
