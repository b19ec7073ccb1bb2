"""The integration `lambda:invoke`, served by the handlers of functions."""

import json
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from asl.agents.aws_lambda import request_id
from asl.core.errors import StateError
from asl.core.values import Json, copy_result, type_name
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["LambdaService"]

LATEST: Final = "$LATEST"
STATUS: Final = {"RequestResponse": 200, "Event": 202, "DryRun": 204}
"""Status of the response by the `InvocationType` of the request (AWS, documentation)."""


class LambdaService(Agent):
    """The service Lambda: calls the function that a request names.

    Args:
        function: Returns the handler of a function by its name or ARN, with or without a
            qualifier; None if there is no handler.
        other: Performs requests for functions without a handler; None to fail them.
    """

    needs_loop = True

    def __init__(self, function: Callable[[str], Agent | None], other: Agent | None = None) -> None:
        self.function = function
        self.other = other

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the function and return the service's response.

        An asynchronous invocation (`InvocationType` `Event`) calls the function too, and ignores
        its result and its failure; a dry run calls nothing.

        Raises:
            StateError: `States.AgentNotFound` if the function has no handler;
                `Lambda.InvalidRequestContentException` for a `ClientContext` that is not
                base64-encoded JSON.
        """
        assert call is not None
        request = payload if isinstance(payload, dict) else {}
        name = _qualified_name(request)
        agent = None if name is None else self.function(name)
        if agent is None and self.other is not None:
            return await call.performer.reach(self.other, payload, call)
        if name is None or agent is None:
            given = request.get("FunctionName")
            shown = repr(given) if isinstance(given, str) else type_name(given)
            raise StateError(
                "States.AgentNotFound",
                f"state '{call.target.state}': no handler for the function {shown} is registered",
            )
        performer = call.performer
        status = STATUS.get(str(request.get("InvocationType")), 200)
        event = request.get("Payload", {})
        if status == 200:
            call.client_context = _client_context(request, call)
            result = copy_result(
                await performer.reach(agent, event, call), performer.limit, "lambda"
            )
            return _response(result, _version(name), status, call)
        if status == 202:
            with suppress(Exception):  # foreign code: its failure does not reach the caller
                await performer.reach(agent, event, call)
        return _response("", None, status, call)


def _qualified_name(request: dict[str, Json]) -> str | None:
    """Return the function of a request with its qualifier; None if it names none."""
    name, qualifier = request.get("FunctionName"), request.get("Qualifier")
    if not isinstance(name, str):
        return None
    function = name.rpartition("function:")[2]
    if isinstance(qualifier, str) and qualifier and ":" not in function:
        return f"{name}:{qualifier}"
    return name


def _version(name: str) -> str:
    """Return the version in a qualified name; the latest for an alias or no qualifier."""
    qualifier = name.rpartition("function:")[2].partition(":")[2]
    return qualifier if qualifier.isdigit() else LATEST


def _client_context(request: dict[str, Json], call: Call) -> Json:
    """Decode the `ClientContext` of a request; None without one."""
    encoded = request.get("ClientContext")
    if encoded is None:
        return None
    try:
        decoded = json.loads(b64decode(encoded, validate=True)) if type(encoded) is str else None
    except (ValueError, RecursionError):
        decoded = None
    if type(decoded) is not dict:
        raise RaisedError(
            "Lambda.InvalidRequestContentException",
            "Client context must be a valid Base64-encoded JSON object. "
            f"(Service: Lambda, Status Code: 400, Request ID: {request_id(call)})",
        )
    return decoded


def _response(payload: Json, version: str | None, status: int, call: Call) -> Json:
    """Return the response of the service with its metadata (AWS, recorded).

    Args:
        payload: The result of the function.
        version: The version that was called; None if the response does not name it.
        status: The status of the HTTP response.
        call: The call of the state.
    """
    now = call.performer.now()
    request = request_id(call)
    body = json.dumps(payload, ensure_ascii=False) if status == 200 else ""
    executed = {} if version is None else {"X-Amz-Executed-Version": version}
    headers: dict[str, Json] = {
        **executed,
        "x-amzn-Remapped-Content-Length": "0",
        "Connection": "keep-alive",
        "x-amzn-RequestId": request,
        "Content-Length": str(len(body.encode(errors="surrogatepass"))),
        "Date": formatdate(now, usegmt=True),
        "X-Amzn-Trace-Id": _trace_id(request, now),
        "Content-Type": "application/json",
    }
    return {
        **({} if version is None else {"ExecutedVersion": version}),
        "Payload": payload,
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": {name: headers[name] for name in sorted(headers, key=str.lower)},
            "HttpStatusCode": status,
        },
        "SdkResponseMetadata": {"RequestId": request},
        "StatusCode": status,
    }


def _trace_id(request: str, now: float) -> str:
    """Return the tracing header of a request: the same whenever the call is repeated."""
    random = uuid5(NAMESPACE_URL, request).hex
    return f"Root=1-{int(now):08x}-{random[:24]};Parent={random[16:]};Sampled=0"
