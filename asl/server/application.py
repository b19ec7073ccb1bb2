"""The application of the service: three faces over the same stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Unpack
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from asl.bindings import Bindings, takes_bindings
from asl.core.errors import AslError
from asl.engine.result import Result
from asl.executions import Store
from asl.executions.runner import RunnerProtocol
from asl.executions.scheduler import Scheduler
from asl.server.access.authentication import Authenticator
from asl.server.access.control import AccessControl, AccessSettings
from asl.server.access.oidc_settings import OidcSettings
from asl.server.access.principal import Principal
from asl.server.access.secret import FileSecret
from asl.server.access.sessions import SessionRenewal
from asl.server.access.users import NO_USERS, Users
from asl.server.amazon import AmazonFace
from asl.server.http import RequestLimits, SecurityHeaders
from asl.server.metrics import ProcessMetrics
from asl.server.monitoring import Monitoring
from asl.server.projects import DEFAULT, ServerProject, make_project
from asl.server.request_records import RequestRecorder
from asl.server.webhooks.face import WebhookFace
from asl.service.http import CONCURRENCY, AwsEndpoint
from asl.service.service import ACCOUNT, REGION
from asl.telemetry.log_lines import log_outcome

__all__ = ["ServerApplication", "app"]

ACCESS_PATHS = (
    *("/login", "/login/oidc", "/login/oidc/callback", "/logout"),
    "/links/{token}",
)
"""Paths of the pages of the whole service."""


class ServerApplication(Starlette):
    """The service as an ASGI application.

    Mount it with its lifespan: `FastAPI(lifespan=service.lifespan)`, then
    `web.mount("/workflows", service)`.

    Args:
        projects: The projects by name; a single one is served at the root, several below
            `/projects/NAME`.
        settings: Whom it serves, and how users are authenticated.
        concurrency: Maximum number of executions that run here at the same time; 0 if runners of
            other processes perform them.
        grace: Seconds that running calls have to end when the application stops.
        aws: Makes the face of AWS's protocol of a project; None for none.
        background: Further work while the application runs, such as watching files; it is
            cancelled at the end.
    """

    def __init__(
        self,
        projects: Mapping[str, ServerProject],
        settings: AccessSettings,
        *,
        concurrency: int = CONCURRENCY,
        grace: float = 0.0,
        aws: Callable[[ServerProject], AwsEndpoint] | None = None,
        background: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.projects = projects
        self._background = background
        self._concurrency = concurrency
        self._grace = grace
        self._runners: list[RunnerProtocol] = []

        self.metrics = ProcessMetrics()

        home = next(iter(projects.values())).store
        self.control = AccessControl(settings, home)
        api = LateFace(partial(_rest, self.control.identify))
        pages = LateFace(partial(_pages, self.control.identify))
        logins = LateFace(partial(_access_pages, self.control, projects))
        routes: list[BaseRoute] = [Route(path, logins) for path in ACCESS_PATHS]
        stores = {name: each.store for name, each in projects.items()}
        identify = self.control.identify
        routes += Monitoring(stores, self.metrics, lambda: self._runners, identify).routes
        if len(projects) > 1:
            routes.append(Route("/", logins))
        for name, project in projects.items():
            face = None if aws is None else AmazonFace(aws(project), project, self.control)
            faces = _faces(project, api, pages, logins, face)
            if len(projects) == 1:
                routes += faces
            else:
                routes.append(Mount(f"/projects/{name}", routes=faces))
        super().__init__(
            routes=routes,
            lifespan=self.lifespan,
            middleware=[
                Middleware(RequestRecorder, metrics=self.metrics),
                Middleware(SecurityHeaders),
                Middleware(SessionRenewal, settings.public_url),
                Middleware(RequestLimits),
            ],
        )

    @asynccontextmanager
    async def lifespan(self, application: object) -> AsyncIterator[None]:
        """Run the executions of all projects while the block runs.

        Args:
            application: The application that it is mounted in, or itself.
        """
        works = [Scheduler(each.store).run for each in self.projects.values()]
        works += [] if self._background is None else [self._background]
        tasks = [asyncio.create_task(work()) for work in works]
        try:
            async with AsyncExitStack() as runners:
                performed = [
                    each for each in self.projects.values() if not each.store.runs_elsewhere
                ]
                for project in performed if self._concurrency else ():
                    runner = project.store.runner(
                        concurrency=self._concurrency,
                        grace=self._grace,
                        report=partial(self._report, project.name),
                        **project.bindings,
                    )
                    self._runners.append(await runners.enter_async_context(runner))
                yield
        finally:
            self._runners.clear()
            for task in tasks:
                task.cancel()

    def _report(self, project: str, name: str, outcome: Result | str) -> None:
        """Count and log the outcome of an execution."""
        self.metrics.count_outcome(project, outcome)
        log_outcome(project, name, outcome)

    def stop(self) -> None:
        """Begin to stop, while requests are still answered: start nothing more, end streams."""
        for runner in self._runners:
            runner.stop(self._grace)
        for project in self.projects.values():
            project.hub.close()


def _faces(
    project: ServerProject, api: ASGIApp, pages: ASGIApp, logins: ASGIApp, aws: AmazonFace | None
) -> list[BaseRoute]:
    """Return the routes of a project."""
    faces: list[BaseRoute] = [
        Mount("/api/v1", _InProject(api, project)),
        Route("/ui/login", logins),
        Route("/ui/logout", logins),
        Mount("/ui", _InProject(pages, project)),
        Route("/hooks/{name}", WebhookFace(project).answer, methods=["POST"]),
        Route("/", _to_pages, methods=["GET"]),
    ]
    if aws is not None:
        faces.append(Route("/", aws.answer, methods=["POST"]))
    return faces


def _access_pages(control: AccessControl, projects: Mapping[str, ServerProject]) -> ASGIApp:
    """Return the pages of logins and links, whose templates need a library."""
    from asl.server.access.routes import access_pages

    return access_pages(control, projects)


def _rest(identify: Callable[[HTTPConnection], Principal]) -> ASGIApp:
    """Return the REST interface, whose libraries take longer to load than all else."""
    from asl.server.api.application import rest_application

    return rest_application(identify)


def _pages(identify: Callable[[HTTPConnection], Principal]) -> ASGIApp:
    """Return the pages, whose templates take a moment to load."""
    from asl.server.pages.application import pages_application

    return pages_application(identify)


def _to_pages(request: Request) -> Response:
    """Lead a browser to the pages."""
    return RedirectResponse(f"{quote(request.scope.get('root_path', ''))}/ui/", 303)


class LateFace:
    """A face that is loaded in a thread by its first request, so that the service starts fast.

    Args:
        load: Returns the face.
    """

    def __init__(self, load: Callable[[], ASGIApp]) -> None:
        self._load = load
        self._face: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._face is None:
            self._face = asyncio.create_task(asyncio.to_thread(self._load))
        face = await asyncio.shield(self._face)
        await face(scope, receive, send)


class _InProject:
    """Adds the project to the requests of a face."""

    def __init__(self, face: ASGIApp, project: ServerProject) -> None:
        self._face = face
        self._project = project

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._face({**scope, "asl.project": self._project}, receive, send)


@takes_bindings
def app(
    store: Store | str | os.PathLike[str] | Mapping[str, Store],
    *,
    users: Users | str | os.PathLike[str] | None = None,
    authenticators: Sequence[Authenticator] = (),
    local: bool = False,
    oidc: OidcSettings | None = None,
    public_url: str | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    concurrency: int = CONCURRENCY,
    **bindings: Unpack[Bindings],
) -> ServerApplication:
    """Return the service as an ASGI application, with the REST interface and the pages.

    Mount it with its lifespan, which runs the executions:

        service = asl.server.app("runs.db", agents={"Writer": write}, users="users.toml")
        web = FastAPI(lifespan=service.lifespan)
        web.mount("/workflows", service)

    Args:
        store: A store or its path; several stores by the name of their project.
        users: Users with their tokens and roles, or the path of the file; None for none.
        authenticators: Further ways in which requests are authenticated, such as the session of
            the application around it.
        local: Whether requests of this machine need no credentials; False by default.
        oidc: The identity provider; None for none.
        public_url: URL of the service in links and for the identity provider; by default that of
            each request.
        secret_file: File with the secret that signs sessions and links; by default it is in the
            store.
        concurrency: Maximum number of concurrent executions; 0 to leave them to runners elsewhere.
        bindings: As for `asl.run`; None for those of the stores.

    Raises:
        AslError: The users file or a binding is wrong.
    """
    projects = projects_of(store, bindings, ACCOUNT, REGION)
    settings = AccessSettings(
        users=_users(users),
        authenticators=authenticators,
        local=local,
        oidc=oidc,
        secret=None if secret_file is None else FileSecret(secret_file),
        public_url=public_url,
    )
    return ServerApplication(projects, settings, concurrency=concurrency)


def _users(given: Users | str | os.PathLike[str] | None) -> Users:
    if given is None or isinstance(given, Users):
        return given or NO_USERS
    from asl.server.access.users_file import UsersFile

    return UsersFile(given)


def projects_of(
    store: Store | str | os.PathLike[str] | Mapping[str, Store],
    bindings: Bindings,
    account: str,
    region: str,
) -> dict[str, ServerProject]:
    """Return the projects of stores.

    Raises:
        AslError: The mapping has no store, or a name is not usable in paths.
    """
    given = {name: value for name, value in bindings.items() if value is not None}
    if not isinstance(store, Mapping):
        opened = store if isinstance(store, Store) else Store(store, **bindings)
        return {DEFAULT: make_project(DEFAULT, opened, given, account, region)}
    if not store:
        raise AslError("a service needs at least one store")
    for name in store:
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise AslError(f"the name of a project consists of letters, digits, '-', '_': {name!r}")
    return {name: make_project(name, each, given, account, region) for name, each in store.items()}
