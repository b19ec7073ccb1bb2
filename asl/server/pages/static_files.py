"""Scripts and styles of the pages, from the package alone."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.server.problems import NotFound

__all__ = ["serve_file", "versioned"]

TYPES: Final = {
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "htmx-4.0.1.min.js": "text/javascript; charset=utf-8",
    "htmx-4.0.1.LICENSE.txt": "text/plain; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Media types of the files by name."""
_FOREVER: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


@cache
def versioned(name: str) -> str:
    """Return the name of a file with a digest of its content, which changes with it."""
    return f"{name}?v={sha256(_content(name)).hexdigest()[:12]}"


def _answer(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in TYPES:
        raise NotFound(f"there is no file {name!r}")
    return Response(_content(name), headers=_FOREVER, media_type=TYPES[name])


serve_file: Final = Route("/static/{name}", _answer)
"""The route of the files; they never change under one versioned name."""
