"""Routes for monitoring: metrics, and probes of containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from anyio import fail_after, to_thread
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from asl.core.errors import AslError
from asl.executions import Store
from asl.executions.runner import RunnerProtocol
from asl.server.access.principal import VIEWER, Principal
from asl.server.metrics import MEDIA_TYPE, ProcessMetrics
from asl.server.problems import problem_of
from asl.service.server import serving

__all__ = ["Monitoring", "ProcessMetrics", "serve_monitoring"]

PATIENCE = 5.0
"""Seconds in which a store must answer."""


class Monitoring:
    """What a process shows of itself.

    Args:
        stores: Its stores by the name of their project.
        metrics: What it has counted.
        runners: Returns its runners; a process without any is ready, too.
        identify: Returns the user of a request for metrics; None if they need none.
    """

    def __init__(
        self,
        stores: Mapping[str, Store],
        metrics: ProcessMetrics,
        runners: Callable[[], Sequence[RunnerProtocol]],
        identify: Callable[[HTTPConnection], Principal] | None = None,
    ) -> None:
        self._stores = stores
        self._metrics = metrics
        self._runners = runners
        self._identify = identify

    @property
    def routes(self) -> list[Route]:
        """The routes; only that of metrics needs a user."""
        return [
            Route("/metrics", self._show_metrics, methods=["GET"]),
            Route("/healthz", self._show_health, methods=["GET"]),
            Route("/readyz", self._show_readiness, methods=["GET"]),
        ]

    async def _show_metrics(self, request: Request) -> Response:
        """Show the metrics of the projects that the user may see."""
        try:
            text = await to_thread.run_sync(self._metrics.text, self._visible(request))
        except AslError as error:
            return problem_of(error)
        return Response(text, media_type=MEDIA_TYPE)

    def _visible(self, request: Request) -> Mapping[str, Store]:
        if self._identify is None:
            return self._stores
        principal = self._identify(request)
        principal.require(VIEWER)
        shown = principal.projects
        return {
            name: store for name, store in self._stores.items() if shown is None or name in shown
        }

    async def _show_health(self, request: Request) -> Response:
        """Show that the process answers."""
        return PlainTextResponse("ok\n")

    async def _show_readiness(self, request: Request) -> Response:
        """Show whether the stores can be read and the runners run; nothing else."""
        is_ready = all(each.is_running for each in self._runners())
        try:
            with fail_after(PATIENCE):
                await to_thread.run_sync(self._read, abandon_on_cancel=True)
        except (AslError, TimeoutError):
            is_ready = False
        return PlainTextResponse("ok\n") if is_ready else PlainTextResponse("not ready\n", 503)

    def _read(self) -> None:
        for store in self._stores.values():
            store.executions(limit=1)


@contextmanager
def serve_monitoring(
    stores: Mapping[str, Store],
    metrics: ProcessMetrics,
    runners: Callable[[], Sequence[RunnerProtocol]],
    host: str,
    port: int,
) -> Iterator[str]:
    """Serve metrics and probes in a thread while the block runs, without users; yields the URL.

    Args:
        stores: As for `Monitoring`.
        metrics: As for `Monitoring`.
        runners: As for `Monitoring`.
        host: Address to listen on.
        port: Port; 0 for a free one.

    Raises:
        AslError: The address is in use, or not one of this machine.
    """
    with serving(Starlette(routes=Monitoring(stores, metrics, runners).routes), host, port) as url:
        yield url
