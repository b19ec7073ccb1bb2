"""HTTP servers on loopback that a test scripts, request by request."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request, and how to answer it."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def answer(self, status: int, body: bytes | Any = b"", **headers: str) -> None:
        """Answer with a status, a body (JSON unless it is bytes) and headers (`_` is `-`)."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.begin(status, **{"Content-Length": str(len(data)), **headers})
        self.write(data)

    def begin(self, status: int, **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()

    def write(self, data: bytes) -> None:
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def cut(self) -> None:
        """Close the connection as it is."""
        self.handler.close_connection = True


@dataclass
class HttpServer:
    """A server that runs; `requests` is what it was asked."""

    url: str
    requests: list[Exchange] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(answer: Answer) -> Iterator[HttpServer]:
    """Serve requests with a function until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            exchange = Exchange(
                self,
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(length),
            )
            server.requests.append(exchange)
            answer(exchange)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that goes away is no fault of the server."""

    listening = Server(("127.0.0.1", 0), Handler)
    server = HttpServer(f"http://127.0.0.1:{listening.server_address[1]}")
    thread = threading.Thread(target=lambda: listening.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        listening.shutdown()
        listening.server_close()
        thread.join()
