"""The face of webhooks: `POST /hooks/NAME` starts an execution if its signature is right."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from asl.core.errors import AslError
from asl.core.values import Json, json_equal
from asl.executions.errors import ExecutionNotFound
from asl.executions.registrations import resolve_arn
from asl.server.access.principal import Principal, Unauthorized
from asl.server.actions import arn_of, start_registration
from asl.server.audit import record_action
from asl.server.problems import NotFound, problem, problem_of
from asl.server.projects import Access, ServerProject
from asl.server.views import execution_key
from asl.server.webhooks.registry import Webhook, find_webhook
from asl.server.webhooks.signatures import check_webhook_signature
from asl.stores.executions import StoredExecution

__all__ = ["WebhookFace"]

LONGEST_ID: Final = 256
"""Characters of the longest id of a delivery."""
MOST_FIELDS: Final = 1000
"""Number of fields of a form."""


class _Refusal(AslError):
    """A request of a wrong form."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class WebhookFace:
    """Answers the webhooks of a project.

    Args:
        project: The project.
    """

    def __init__(self, project: ServerProject) -> None:
        self._project = project

    async def answer(self, request: Request) -> Response:
        """Return the response to a request; a repeated delivery gets that of the first one."""
        try:
            stored, is_new = await self._start(request)
        except _Refusal as refusal:
            return problem(refusal.status, "InvalidRequest", str(refusal))
        except ClientDisconnect:
            return Response(status_code=400)
        except AslError as error:
            return problem_of(error)
        body = {"execution": execution_key(stored)}
        return Response(orjson.dumps(body), 202 if is_new else 200, media_type="application/json")

    async def _start(self, request: Request) -> tuple[StoredExecution, bool]:
        """Start the execution of a delivery, and return whether it is a new one."""
        store = self._project.store
        hook = find_webhook(store.session, request.path_params["name"])
        kind = _content_type(request, hook)
        body = await _bounded_body(request, hook.max_bytes)
        _authenticate(hook, request.headers, body, store.clock.now())
        data = _input(hook, request.headers, kind, body)
        found = resolve_arn(store.session, hook.machine)
        if found is None:
            raise NotFound(f"the document of the webhook {hook.name!r} is gone")
        name = _execution_name(hook, request.headers)
        user = Principal(f"webhook:{hook.name}", frozenset(), "webhook")
        if name is not None:
            known = self._known(arn_of(found, name), data)
            if known is not None:
                return known, False
        stored = await start_registration(store, found, data, name=name, requestor=user.user)
        access = Access(self._project, user)
        record_action(access, "execution.start", stored.name, {"workflow": stored.workflow})
        return stored, True

    def _known(self, arn: str, data: Json) -> StoredExecution | None:
        """Return the execution of an earlier delivery, None without one."""
        store = self._project.store
        try:
            known = store.get(arn)
        except ExecutionNotFound:
            return None
        if not json_equal(store.input(known.name), data):
            raise _Refusal(409, "a delivery with this id had another body")
        return known


def _content_type(request: Request, hook: Webhook) -> str:
    """Return the type of a body.

    Raises:
        _Refusal: The webhook does not allow it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("application/") and kind.endswith("+json"):
        kind = "application/json"
    if kind not in hook.content_types:
        raise _Refusal(415, f"the body must have the type {' or '.join(hook.content_types)}")
    return kind


async def _bounded_body(request: Request, most: int) -> bytes:
    """Return the body.

    Raises:
        _Refusal: It has more bytes.
    """
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _Refusal(413, f"a body has at most {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _authenticate(hook: Webhook, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Check the signature.

    Raises:
        Unauthorized: It is missing or wrong.
        _Refusal: The secret cannot be read.
    """
    try:
        check_webhook_signature(hook.scheme, hook.read_secrets(), hook.header, headers, body, now)
    except Unauthorized as refusal:
        logging.getLogger("asl").warning("webhook %r refused: %s", hook.name, refusal)
        raise
    except AslError as error:
        logging.getLogger("asl").error("webhook %r: %s", hook.name, error)
        raise _Refusal(503, f"the webhook {hook.name!r} lacks its secret") from None


def _input(hook: Webhook, headers: Mapping[str, str], kind: str, body: bytes) -> Json:
    """Return the input of the execution.

    Raises:
        _Refusal: The body is not of its type.
    """
    try:
        data = _parsed(kind, body)
    except ValueError as error:
        raise _Refusal(400, f"the body is no {kind}: {error}") from None
    if not hook.headers:
        return data
    return {"body": data, "headers": {name: headers.get(name) for name in hook.headers}}


def _parsed(kind: str, body: bytes) -> Json:
    if kind == "application/json":
        value: Json = orjson.loads(body)
        return value
    text = body.decode()
    if kind == "text/plain":
        return text
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=MOST_FIELDS)
    return dict(pairs)


def _execution_name(hook: Webhook, headers: Mapping[str, str]) -> str | None:
    """Return the name of the execution of a delivery; None without the id of a delivery.

    Raises:
        _Refusal: The id is too long.
    """
    delivery = headers.get(hook.delivery_header)
    if not delivery:
        return None
    if len(delivery) > LONGEST_ID:
        raise _Refusal(400, f"{hook.delivery_header} has at most {LONGEST_ID} characters")
    return f"{hook.name}-{sha256(delivery.encode(errors='surrogateescape')).hexdigest()[:32]}"
