"""A pending commit shared by several executions."""

from asyncio import Future
from typing import Any

__all__ = ["GroupCommit"]


class GroupCommit(Future[None]):
    """A future that is done when the gathered changes are durable."""

    foreign_version: int | None = None
    """`Session.foreign_version` as seen by the waiting executions, None before the first use."""

    def cancel(self, msg: Any = None) -> bool:
        """Return False: other executions wait for it as well; a cancelled task ends after the
        commit.
        """
        return False
