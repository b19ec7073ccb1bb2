"""The service as a process: what `asl serve` listens with."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from socket import socket
from typing import Any

from asl.executions import Store
from asl.server.access.control import AccessSettings
from asl.server.application import ServerApplication
from asl.server.projects import ServerProject, make_project
from asl.service.http import CONCURRENCY, AwsEndpoint
from asl.service.server import bind_socket, run_server
from asl.service.service import ACCOUNT, REGION

__all__ = ["ServerSettings", "listen", "serve_stores"]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the service listens and whom it serves.

    Attributes:
        account: Account of the ARNs.
        region: Region of the ARNs.
        keys: Secret access keys by access key id, for AWS's protocol; None to accept any.
        access: Whom it serves, and how users are authenticated.
        concurrency: Maximum number of executions that run at the same time.
    """

    account: str = ACCOUNT
    region: str = REGION
    keys: Mapping[str, str] | None = None
    access: AccessSettings = field(default_factory=AccessSettings)
    concurrency: int = CONCURRENCY


def listen(host: str, port: int) -> tuple[str, socket]:
    """Return the URL of a server on a port, 0 for a free one, and the socket for it.

    Raises:
        AslError: The address is in use, or not one of this machine.
    """
    listener = bind_socket(host, port)
    return f"http://{host}:{listener.getsockname()[1]}", listener


def serve_stores(
    stores: Mapping[str, Store],
    settings: ServerSettings,
    bindings: Mapping[str, Any],
    listener: socket,
    *,
    ready: Callable[[], object],
    background: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve stores until the process is interrupted; blocks the caller.

    Args:
        stores: The stores by the name of their project; a single one is at the root.
        settings: How to listen.
        bindings: Bindings of the executions.
        listener: The socket on which it listens.
        ready: Called when requests are answered.
        background: Further work meanwhile, such as watching files.
    """
    account, region = settings.account, settings.region

    def aws(project: ServerProject) -> AwsEndpoint:
        return AwsEndpoint(project.amazon, account, region, settings.keys)

    application = ServerApplication(
        {
            name: make_project(name, store, bindings, account, region)
            for name, store in stores.items()
        },
        settings.access,
        concurrency=settings.concurrency,
        aws=aws,
        background=background,
    )
    run_server(application, listener, ready)
