"""Routes of webhooks: list, put, delete."""

from __future__ import annotations

from fastapi import APIRouter

from asl.expr.times import format_timestamp
from asl.server.api.access import Operator, Viewer
from asl.server.api.models import WebhookModel, WebhookPage, WebhookRequest
from asl.server.webhooks.registry import (
    Webhook,
    delete_webhook,
    find_webhook,
    list_webhooks,
    put_webhook,
)

__all__ = ["router"]

router = APIRouter(tags=["webhooks"])


@router.get("/webhooks")
def list_all(access: Viewer) -> WebhookPage:
    """List the webhooks by name."""
    return WebhookPage(webhooks=[_shown(each) for each in list_webhooks(access.store.session)])


@router.get("/webhooks/{name}")
def describe(name: str, access: Viewer) -> WebhookModel:
    """Show a webhook."""
    return _shown(find_webhook(access.store.session, name))


@router.put("/webhooks/{name}")
def put(name: str, body: WebhookRequest, access: Operator) -> WebhookModel:
    """Register a webhook, or replace the one of this name."""
    given = {field: getattr(body, field) for field in WebhookRequest.model_fields}
    return _shown(put_webhook(access, name, **given))


@router.delete("/webhooks/{name}", status_code=204)
def delete(name: str, access: Operator, reason: str | None = None) -> None:
    """Delete a webhook; its executions stay."""
    delete_webhook(access, name, reason=reason)


def _shown(hook: Webhook) -> WebhookModel:
    """Return a webhook as the interface shows it."""
    return WebhookModel(
        name=hook.name,
        path=f"/hooks/{hook.name}",
        document=hook.document,
        scheme=hook.scheme,
        secrets=hook.secrets,
        header=hook.header,
        delivery_header=hook.delivery_header,
        headers=hook.headers,
        content_types=hook.content_types,
        max_bytes=hook.max_bytes,
        created=format_timestamp(hook.created),
        user=hook.user,
    )
