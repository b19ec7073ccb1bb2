"""The face of AWS's protocol: refuses pages of other sites, and records what clients change."""

from __future__ import annotations

import logging
import re
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.responses import Response

from asl.core.values import Json
from asl.server.access.authentication import is_local_name
from asl.server.access.control import AccessControl
from asl.server.access.cross_site import check_same_site, host_of
from asl.server.access.principal import Forbidden, Principal
from asl.server.audit import add_action
from asl.server.projects import Access, ServerProject
from asl.service.http import TARGET, AwsEndpoint
from asl.stores.errors import StoreError

__all__ = ["AmazonFace"]

_READING: Final = ("Describe", "Get", "List", "TestState", "Validate", "SendTaskHeartbeat")
"""Beginnings of the operations that change nothing of lasting interest."""
_KEY: Final = re.compile(r"Credential=([^/,\s]{1,128})/")
_TARGETS: Final = ("executionArn", "stateMachineArn", "stateMachineAliasArn", "activityArn",
                   "stateMachineVersionArn", "mapRunArn", "resourceArn", "name")  # fmt: skip
"""Members of requests and answers that name what an operation changed."""


class AmazonFace:
    """The endpoint of AWS's protocol of a project.

    Args:
        endpoint: Answers the requests.
        project: The project.
        control: The access control of the service.
    """

    def __init__(
        self, endpoint: AwsEndpoint, project: ServerProject, control: AccessControl
    ) -> None:
        self._endpoint = endpoint
        self._project = project
        self._control = control

    async def answer(self, request: Request) -> Response:
        """Return the response to a request."""
        try:
            self._refuse_pages(request)
        except Forbidden as refusal:
            denied = {"__type": "AccessDeniedException", "message": str(refusal)}
            return Response(orjson.dumps(denied), 403, media_type="application/x-amz-json-1.0")
        operation = request.headers.get("x-amz-target", "").removeprefix(TARGET)
        if operation.startswith(_READING):
            return await self._endpoint.answer(request)
        body = await request.body()
        response = await self._endpoint.answer(request)
        if response.status_code == 200:
            await self._record(request, operation, body, bytes(response.body))
        return response

    def _refuse_pages(self, request: Request) -> None:
        """Check that a request is not sent by a page of another site.

        A page whose host was made to point to this machine has the same host and origin; its host
        is neither local nor that of the service.

        Raises:
            Forbidden: It is.
        """
        check_same_site(request)
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            own = urlsplit(self._control.settings.public_url or "").hostname
            if host_of(request) != own and not is_local_name(host_of(request)):
                raise Forbidden("pages of this host may not use this service")

    async def _record(self, request: Request, operation: str, sent: bytes, answer: bytes) -> None:
        """Record an operation that has changed something."""
        found = _KEY.search(request.headers.get("authorization", ""))
        user = "anonymous" if found is None else found[1]
        access = Access(self._project, Principal(user, frozenset(), "aws"))
        add_action(access, f"aws.{operation}", _target(sent, answer))
        session = access.store.session
        try:
            await session.flush_soon()
        except StoreError:  # the change is made: its answer must not say otherwise
            logging.getLogger("asl").exception("an action is missing in the audit log")


def _target(sent: bytes, answer: bytes) -> str:
    """Return what an operation has changed; never a task token."""
    members: dict[str, Any] = {}
    for text in (sent, answer):
        value: Json = orjson.loads(text or b"{}")
        if isinstance(value, dict):
            members |= value
    return next((str(members[name]) for name in _TARGETS if members.get(name)), "")
