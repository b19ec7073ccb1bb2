"""The HTTP server of the service: an ASGI application on uvicorn."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final

import uvicorn

from asl.core.errors import AslError

__all__ = ["HOST", "PORT", "bind_socket", "run_server", "serving"]

HOST: Final = "127.0.0.1"
PORT: Final = 8083
"""The port of Step Functions Local."""
BACKLOG: Final = 2048
SHUTDOWN: Final = 3
"""Seconds that open requests, such as long polls, have to end."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port; 0 for a free one.

    Raises:
        AslError: The address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off the delay of small packets only where the protocol is named
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise AslError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    listener.listen(BACKLOG)
    return listener


def _raise_file_limit() -> None:
    """Allow this process as many open files as the system does: each long poll has a connection."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS refuses its own limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _protocol() -> Any:
    """Return the HTTP protocol: that of httptools if it is installed, else that of h11."""
    if find_spec("httptools") is None:
        return "h11"
    from asl.service.connections import BoundedHttpProtocol

    return BoundedHttpProtocol


def _server(application: Any) -> uvicorn.Server:
    config = uvicorn.Config(
        application,
        http=_protocol(),
        log_config=None,
        proxy_headers=False,  # whom to believe is a matter of the application
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN,
        lifespan="on",
    )
    return uvicorn.Server(config)


def run_server(
    application: Any,
    listener: socket.socket,
    ready: Callable[[], object] | None = None,
    on_stop: Callable[[], object] | None = None,
) -> None:
    """Serve an ASGI application until the process gets SIGTERM or SIGINT; blocks the caller.

    Args:
        application: The application.
        listener: The socket on which it listens.
        ready: Called when requests are answered.
        on_stop: Called when the server begins to stop, before open requests have ended.
    """
    _raise_file_limit()
    server = _ReportingServer(_server(application).config, ready or _nothing, on_stop or _nothing)
    with _signals_for_server():
        server.run(sockets=[listener])


class _ReportingServer(uvicorn.Server):
    """A server that calls functions when it has started, and when it begins to stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], object],
        on_stop: Callable[[], object],
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and end open requests."""
        self._on_stop()
        await super().shutdown(sockets)


def _nothing() -> None:
    """Do nothing."""


@contextmanager
def _signals_for_server() -> Iterator[None]:
    """Let signals only stop the server: after its end it raises those that it got once more."""
    if current_thread() is not main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, _ignore) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Ignore a signal, unlike `SIG_IGN` not also in processes that are started meanwhile."""


@contextmanager
def serving(application: Any, host: str = HOST, port: int = 0) -> Iterator[str]:
    """Serve an ASGI application in a thread while the block runs; yields its URL."""
    listener = bind_socket(host, port)
    server = _server(application)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.005)
        bound = listener.getsockname()
        yield f"http://{host}:{bound[1]}"
    finally:
        server.should_exit = True
        thread.join()
