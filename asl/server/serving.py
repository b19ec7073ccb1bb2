"""The service as a process: what `asl serve` listens with."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from socket import socket
from typing import Any, Final
from urllib.parse import urlsplit

from asl.executions import Store
from asl.server.access.authentication import ProxyHeader, is_local_name
from asl.server.access.control import AccessSettings
from asl.server.access.links import LinkSigner, link_notices
from asl.server.access.oidc_settings import OidcSettings, check_provider
from asl.server.access.proxies import TrustedProxies
from asl.server.access.secret import FileSecret, StoreSecret
from asl.server.access.users import NO_USERS
from asl.server.application import ServerApplication
from asl.server.projects import ServerProject, make_project
from asl.service.http import CONCURRENCY, AwsEndpoint
from asl.service.server import bind_socket, run_server
from asl.service.service import ACCOUNT, REGION

__all__ = ["ServerSettings", "access_settings", "listen", "serve_stores"]

OIDC_SECRET: Final = "ASL_OIDC_SECRET"
"""The environment variable with the secret of this service at its identity provider."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the service listens and whom it serves.

    Attributes:
        account: Account of the ARNs.
        region: Region of the ARNs.
        keys: Secret access keys by access key id, for AWS's protocol; None to accept any.
        access: Whom it serves, and how users are authenticated.
        concurrency: Maximum number of executions that run at the same time.
        grace: Seconds that running calls have to end when the server is stopped.
    """

    account: str = ACCOUNT
    region: str = REGION
    keys: Mapping[str, str] | None = None
    access: AccessSettings = field(default_factory=AccessSettings)
    concurrency: int = CONCURRENCY
    grace: float = 0.0


def listen(host: str, port: int) -> tuple[str, socket]:
    """Return the URL of a server on a port, 0 for a free one, and the socket for it.

    Raises:
        AslError: The address is in use, or not one of this machine.
    """
    listener = bind_socket(host, port)
    return f"http://{host}:{listener.getsockname()[1]}", listener


def access_settings(
    host: str,
    *,
    users_file: str | None,
    public_url: str | None,
    secret_file: str | None,
    issuer: str | None,
    client_id: str | None,
    client_secret_file: str | None,
    user_claim: str,
    roles_claim: str,
    proxies: Sequence[str],
    proxy_header: str | None,
    proxy_roles_header: str | None,
) -> AccessSettings:
    """Return whom a service serves, from the options of `asl serve`.

    Without users, an identity provider and a proxy that names users, requests of this machine need
    no credentials if the service is for this machine only, also by its public URL.

    Raises:
        AslError: A file cannot be read, or a proxy is no address.
    """
    users = NO_USERS
    if users_file is not None:
        from asl.server.access.users_file import UsersFile

        users = UsersFile(users_file)
    oidc = None
    if issuer is not None and client_id is not None:
        client_secret = os.environ.get(OIDC_SECRET)
        if client_secret_file is not None:
            client_secret = FileSecret(client_secret_file).read()
        oidc = OidcSettings(issuer, client_id, client_secret, user_claim, roles_claim)
        check_provider(oidc)
    trusted = TrustedProxies(proxies)
    proxy = None
    if proxy_header is not None:
        proxy = ProxyHeader(proxy_header, trusted, users, proxy_roles_header)
    public = urlsplit(public_url or "").hostname
    has_users = users_file is not None or oidc is not None or proxy is not None
    return AccessSettings(
        users=users,
        local=not has_users and is_local_name(host) and is_local_name(public or host),
        proxy=proxy,
        proxies=trusted,
        oidc=oidc,
        secret=None if secret_file is None else FileSecret(secret_file),
        public_url=public_url,
    )


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
    account, region, access = settings.account, settings.region, settings.access
    secret = access.secret or StoreSecret(next(iter(stores.values())))

    def aws(project: ServerProject) -> AwsEndpoint:
        return AwsEndpoint(project.amazon, account, region, settings.keys)

    def project(name: str, store: Store) -> ServerProject:
        given = dict(bindings)
        if access.public_url is not None:
            given["notify"] = link_notices(
                given.get("notify"),
                access.users,
                LinkSigner(secret, access.public_url),
                name,
                store.clock.now,
            )
        return make_project(name, store, given, account, region)

    application = ServerApplication(
        {name: project(name, store) for name, store in stores.items()},
        access,
        concurrency=settings.concurrency,
        grace=settings.grace,
        aws=aws,
        background=background,
    )
    run_server(application, listener, ready, application.stop)
