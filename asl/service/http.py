"""The endpoint of AWS's JSON protocol, as an ASGI application.

`POST /` with the header `X-Amz-Target: AWSStepFunctions.OPERATION` and a JSON body; a refusal has
the status 400 and the members `__type` and `message`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from asl.core.errors import AslError
from asl.core.values import Json
from asl.service.arns import RequestScope
from asl.service.errors import ServiceError
from asl.service.operations import perform
from asl.service.service import ACCOUNT, REGION, StatesService
from asl.service.signatures import check_signature

__all__ = ["TARGET", "AwsEndpoint", "aws_application", "request_scope"]

TARGET: Final = "AWSStepFunctions."
MEDIA_TYPE: Final = "application/x-amz-json-1.0"
LARGEST_BODY: Final = 8 * 1024 * 1024
"""Bytes of the largest request; AWS's largest value has one MiB, escaped at most six."""
CONCURRENCY: Final = 1000
"""Default maximum number of executions that run at the same time."""
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([a-z0-9-]+)/([a-z]+)/aws4_request")
_ACCOUNT = re.compile(r"\d{12}")


def request_scope(
    authorization: str | None, account: str = ACCOUNT, region: str = REGION
) -> RequestScope:
    """Return account and region of a signed request.

    The region is that of the signature. An access key of twelve digits is taken as the account.

    Args:
        authorization: The header of this name, None without one.
        account: Account of other access keys.
        region: Region of a request without a signature.
    """
    found = _CREDENTIAL.search(authorization or "")
    if found is None:
        return RequestScope(account, region)
    key = found[1]
    return RequestScope(key if _ACCOUNT.fullmatch(key) else account, found[2])


class AwsEndpoint:
    """Answers requests of the AWS protocol.

    Args:
        service: Performs the operations.
        account: Account of requests that name none.
        region: Region of requests without a signature.
        keys: Secret access keys by access key id; None to accept any credentials.
    """

    def __init__(
        self,
        service: StatesService,
        account: str = ACCOUNT,
        region: str = REGION,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self.service = service
        self.account = account
        self.region = region
        self.keys = keys

    async def answer(self, request: Request) -> Response:
        """Return the response to a request."""
        try:
            body = await _body(request)
            if self.keys is not None:
                check_signature(request.headers, body, self.keys, time.time())
            name = _operation(request.headers)
            scope = request_scope(request.headers.get("authorization"), self.account, self.region)
            scope = scope._replace(is_disconnected=request.is_disconnected)
            answer = await perform(self.service, name, _parsed(body), scope)
        except ServiceError as refusal:
            return _response(refusal.to_json(), refusal.status)
        except ClientDisconnect:
            return Response(status_code=400)
        except AslError as error:  # the store, or a document that was changed there
            return _response(ServiceError("InternalFailure", str(error)).to_json(), 500)
        except Exception:  # a bug in one request must not end the server
            logging.getLogger("asl").exception("a request failed")
            failure = ServiceError("InternalFailure", "internal error: see the log of the server")
            return _response(failure.to_json(), 500)
        return _response(answer, 200)


def _operation(headers: Mapping[str, str]) -> str:
    target = headers.get("x-amz-target", "")
    if not target.startswith(TARGET):
        raise ServiceError(
            "UnknownOperationException",
            f"the header X-Amz-Target must be {TARGET}OPERATION, not {target[:100]!r}",
        )
    return target.removeprefix(TARGET)


async def _body(request: Request) -> bytes:
    """Return the body of a request, which is read within bounds.

    Raises:
        ServiceError: It is too large.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            message = f"a request has at most {LARGEST_BODY} bytes"
            raise ServiceError("RequestEntityTooLargeException", message, status=413)
        parts.append(part)
    return b"".join(parts)


def _parsed(text: bytes) -> Json:
    """Return the JSON object of a body.

    Raises:
        ServiceError: It is no JSON object.
    """
    try:
        body: Json = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise ServiceError("SerializationException", "the body must be a JSON object")
    return body


def _response(body: dict[str, Json], status: int) -> Response:
    headers = {"x-amzn-RequestId": _request_id()}
    return Response(orjson.dumps(body), status, headers, MEDIA_TYPE)


def _request_id() -> str:
    digits = os.urandom(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def aws_application(
    endpoint: AwsEndpoint,
    *,
    concurrency: int = CONCURRENCY,
    background: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> Starlette:
    """Return an ASGI application with the endpoint and a runner of its store.

    Args:
        endpoint: The endpoint.
        concurrency: Maximum number of executions that run at the same time.
        background: Further work while the application runs, such as watching files; it is
            cancelled at the end.
    """

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        task = None if background is None else asyncio.create_task(background())
        try:
            async with endpoint.service.store.runner(concurrency=concurrency):
                yield
        finally:
            if task is not None:
                task.cancel()

    return Starlette(routes=[Route("/", endpoint.answer, methods=["POST"])], lifespan=lifespan)
