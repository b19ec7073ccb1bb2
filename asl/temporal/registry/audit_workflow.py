"""The workflow whose history is the audit log of the servers of a queue."""

from __future__ import annotations

import json
from typing import Final, TypedDict

from temporalio import workflow

from asl.stores.audit import START, AuditEntry

__all__ = ["AUDIT_LOG", "BEGINNING", "ENTRY", "AuditStart", "AuditWorkflow", "read_entry"]

AUDIT_LOG: Final = "asl.Audit"
"""Type of the workflow."""
ENTRY: Final = "asl.audit.entry"
"""Name of the signal with an entry."""
MAX_EVENTS: Final = 2000
"""Events of a run after which the log continues in another one."""


class AuditStart(TypedDict):
    """Input of a run: the end of the log before it."""

    count: int
    hash: str
    """Hash of the last entry."""


BEGINNING: Final = AuditStart(count=0, hash=START.hex())
"""Input of the first run."""


def read_entry(text: str, start: AuditStart) -> AuditEntry:
    """Return an entry with its number and hash.

    Args:
        text: The entry as JSON text.
        start: The end of the log before it.
    """
    time, user, method, action, target, details = json.loads(text)
    number = start["count"] + 1
    entry = AuditEntry(time, user, method, action, target, details, number)
    return entry._replace(hash=entry.hash_after(bytes.fromhex(start["hash"])))


@workflow.defn(name=AUDIT_LOG, sandboxed=False)
class AuditWorkflow:
    """Receives entries until it is terminated; its history keeps them."""

    @workflow.init
    def __init__(self, start: AuditStart) -> None:
        self._end = start

    @workflow.run
    async def run(self, start: AuditStart) -> None:
        """Continue in a new run before the history is too long."""
        await workflow.wait_condition(self._is_long)
        workflow.continue_as_new(self._end)

    def _is_long(self) -> bool:
        return workflow.info().get_current_history_length() > MAX_EVENTS

    @workflow.signal(name=ENTRY)
    def record(self, text: str) -> None:
        """Count an entry."""
        entry = read_entry(text, self._end)
        self._end = AuditStart(count=entry.id, hash=entry.hash.hex())
