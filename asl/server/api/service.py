"""Routes about the service itself: health, the user, the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from asl import __version__
from asl.expr.times import format_timestamp
from asl.server.api.access import Operator, Viewer
from asl.server.api.models import AuditPage, Health, WhoAmI
from asl.stores.audit import AuditFilter, list_entries

__all__ = ["router"]

router = APIRouter(tags=["service"])


@router.get("/me")
def who_am_i(access: Viewer) -> WhoAmI:
    """Show who the service takes the sender for."""
    principal = access.principal
    return WhoAmI(
        user=principal.user,
        roles=sorted(principal.roles),
        method=principal.method,
        project=access.project.name,
    )


@router.get("/health")
def health(access: Viewer) -> Health:
    """Show whether the store can be read and runners work on it."""
    store = access.store
    workers, stuck = len(store.workers()), len(store.stuck())
    return Health(
        status="ok" if workers and not stuck else "degraded",
        version=__version__,
        store=str(store.path),
        workers=workers,
        stuck=stuck,
    )


@router.get("/audit")
def audit(
    access: Operator,
    user: Annotated[str | None, Query(max_length=200)] = None,
    action: Annotated[str | None, Query(max_length=200)] = None,
    target: Annotated[str | None, Query(max_length=300)] = None,
    since: datetime | None = None,
    before: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AuditPage:
    """List the actions of users, the newest first.

    `action` is an action or its first part, `target` a part of the target.
    """
    wanted = AuditFilter(user, action, target, None if since is None else since.timestamp())
    found = list_entries(access.store.session, before=before, limit=limit, wanted=wanted)
    entries = [
        {
            "id": each.id,
            "time": format_timestamp(each.time),
            "user": each.user,
            "method": each.method,
            "action": each.action,
            "target": each.target,
            "details": each.details,
            "hash": each.hash.hex(),
        }
        for each in found
    ]
    following = found[-1].id if len(found) == limit else None
    return AuditPage.model_validate({"entries": entries, "next": following})
