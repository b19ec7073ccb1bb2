"""The audit log: every action of a user, with who did it and how that user was authenticated."""

from __future__ import annotations

from collections.abc import Mapping

from asl.core.values import Json
from asl.server.projects import Access
from asl.stores.audit import AuditEntry, add_entry
from asl.telemetry.log_lines import add_log_fields

__all__ = ["add_action", "record_action"]


def record_action(
    access: Access,
    action: str,
    target: str,
    details: Mapping[str, Json] | None = None,
    *,
    reason: str | None = None,
) -> None:
    """Record an action.

    Args:
        access: The project and the user.
        action: What was done, such as `execution.cancel`.
        target: Name of the execution, the document or the request.
        details: What else describes it; no data of the workflow.
        reason: Why the user did it.
    """
    add_action(access, action, target, details, reason=reason)
    access.store.session.flush()


def add_action(
    access: Access,
    action: str,
    target: str,
    details: Mapping[str, Json] | None = None,
    *,
    reason: str | None = None,
) -> None:
    """Record an action with the next commit; arguments as for `record_action`."""
    principal, found = access.principal, dict(details or {})
    if reason is not None:
        found["reason"] = reason
    now = access.store.clock.now()
    entry = AuditEntry(now, principal.user, principal.method, action, target, found)
    add_entry(access.store.session, entry)
    add_log_fields(action=action, target=target)
