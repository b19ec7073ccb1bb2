"""A plain HTTP server on loopback whose answers a test decides, for requests that moto has not."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


class Answer(NamedTuple):
    """One response."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {"Content-Type": "application/json"}


@contextmanager
def endpoint_server(answer: Callable[[Received], Answer]) -> Iterator[tuple[str, list[Received]]]:
    """Run a server; yield its URL and the list of what it receives."""
    received: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size).decode()
            request = Received(self.command, self.path, dict(self.headers.items()), body)
            received.append(request)
            found = answer(request)
            data = found.body if isinstance(found.body, bytes) else json.dumps(found.body).encode()
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
