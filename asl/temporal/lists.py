"""Lists of the executions of a queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from temporalio.client import WorkflowExecution

from asl.core.errors import AslError
from asl.stores.executions import ENDED, ExecutionFilter, StoredExecution
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import Memo
from asl.temporal.statuses import CLOSED, CONDITIONS
from asl.temporal.workflow_store import execution_number

__all__ = ["LISTED", "ExecutionList", "new_execution"]

LISTED: Final = 1000
"""Maximum number of executions that are listed together."""


class ExecutionList:
    """The executions of a queue, newest first, as the server lists their workflows.

    Args:
        client: The client.
    """

    def __init__(self, client: TemporalClient) -> None:
        self._client = client

    def page(self, status: str | None, before: int | None, limit: int) -> list[StoredExecution]:
        """Return a page of the latest executions.

        Args:
            status: Only executions with this status; None for all.
            before: Number of the last execution of the previous page; None for the first page.
            limit: Maximum number.

        Raises:
            AslError: There is no such status.
        """
        if status is not None and status not in CONDITIONS:
            raise AslError(f"there is no status {status!r}: {', '.join(CONDITIONS)}")
        time = None if before is None else (before >> 10) / 1_000_000
        wanted, more = list[StoredExecution](), True
        while len(wanted) < limit and more:
            size = limit - len(wanted)
            found = self._client.list_executions(CONDITIONS.get(status or "", ""), time, size)
            more = len(found) == size
            listed = [_listed(each.found, each.memo) for each in found]
            wanted += [each for each in listed if status in (None, each.status)]
            if found:
                time = found[-1].found.start_time.timestamp()
        return wanted

    def search(
        self, wanted: ExecutionFilter, before: int | None, limit: int
    ) -> tuple[list[StoredExecution], int | None]:
        """Return a page of executions that meet conditions, and the position of the next one."""
        rows = self.page(wanted.status, before, LISTED)
        found = [each for each in rows if wanted.accepts(each)]
        if len(found) > limit:
            return found[:limit], found[limit - 1].number
        return found, rows[-1].number if len(rows) == LISTED else None

    def stuck(self) -> dict[str, list[str]]:
        """Return why executions make no progress, by name; at most the latest `LISTED`."""
        client = self._client
        running = self.page("RUNNING", None, LISTED)
        found = {each.name: client.waits(client.describe(each.name)) for each in running}
        return {name: reasons for name, reasons in found.items() if reasons}


def _listed(found: WorkflowExecution, memo: Memo) -> StoredExecution:
    """Return the listed form of a workflow."""
    status = memo.get("status", "RUNNING")
    if found.status in CLOSED and status not in ENDED:
        status = CLOSED[found.status]
    started = memo.get("started", found.start_time.timestamp())
    listed = new_execution(found.id, memo.get("workflow", ""), started)
    ended = None if found.close_time is None else found.close_time.timestamp()
    number = execution_number(found.id, found.start_time)
    return replace(listed, number=number, status=status, ended=ended)


def new_execution(name: str, workflow: str, started: float) -> StoredExecution:
    """Return a running execution with what lists show."""
    return StoredExecution(
        0, name, workflow, "", "", False, None, "RUNNING", started,
        None, None, None, None, 0, None, None,
    )  # fmt: skip
