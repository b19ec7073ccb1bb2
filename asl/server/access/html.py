"""The pages of logins and links: templates without scripts."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

__all__ = ["render_page"]


def render_page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page that loads nothing, and that no other site can frame.

    Args:
        template: Name of the template.
        status: The HTTP status.
        values: Values of the template; every text is escaped.
    """
    text = _environment().get_template(template).render(style=Markup(_style()), **values)
    return HTMLResponse(text, status, {"Content-Security-Policy": _policy(), **_HEADERS})


_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""Without a referrer a browser would send forms with the origin `null`."""


@cache
def _environment() -> Environment:
    loader = PackageLoader("asl.server.access")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


@cache
def _style() -> str:
    return (files("asl.server.access") / "templates" / "style.css").read_text(encoding="utf-8")


@cache
def _policy() -> str:
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
