"""Clients of AWS's services, and the bounded transport below them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.engine.agent import Call
from asl.states.errors import RaisedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boto3.session import Session

__all__ = ["MAX_BYTES", "BoundedTransport", "Clients"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a response in bytes."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds for a connection."""
READ_TIMEOUT: Final = 60.0
"""Seconds without any byte of a response."""
_LONG: Final = {"lambda": 905.0, "bedrock-runtime": 305.0, "bedrock-agentcore": 305.0}
"""The same for services whose calls answer late."""
MAX_CONNECTIONS: Final = 64
"""Connections to a service, as many as there are threads for calls."""
MAX_ROLES: Final = 32
"""Maximum number of assumed roles whose clients are reused."""
_SESSION_NAME: Final = "asl"
"""The name of sessions of assumed roles."""
_MARGIN: Final = timedelta(minutes=5)
"""Time before the end of credentials at which they are renewed."""
_LOCAL_REGION: Final = "us-east-1"
_LOCAL_KEY: Final = "test"
"""Region and credentials for an endpoint of the user without any configuration."""


class Clients:
    """One client of each service, made when it is first needed; safe in threads.

    Args:
        session: The boto3 session; None for one of the environment.
        region: The region; None for that of the session.
        endpoint_url: Address for all services; None for those of AWS.

    Raises:
        AslError: The extra `aws` is not installed, or there is no region.
    """

    def __init__(
        self, session: Session | None, region: str | None, endpoint_url: str | None
    ) -> None:
        require_extra("boto3", "aws", "calling services of AWS")
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError

        try:
            self.session = Session() if session is None else session
        except BotoCoreError as error:
            raise AslError(f"services of AWS cannot be called: {error}") from None
        self.endpoint_url = endpoint_url
        self.region = region or self.session.region_name or (endpoint_url and _LOCAL_REGION)
        if self.region is None:
            raise AslError(
                "services of AWS cannot be called without a region: set AWS_REGION, or pass "
                "region=... or endpoint_url=..."
            )
        self._owned = session is None
        self._clients: dict[str, Any] = {}
        self._roles: dict[str, _AssumedRole] = {}
        self._lock = Lock()

    def client(self, service: str) -> Any:
        """Return the client of a service by botocore's name of it.

        Raises:
            botocore.exceptions.BotoCoreError: botocore has no such service.
        """
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._new_client(service)
            return self._clients[service]

    def of_task(self, call: Call) -> Clients:
        """Return the clients for a call: with the role in the state's `Credentials`, if any.

        Raises:
            RaisedError: States.TaskFailed; the role cannot be assumed.
        """
        given = call.credentials
        role = given.get("RoleArn") if type(given) is dict else None
        if type(role) is not str:
            return self
        with self._lock:
            known = self._roles.get(role)
        if known is None or known.expires <= datetime.now(UTC) + _MARGIN:
            known = self._assume(role)
            with self._lock:
                self._roles[role] = known
                while len(self._roles) > MAX_ROLES:
                    del self._roles[next(iter(self._roles))]
        return known.clients

    def _assume(self, role: str) -> _AssumedRole:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            answer = self.client("sts").assume_role(RoleArn=role, RoleSessionName=_SESSION_NAME)
        except (BotoCoreError, ClientError, ResponseParserError) as error:
            text = f"the role {role!r} in 'Credentials' cannot be assumed: {error}"
            raise RaisedError("States.TaskFailed", text) from None
        found = answer["Credentials"]
        keys = (found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
        clients = Clients(Session(*keys), self.region, self.endpoint_url)
        return _AssumedRole(clients, found["Expiration"])

    def credentials(self) -> Any:
        """Return the credentials of the session, None without any."""
        with self._lock:
            self._use_local_credentials()
            return self.session.get_credentials()

    def transport(self, url: str, read_timeout: float = READ_TIMEOUT) -> BoundedTransport:
        """Return a transport to a URL."""
        return BoundedTransport(url, read_timeout, os.environ.get("AWS_CA_BUNDLE") or True)

    def _use_local_credentials(self) -> None:
        """Use any key for an endpoint of the user, which needs none, if there are no others."""
        if self._owned and self.endpoint_url and self.session.get_credentials() is None:
            from boto3.session import Session

            self.session = Session(_LOCAL_KEY, _LOCAL_KEY)
        self._owned = False

    def _new_client(self, service: str) -> Any:
        from botocore.config import Config

        self._use_local_credentials()
        local = self.endpoint_url is not None
        config = Config(
            retries={"total_max_attempts": 1},
            parameter_validation=False,
            inject_host_prefix=not local,
            s3={"addressing_style": "path"} if local else None,
        )
        client = self.session.client(
            service, region_name=self.region, endpoint_url=self.endpoint_url, config=config
        )
        transport = self.transport(client.meta.endpoint_url, _LONG.get(service, READ_TIMEOUT))
        client.meta.events.register("before-send", transport.send)
        return client


class _AssumedRole(NamedTuple):
    """The clients with the credentials of a role."""

    clients: Clients
    expires: datetime


class BoundedTransport:
    """HTTP of botocore with a limit on the size of a response.

    Args:
        url: The address, which decides on the proxy.
        read_timeout: Seconds without any byte of a response.
        verify: The certificates to trust: a path, or True for the usual ones.
    """

    def __init__(self, url: str, read_timeout: float, verify: str | bool) -> None:
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        self.session = URLLib3Session(
            verify=verify,
            proxies=get_environ_proxies(url),
            timeout=(CONNECT_TIMEOUT, read_timeout),
            max_pool_connections=MAX_CONNECTIONS,
        )

    def send(self, request: Any, **_: object) -> Any:
        """Send a prepared request of botocore and return its response with a bounded body."""
        from botocore.awsrequest import AWSResponse

        request.stream_output = True
        response = self.session.send(request)
        body = _BoundedBody(response.raw)
        return AWSResponse(response.url, response.status_code, response.headers, body)


class _BoundedBody:
    """The body of a response, read as `urllib3` reads it."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.size = 0

    def read(self, amt: int | None = None) -> bytes:
        """Return the next bytes, all of them without *amt*.

        Raises:
            RaisedError: States.DataLimitExceeded; there are too many.
        """
        wanted = MAX_BYTES + 1 - self.size
        data: bytes = self.raw.read(wanted if amt is None else min(amt, wanted))
        self.size += len(data)
        if self.size > MAX_BYTES:
            self.raw.close()
            raise RaisedError(
                "States.DataLimitExceeded", f"a response of more than {MAX_BYTES} bytes"
            )
        return data

    def stream(self) -> Iterator[bytes]:
        """Yield the body in pieces."""
        while piece := self.read(65_536):
            yield piece

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()
