"""`http:invoke` and `apigateway:invoke`: requests to endpoints that the document names."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from asl.aws.clients import Clients
from asl.aws.operations import foreign_errors, wrong_parameters
from asl.core.json_text import read_data
from asl.core.values import Json, compact
from asl.effects.runtime import RuntimeContext
from asl.engine.agent import Agent, Call
from asl.states.errors import RaisedError

__all__ = ["API_GATEWAY", "HTTP", "EndpointRequest", "RequestService"]

_API_HOST: Final = re.compile(r"[a-z0-9-]+\.execute-api\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?")
SIGNED: Final = "IAM_ROLE"
SIGNED_WITH_POLICY: Final = "RESOURCE_POLICY"


class Sent(NamedTuple):
    """A request to send."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    host: str | None = None
    """The `Host` header, if it is not that of the URL."""
    service: str | None = None
    """The service for which the request is signed; None for no signature."""


class RequestKind(NamedTuple):
    """One of the two integrations."""

    prepare: Callable[[dict[str, Json], Clients], Sent]
    unreachable: str
    """The error of a request without an answer."""
    status: Callable[[int], str]
    """Returns the name of the error for a status."""


class EndpointRequest(Agent):
    """A request to an endpoint as a plain function, which the runtime calls in a thread."""

    blocking = reaches_network = True

    def __init__(self, clients: Clients, kind: RequestKind) -> None:
        self.clients = clients
        self.kind = kind

    def answer(self, payload: Json, call: Call | None) -> Json:
        """Send the request and return status, headers and body of the response.

        Raises:
            RaisedError: The status is an error, or the endpoint does not answer.
        """
        assert call is not None
        parameters = payload if type(payload) is dict else {}
        with foreign_errors(self.kind.unreachable):
            clients = self.clients.of_task(call)
            sent = self.kind.prepare(parameters, clients)
            return self._result(_send(sent, clients))

    def _result(self, response: Any) -> Json:
        from http.client import responses

        status, text = response.status_code, response.content.decode(errors="replace")
        if not 200 <= status < 300:
            raise RaisedError(self.kind.status(status), text)
        headers: dict[str, list[Json]] = {}
        for name, value in response.headers.items():
            headers.setdefault(name, []).append(value)
        return {
            "Headers": headers,
            "ResponseBody": _body(text, response.headers.get("Content-Type", "")),
            "StatusCode": status,
            "StatusText": responses.get(status, ""),
        }


def _body(text: str, content_type: str) -> Json:
    """Return a body as JSON if it is of that type, else as text."""
    if "json" not in content_type:
        return text
    try:
        return read_data(text) if text else {}
    except ValueError:
        return text


def _send(sent: Sent, clients: Clients) -> Any:
    from botocore.awsrequest import AWSRequest

    host = {} if sent.host is None else {"Host": sent.host}
    request = AWSRequest(sent.method, sent.url, {**sent.headers, **host}, sent.body)
    if sent.service is not None:
        from botocore.auth import SigV4Auth

        signer = SigV4Auth(clients.credentials(), sent.service, clients.region)
        signer.add_auth(request)
    return clients.transport(sent.url).send(request.prepare())


class RequestService:
    """The service of one of the two integrations (protocol `Service`)."""

    def __init__(self, request: EndpointRequest) -> None:
        self.request = request

    async def serve(self, runtime: RuntimeContext, payload: Json, call: Call) -> Json:
        """Send the request and return the response.

        Raises:
            RaisedError: The status is an error, or the endpoint does not answer.
        """
        return await call.performer.reach(self.request, payload, call)


def _required(parameters: dict[str, Json], name: str) -> str:
    value = parameters.get(name)
    if type(value) is not str or not value:
        raise wrong_parameters(parameters, f'The field "{name}" is required but was missing')
    return value


def _mapping(parameters: dict[str, Json], name: str) -> dict[str, Json]:
    value = parameters.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise wrong_parameters(parameters, f"The value of the field '{name}' has an invalid format")
    return value


def _text(value: Json) -> str:
    return value if type(value) is str else compact(value)


def _pairs(values: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the members of a query; a list has one pair for each element."""
    for name, value in values.items():
        for each in value if type(value) is list else (value,):
            yield name, _text(each)


def _query(values: Mapping[str, Json]) -> str:
    return f"?{urlencode([*_pairs(values)])}" if values else ""


# API Gateway -------------------------------------------------------------------------------------


def _prepare_gateway(parameters: dict[str, Json], clients: Clients) -> Sent:
    """Return the request for an API, sent to the endpoint of the user if there is one."""
    host = _required(parameters, "ApiEndpoint")
    if clients.endpoint_url is None and not _API_HOST.fullmatch(host):
        # A signed request to any other host would give it the credentials' session token.
        raise wrong_parameters(parameters, "The value of the field 'ApiEndpoint' is no API Gateway")
    method = _required(parameters, "Method")
    headers = _mapping(parameters, "Headers")
    if not all(type(each) is list for each in headers.values()):
        message = "The value of the field 'Headers' has an invalid format"
        raise wrong_parameters(parameters, message)
    parts = (_text(parameters.get(name) or "") for name in ("Stage", "Path"))
    path = "/".join(quote(each.strip("/"), safe="/") for each in parts if each)
    body = parameters.get("RequestBody")
    if type(body) is dict and not parameters.get("AllowNullValues"):
        body = {name: each for name, each in body.items() if each is not None}
    sent_headers = {name: ",".join(map(_text, each)) for name, each in headers.items()}
    if body is not None:
        sent_headers.setdefault("Content-Type", "application/json")
    auth = parameters.get("AuthType")
    base = (clients.endpoint_url or f"https://{host}").rstrip("/")
    return Sent(
        method,
        f"{base}/{path}{_query(_mapping(parameters, 'QueryParameters'))}",
        sent_headers,
        None if body is None else compact(body).encode(),
        host if clients.endpoint_url else None,
        "execute-api" if auth in (SIGNED, SIGNED_WITH_POLICY) else None,
    )


API_GATEWAY: Final = RequestKind(
    _prepare_gateway,
    "ApiGateway.SdkClientException",
    lambda status: f"ApiGateway.{status}",
)


# HTTP --------------------------------------------------------------------------------------------


def _prepare_http(parameters: dict[str, Json], clients: Clients) -> Sent:
    """Return the request for a URL, with the credentials of its connection."""
    url = _required(parameters, "ApiEndpoint")
    method = _required(parameters, "Method")
    schemes = ("https",) if clients.endpoint_url is None else ("http", "https")
    if urlsplit(url).scheme not in schemes:
        raise wrong_parameters(parameters, "The value of the field 'ApiEndpoint' is no HTTPS URL")
    headers = {name: _text(each) for name, each in _mapping(parameters, "Headers").items()}
    query = _mapping(parameters, "QueryParameters")
    body = parameters.get("RequestBody")
    known, more_query, more_body = _connection(parameters, clients)
    if more_body:
        body = {**(body if type(body) is dict else {}), **more_body}
    content = None if body is None else _content(body, parameters, headers)
    return Sent(method, url + _query({**query, **more_query}), {**headers, **known}, content)


def _content(body: Json, parameters: dict[str, Json], headers: dict[str, str]) -> bytes:
    transform = _mapping(parameters, "Transform")
    if transform.get("RequestBodyEncoding") == "URL_ENCODED" and type(body) is dict:
        options = _mapping(transform, "RequestEncodingOptions")
        _default(headers, "application/x-www-form-urlencoded")
        return urlencode([*_encoded(body, str(options.get("ArrayFormat", "INDICES")))]).encode()
    _default(headers, "application/json")
    return _text(body).encode()


def _default(headers: dict[str, str], content_type: str) -> None:
    if "content-type" not in (name.lower() for name in headers):
        headers["Content-Type"] = content_type


def _encoded(body: dict[str, Json], form: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a form; *form* says how lists are written (AWS, documentation)."""
    for name, value in body.items():
        if type(value) is not list:
            yield name, _text(value)
        elif form == "COMMAS":
            yield name, ",".join(map(_text, value))
        else:
            suffixes = {"INDICES": "[{}]", "BRACKETS": "[]", "REPEAT": ""}
            for index, each in enumerate(value):
                yield name + suffixes.get(form, "").format(index), _text(each)


_PARTS: Final = ("header_parameters", "query_string_parameters", "body_parameters")
"""What a connection adds to a request, by the names in its secret."""


def _connection(
    parameters: dict[str, Json], clients: Clients
) -> tuple[dict[str, str], dict[str, Json], dict[str, Json]]:
    """Return the headers, query and body that a connection of EventBridge adds."""
    given = parameters.get("Authentication") or parameters.get("InvocationConfig")
    arn = given.get("ConnectionArn") if type(given) is dict else None
    if type(arn) is not str:
        return {}, {}, {}
    name = arn.partition(":connection/")[2].partition("/")[0] or arn
    connection = clients.client("events").describe_connection(Name=name)
    secrets = clients.client("secretsmanager")
    secret = json.loads(secrets.get_secret_value(SecretId=connection["SecretArn"])["SecretString"])
    headers, query, body = _parts(secret.get("invocation_http_parameters"))
    if "username" in secret:
        pair = f"{secret['username']}:{secret['password']}".encode()
        headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    elif "api_key_name" in secret:
        headers[secret["api_key_name"]] = secret["api_key_value"]
    else:
        headers["Authorization"] = f"Bearer {_oauth_token(secret, clients)}"
    return headers, query, body


def _parts(
    more: Mapping[str, Json] | None,
) -> tuple[dict[str, str], dict[str, Json], dict[str, Json]]:
    """Return headers, query and body in a secret."""
    headers, query, body = (
        {each["key"]: each.get("value", "") for each in (more or {}).get(part) or ()}
        for part in _PARTS
    )
    return headers, query, body


def _oauth_token(secret: dict[str, Json], clients: Clients) -> str:
    """Return an access token for the client credentials of a connection.

    Raises:
        RaisedError: States.Http.Socket; the server of the connection gives none.
    """
    headers, query, body = _parts(secret.get("oauth_http_parameters"))
    client = secret.get("client_parameters", secret)  # moto has them one level deeper
    form = {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        **body,
    }
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    url, method = secret["authorization_endpoint"], secret.get("http_method", "POST")
    sent = Sent(method, url + _query(query), headers, urlencode(form).encode())
    response = _send(sent, clients)
    if response.status_code != 200:
        text = f"{url} refuses the credentials of the connection: {response.status_code}"
        raise RaisedError("States.Http.Socket", text)
    return str(read_data(response.content.decode())["access_token"])


HTTP: Final = RequestKind(
    _prepare_http,
    "States.Http.Socket",
    lambda status: f"States.Http.StatusCode.{status}",
)
