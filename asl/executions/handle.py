"""Handles of executions that runners run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import Final

from asl.core.values import Json
from asl.engine.events import Event
from asl.engine.result import Result
from asl.executions.control import StoreControl
from asl.stores.executions import ENDED, StoredExecution

__all__ = ["Handle"]

POLL: Final = 0.05
"""Seconds between two polls of an execution."""


class Handle:
    """An execution of a store, run by any process.

    `Store.handle` returns one. Any thread may use it; it reads the present state of the store.
    """

    def __init__(self, store: StoreControl, stored: StoredExecution) -> None:
        self._store = store
        self.name = stored.name
        """The name of the execution, unique in the store."""
        self.workflow = stored.workflow
        """The name of its workflow."""

    def __repr__(self) -> str:
        return f"<Handle {self.name!r} {self.status()}>"

    @property
    def id(self) -> str:
        """The id of the execution, in the form of AWS's ARNs."""
        return self._store.result(self.name).id

    def status(self) -> str:
        """Return `RUNNING`, `PAUSED`, `SUCCEEDED`, `FAILED`, `TIMED_OUT` or `ABORTED`."""
        return self._store.get(self.name).status

    def needs(self) -> list[str]:
        """Return a sentence about each binding that the execution needs and no runner has."""
        return self._store.needs(self.name)

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the end of the execution and return its result; blocks the caller.

        Args:
            timeout: Seconds to wait; None for no limit.

        Raises:
            TimeoutError: It has not ended; the message names what it waits for.
        """
        for _ in self._pauses(timeout):
            sleep(POLL)
        return self._store.result(self.name)

    async def aresult(self, timeout: float | None = None) -> Result:
        """Do what `result` does on the running event loop."""
        from asyncio import sleep as asleep

        for _ in self._pauses(timeout):
            await asleep(POLL)
        return self._store.result(self.name)

    def _pauses(self, timeout: float | None) -> Iterator[None]:
        """Yield before each poll of the store, until the execution has ended."""
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            seen = self._store.version(self.name)  # before the look: it may end meanwhile
            if self._has_ended(deadline, timeout):
                return
            while seen == self._store.version(self.name) and not _is_over(deadline):
                yield

    def _has_ended(self, deadline: float | None, timeout: float | None) -> bool:
        status = self.status()
        if status in ENDED:
            return True
        if _is_over(deadline):
            raise TimeoutError(
                f"the execution {self.name!r} has not ended within {timeout or 0:g} seconds: "
                f"{self._standing(status)}"
            )
        return False

    def _standing(self, status: str) -> str:
        """Describe what the execution waits for."""
        needs, pending = self.needs(), self.pending()
        if needs:
            return f"no worker has bound what it needs ({'; '.join(needs)})"
        if pending:
            asked = ", ".join(str(each["requestId"]) for each in pending)
            return f"people have to answer ({asked})"
        if not self._store.workers():
            return (
                f"it is {status}, and no worker runs on the store: start 'asl worker --store "
                f"{self._store.path}', or a runner ('with store.runner(...)')"
            )
        return f"it is {status}"

    def cancel(self, cause: str | None = None, *, error: str | None = None) -> None:
        """Abort the execution in any process; its status becomes `ABORTED` within a second.

        Args:
            cause: The cause that the execution ends with.
            error: The error name that it ends with.

        Raises:
            AslError: It has ended, or another execution started it.
        """
        self._store.cancel(self.name, cause, error=error)

    async def events(self) -> AsyncIterator[Event]:
        """Yield the history of the execution from its beginning to its end, live."""
        from asyncio import sleep as asleep

        feed, seen = self._store.feed(self.name), None
        while True:
            version = self._store.version(self.name)
            if version == seen:
                await asleep(POLL)
                continue
            seen = version
            for event in feed.new_events():
                yield event
            if feed.is_over:
                return

    def pending(self) -> list[dict[str, Json]]:
        """Return the open approval requests, oldest first."""
        return self._store.pending(self.name)

    def answer(
        self,
        request_id: str,
        approval: str | None = None,
        *,
        by: str | None = None,
        comment: str | None = None,
        edited: Mapping[str, Json] | None = None,
        roles: Sequence[str] = (),
        **more: Json,
    ) -> Json:
        """Answer a request (`Store.answer`); a runner continues the execution."""
        return self._store.answer(
            request_id, approval, by=by, comment=comment, edited=edited, roles=roles, **more
        )

    def to_json(self) -> dict[str, Json]:
        """Return name, workflow, status and needs as JSON."""
        return {
            "name": self.name,
            "workflow": self.workflow,
            "status": self.status(),
            "needs": list[Json](self.needs()),
        }


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline
