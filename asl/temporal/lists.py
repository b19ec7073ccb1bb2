"""Lists of the executions of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from temporalio.client import WorkflowExecution

from asl.core.errors import AslError
from asl.engine.execution import execution_id
from asl.stores.executions import (
    ENDED,
    LARGEST_NUMBER,
    ExecutionFilter,
    ExecutionOrigin,
    StoredExecution,
)
from asl.temporal.client import TemporalClient
from asl.temporal.payloads import Memo
from asl.temporal.queries import quoted
from asl.temporal.statuses import CLOSED, CONDITIONS
from asl.temporal.workflow_store import execution_number

__all__ = ["LISTED", "ExecutionList", "listed_execution", "memo_of"]

LISTED: Final = 1000
"""Maximum number of executions that are listed together."""
SAME_TIME: Final = 20
"""Maximum number of executions that start within a microsecond."""


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
        return self._page([] if status is None else [status], "", before, limit)

    def of_machine(
        self, arn: str, statuses: Sequence[str], before: int, limit: int
    ) -> list[StoredExecution]:
        """Return a page of the executions of a registered state machine, newest first."""
        prefix = quoted(execution_id(arn, "", False))
        return self._page(statuses, f"WorkflowId STARTS_WITH '{prefix}'", before, limit)

    def _page(
        self, statuses: Sequence[str], condition: str, before: int | None, limit: int
    ) -> list[StoredExecution]:
        """Return a page of the executions that have one of these statuses; all without any."""
        conditions = [condition] if condition else []
        states = dict.fromkeys(CONDITIONS[each] for each in statuses)
        if states:
            conditions.append(f"({' OR '.join(states)})")
        time = None if before is None else (before >> 10) / 1_000_000
        wanted, more = list[StoredExecution](), True
        while len(wanted) < limit and more:
            size = limit - len(wanted)
            found = self._client.list_executions(" AND ".join(conditions), time, size)
            more = len(found) == size
            listed = [_listed(each.found, each.memo) for each in found]
            wanted += [each for each in listed if not statuses or each.status in statuses]
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

    def of_number(self, number: int) -> str | None:
        """Return the name of the execution of a listed number, None without one."""
        if number >= LARGEST_NUMBER:
            return None
        rows = self.page(None, number + 2048, SAME_TIME)  # those of the same microsecond, too
        return next((each.name for each in rows if each.number == number), None)

    def open(self) -> list[tuple[str, str]]:
        """Return workflow and status of each execution that has not ended."""
        found = self._client.list_open()
        return [(each.memo.get("workflow", ""), each.memo.get("status", "")) for each in found]

    def stuck(self) -> dict[str, list[str]]:
        """Return why executions make no progress, by name; at most the latest `LISTED`."""
        client = self._client
        open_ones = self._page(["RUNNING", "PAUSED"], "", None, LISTED)
        found = {each.name: client.waits(client.describe(each.name)) for each in open_ones}
        return {name: reasons for name, reasons in found.items() if reasons}


def memo_of(stored: StoredExecution) -> Memo:
    """Return what lists show of an execution that starts."""
    return Memo(
        status="RUNNING",
        workflow=stored.workflow,
        started=stored.started,
        origin=[*_origin(stored)],
        redrives=stored.redrives,
        redriven=stored.redriven,
    )


def _origin(stored: StoredExecution) -> ExecutionOrigin:
    """Return the registered state machine that an execution belongs to."""
    return ExecutionOrigin(*(getattr(stored, each) for each in ExecutionOrigin._fields))


def listed_execution(
    name: str, workflow: str, started: float, origin: ExecutionOrigin
) -> StoredExecution:
    """Return a running execution with what lists show."""
    return StoredExecution(
        0, name, workflow, "", "", False, None, "RUNNING", started,
        None, None, None, None, 0, None, None, *origin,
    )  # fmt: skip


def _listed(found: WorkflowExecution, memo: Memo) -> StoredExecution:
    """Return the listed form of a workflow."""
    status = memo.get("status", "RUNNING")
    if found.status in CLOSED and status not in ENDED:
        status = CLOSED[found.status]
    started = memo.get("started", found.start_time.timestamp())
    origin = ExecutionOrigin(*memo.get("origin", ()))
    return replace(
        listed_execution(found.id, memo.get("workflow", ""), started, origin),
        number=execution_number(found.id, found.start_time),
        status=status,
        ended=None if found.close_time is None else found.close_time.timestamp(),
        redrives=memo.get("redrives", 0),
        redriven=memo.get("redriven"),
        error=memo.get("error"),
    )
