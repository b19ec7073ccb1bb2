"""Agents that are HTTP endpoints: parameters as JSON in the request, the result in the answer.

An endpoint fails a Task by its status, or by an answer `{"error": NAME, "cause": TEXT}` with a
status from 400 on; its usage is in the same object (`_tokens`, `_cost`, ...). A request is sent
once: repeating it is a matter of `Retry`. Redirections are errors unless they are allowed; then
they stay within the origin, since headers may hold secrets.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from asl.agents.agent_kinds import AgentKind
from asl.agents.aws_lambda import function_failure
from asl.agents.secrets import SecretFilter, secrets_of
from asl.core.environment import require_extra
from asl.core.errors import causes, mark_usage_unknown
from asl.core.json_text import MAX_ANSWER_VALUES, ValueCounter, read_data
from asl.core.values import Json, compact
from asl.core.work import READ_AT_ONCE, ReadingPace
from asl.engine.agent import Agent, Call, ExternalAgent, OpenAgents, ToolBounds
from asl.engine.usage import usage_of_failure
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "HTTP",
    "MAX_BYTES",
    "UNCOMPRESSED",
    "AnswerLimits",
    "AnswerRefusal",
    "HttpAgent",
    "causes",
    "limited_chunks",
    "pinned_transport",
    "reason",
    "redirect_hook",
    "size_hook",
]

MAX_BYTES = 16 * 1024 * 1024
TIMEOUT = 60.0
SHOWN = 500
"""Characters of an answer that the cause of an error shows."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Compressed answers could be larger than they look: none is asked for."""
IN_QUERY = ("GET", "DELETE")
"""The methods whose requests have no body."""
KEEPS_METHOD = (307, 308)
"""The redirections that repeat a request as it is."""
NAMES: Mapping[int, str] = {
    401: "States.Permissions",
    403: "States.Permissions",
    408: "States.Timeout",
    429: "States.RateLimitExceeded",
    504: "States.Timeout",
}
"""The errors of some statuses; those of all others are `Agent.APIError`."""


FUNCTION_ERROR: Final = "x-amz-function-error"
"""The header with which a Lambda endpoint answers for a function that has failed."""


class HttpAgent:
    """An endpoint that takes JSON and answers with JSON; its connections end with the execution.

    `timeout` is in seconds without any byte from the other side, `redirects` how many redirections
    within the same origin are followed, `max_bytes` how large an answer may be. Raises AslError
    where the extra `http` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        redirects: int = 0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        require_extra("httpx2", "http", "an HTTP agent")
        self.url = url
        self.method = method
        self.headers = dict(headers or {})
        self.timeout = timeout
        self.redirects = redirects
        self.max_bytes = max_bytes

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent as one run sees it, with connections of its own; it echoes no key."""
        secrets = secrets_of(self.headers)
        return (
            SecretFilter(_Endpoint(self), secrets).open_agent(open_agents)
            if secrets
            else _Endpoint(self)
        )


class _Endpoint(ExternalAgent):
    """The connections of one run."""

    enforces_hosts = reaches_network = True

    def __init__(self, agent: HttpAgent) -> None:
        self.agent = agent
        self.clients: dict[bool, httpx2.AsyncClient] = {}
        """Connections, and those that are bound to the addresses that tools may reach."""

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Send one request; raises RaisedError for an error answer."""
        assert call is not None
        import httpx2

        try:
            return await self._exchange(self._client(call), payload, call)
        except httpx2.TimeoutException as error:
            text = f"{self._where}: nothing came for {self.agent.timeout:g} s"
            raise _unless_unsent(RaisedError("States.Timeout", text), error) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise RaisedError("Agent.InvalidInput", f"{self._where}: {error}") from None
        except httpx2.RequestError as error:
            said = str(error) or reason(error)
            failure = RaisedError("Agent.NetworkError", f"{self._where}: {said}")
            raise _unless_unsent(failure, error) from None

    def _client(self, call: Call) -> httpx2.AsyncClient:
        import httpx2

        bound = call.bounds is not None and call.bounds.limits_network
        if bound not in self.clients:
            self.clients[bound] = httpx2.AsyncClient(
                timeout=self.agent.timeout,
                headers=UNCOMPRESSED,
                transport=pinned_transport(_bounds_of) if bound else None,
            )
        return self.clients[bound]

    @property
    def _where(self) -> str:
        return f"{self.agent.method} {self.agent.url}"

    async def _exchange(self, client: httpx2.AsyncClient, payload: Json, call: Call) -> Json:
        request = self._request(client, payload, call)
        for _ in range(self.agent.redirects + 1):
            request.extensions["bounds"] = call.bounds
            response = await client.send(request, stream=True)
            try:
                if not response.has_redirect_location:
                    return self._result(response, await self._body(response), call)
                request = self._followed(response)
            finally:
                await response.aclose()
        raise RaisedError("Agent.APIError", f"{self._where}: too many redirections")

    def _request(self, client: httpx2.AsyncClient, payload: Json, call: Call) -> httpx2.Request:
        agent = self.agent
        headers = {"Accept": "application/json", "Idempotency-Key": call.idempotency_key}
        if agent.method in IN_QUERY:
            url = client.build_request(agent.method, agent.url).url.copy_merge_params(
                _query(payload)
            )
            return client.build_request(agent.method, url, headers={**headers, **agent.headers})
        headers["Content-Type"] = "application/json"
        return client.build_request(
            agent.method,
            agent.url,
            content=compact(_sent(payload, call.context)).encode(),
            headers={**headers, **agent.headers},
        )

    def _followed(self, response: httpx2.Response) -> httpx2.Request:
        """Return the request that a redirection asks for, unless it must not be followed."""
        request, there = response.request, response.next_request
        where = response.headers["location"]
        if not self.agent.redirects:
            raise RaisedError("Agent.APIError", f"{self._where}: redirects to {where}")
        if there is None or there.url.origin != request.url.origin:
            raise RaisedError(
                "Agent.APIError", f"{self._where}: redirects to another origin, {where}"
            )
        if request.method != "GET" and response.status_code not in KEEPS_METHOD:
            raise RaisedError(
                "Agent.APIError",
                f"{self._where}: redirects with {response.status_code}, which drops the request",
            )
        return there

    async def _body(self, response: httpx2.Response) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise mark_usage_unknown(
                RaisedError("Agent.ParseError", f"{self._where}: the answer is compressed")
            )

        def too_large(text: str) -> RaisedError:
            failure = RaisedError("States.DataLimitExceeded", f"{self._where}: {text}")
            return mark_usage_unknown(failure)

        body, limits = bytearray(), AnswerLimits(self.agent.max_bytes)
        async for piece in limited_chunks(response.aiter_raw(), limits, too_large):
            body += piece
        return bytes(body)

    def _result(self, response: httpx2.Response, body: bytes, call: Call) -> Json:
        value, fault = None, ""
        try:
            value = read_data(body.decode()) if body else None
        except ValueError as error:
            fault = str(error)
        if FUNCTION_ERROR in response.headers:
            raise function_failure(_excerpt(body, call) if fault else body.decode(), value)
        if not response.is_success:
            self._failed(response, value, _excerpt(body, call))
        if fault:
            said = _excerpt(body, call)
            text = f"{self._where}: no JSON ({fault}): {said}"
            raise mark_usage_unknown(RaisedError("Agent.ParseError", text))
        return value

    def _failed(self, response: httpx2.Response, value: Json, said: str) -> NoReturn:
        """Raise the error in the answer of an endpoint, or that of its status."""
        usage = usage_of_failure(value)
        if (
            type(value) is dict
            and value.get("error")
            and value.keys() - (usage or {}).keys() <= {"error", "cause"}
            and all(type(value.get(name, "")) is str for name in ("error", "cause"))
        ):
            failure = RaisedError(value["error"], value.get("cause"))
            failure.usage = usage
            raise failure
        status = response.status_code
        text = f"{self._where}: {status} {response.reason_phrase}".rstrip()
        after = response.headers.get("retry-after")
        if after is not None:
            text += f", retry after {after}"
        text = f"{text}: {said}" if said else text
        failure = RaisedError(NAMES.get(status, "Agent.APIError"), text)
        failure.usage = usage
        raise failure

    async def close(self) -> None:
        """Close every connection."""
        while self.clients:
            _, client = self.clients.popitem()
            await client.aclose()


def _unless_unsent(failure: RaisedError, error: Exception) -> RaisedError:
    """Mark the usage of a failed request as unknown, unless it was not sent."""
    import httpx2

    unsent = httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout
    return failure if isinstance(error, unsent) else mark_usage_unknown(failure)


def _bounds_of(request: httpx2.Request) -> list[ToolBounds]:
    return [request.extensions["bounds"]]


def pinned_transport(
    bounds_of: Callable[[httpx2.Request], Iterable[ToolBounds]],
) -> httpx2.AsyncBaseTransport:
    """Return a transport that connects to the address that was looked at, and to no other.

    *bounds_of* returns the bounds of a request. No proxy is used.
    """
    import httpx2

    class Pinning(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            first, *others = bounds_of(request)
            url = request.url
            port = url.port or (443 if url.scheme == "https" else 80)
            address = await first.address(url.host, port)
            for each in others:
                each.admit(url.host, address)
            pinned = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            return await super().handle_async_request(pinned)

    return Pinning()


def reason(error: BaseException) -> str:
    """Return what the first of all causes says: libraries say less than the system."""
    *_, first = causes(error)
    return str(first) or type(first).__name__


class AnswerRefusal(RaisedError):
    """An answer that was not read, whatever it says."""


Hook: TypeAlias = "Callable[[httpx2.Response], Awaitable[None]]"
"""What the client of a library does with an answer before the library reads it."""


def redirect_hook(name: str) -> Hook:
    """Return a hook that raises Refused, *name*, for an answer that redirects."""

    async def watch(response: httpx2.Response) -> None:
        if response.has_redirect_location:
            where = f"{response.request.url} redirects to {response.headers['location']}"
            raise AnswerRefusal(
                name, f"{where}: give that address as the url, if it can be trusted"
            )

    return watch


class AnswerLimits(NamedTuple):
    """How much of an answer is read."""

    bytes: int
    values: int = MAX_ANSWER_VALUES
    """JSON values of the whole answer."""
    text_values: int | None = None
    """JSON values of one text, where an answer may consist of several; None for no limit."""


async def limited_chunks(
    parts: AsyncIterable[bytes], limits: AnswerLimits, refuse: Callable[[str], Exception]
) -> AsyncIterator[bytes]:
    """Yield an answer in small pieces, between which the event loop goes on.

    Args:
        parts: The answer as it arrives.
        limits: How much of it is read.
        refuse: Returns the exception to raise for an answer that is too large.
    """
    size, values = 0, ValueCounter(limits.values, limits.text_values)
    pace = ReadingPace()
    async for part in parts:
        size += len(part)
        if not values.feed(part):
            raise refuse(f"an answer of more than {values.exceeded_limit} values")
        if size > limits.bytes:
            raise refuse(f"an answer of more than {limits.bytes} bytes")
        for start in range(0, len(part), READ_AT_ONCE):
            piece = part[start : start + READ_AT_ONCE]
            await pace.count(len(piece))
            yield piece


def size_hook(
    name: str, limits: AnswerLimits, tell: Callable[[AnswerRefusal], None] | None = None
) -> Hook:
    """Return a hook that limits what a library reads of an answer.

    It raises Refused: *name* for an answer that is compressed, which could be larger than it looks,
    and `States.DataLimitExceeded` for one that exceeds a limit. What it raises it passes to *tell*,
    too, since there are libraries that drop it.
    """
    import httpx2

    def refused(name: str, text: str) -> AnswerRefusal:
        refusal = mark_usage_unknown(AnswerRefusal(name, text))
        if tell is not None:
            tell(refusal)
        return refusal

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self.stream = stream

        def __aiter__(self) -> AsyncIterator[bytes]:
            return limited_chunks(self.stream, limits, partial(refused, "States.DataLimitExceeded"))

        async def aclose(self) -> None:
            await self.stream.aclose()

    async def watch(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise refused(name, "the answer is compressed, and none was asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Bounded(response.stream)

    return watch


def _sent(payload: Json, context: Json) -> Json:
    """Return the request body: the parameters, with the context as `_context`."""
    return {**payload, "_context": context} if context and type(payload) is dict else payload


def _query(payload: Json) -> dict[str, Any]:
    if type(payload) is not dict:
        raise RaisedError(
            "Agent.InvalidInput", "a request without a body takes an object of parameters"
        )
    return {
        name: value if type(value) is str else compact(value)
        for name, value in payload.items()
        if value is not None
    }


def _excerpt(body: bytes, call: Call) -> str:
    # All of it, so that a secret is seen as a whole.
    text: str = call.hide(body.decode(errors="replace")).strip()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


HTTP = AgentKind("agents:Http", lambda spec, home: HttpAgent(**spec), secrets=("headers",))
