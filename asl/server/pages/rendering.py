"""Templates of the pages, with their filters."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from asl.core.errors import AslError
from asl.core.printable import printable, printable_json
from asl.core.values import Json, compact
from asl.expr.times import format_timestamp, parse_timestamp, seconds_of
from asl.server.access.principal import APPROVER, OPERATOR, Principal, Unauthorized
from asl.server.pages.history import path_text, step_text
from asl.server.pages.static_files import versioned
from asl.server.projects import Access
from asl.server.views import execution_key, request_key, short_name

__all__ = ["NOTES", "is_fragment", "quoted", "render", "render_error", "templates", "ui_path"]

LONGEST: Final = 200_000
"""Characters of the largest value that a page shows as a whole."""
_HEADERS: Final = {"Cache-Control": "no-store"}
WORDS: Final = {
    "RUNNING": "Running",
    "PAUSED": "Paused",
    "SUCCEEDED": "Succeeded",
    "FAILED": "Failed",
    "TIMED_OUT": "Timed out",
    "ABORTED": "Aborted",
    "WAITING": "Waiting",
    "RETRYING": "Retrying",
    "CAUGHT": "Caught",
    "DAMAGED": "Damaged",
}
"""What the pages call a status of an execution or a state."""
NOTES: Final = {
    "RUNNING": "▸",
    "RETRYING": "↻",
    "WAITING": "‖",
    "SUCCEEDED": "✓",
    "FAILED": "✕",
    "TIMED_OUT": "◔",
    "ABORTED": "■",
    "CAUGHT": "!",
}
"""The shape of a status in drawings, which the style sheet repeats for texts."""
ADVICE: Final = {
    401: "Log in, or ask the operator of this service for an account.",
    403: "Ask the operator of this service for the role, or use another account.",
    404: "It may have been deleted or renamed: look for it in the lists.",
    409: "It has changed meanwhile: load the page again and look at its state.",
    413: "Send less data, or store it elsewhere and pass its address.",
    422: "Correct the text at the place that is named, then send it again.",
    503: "Try again in a moment; if it remains, run 'asl doctor' on the store.",
}
"""What a reader can do about an error, by its status."""


def ui_path(request: Request) -> str:
    """Return the path of the pages of this project, without a slash at its end."""
    path: str = request.scope.get("root_path", "")
    return quote(path.rstrip("/"))


def quoted(text: str) -> str:
    """Return a text as a part of an address."""
    return quote(text, safe="")


def is_fragment(request: Request) -> bool:
    """Return whether a script of a page asks for a part of it."""
    return "hx-request" in request.headers


def render(
    request: Request, access: Access, template: str, http_status: int = 200, **values: Any
) -> Response:
    """Return a page.

    Args:
        request: The request.
        access: The project and the user.
        template: Name of the template.
        http_status: The HTTP status.
        values: Variables of the template.
    """
    principal = access.principal
    return _answer(
        request,
        template,
        http_status,
        project=access.project.name,
        principal=principal,
        may_operate=principal.may(OPERATOR),
        may_approve=principal.may(APPROVER),
        **values,
    )


def render_error(request: Request, status: int, error: AslError) -> Response:
    """Return the page of an error, with what to do about it."""
    phrase = HTTPStatus(status).phrase
    hints = [*getattr(error, "__notes__", ())]
    if status in ADVICE:
        hints.append(ADVICE[status])
    template = "error_part.html" if is_fragment(request) else "error.html"
    response = _answer(
        request,
        template,
        status,
        project=request.scope["asl.project"].name,
        principal=_principal(request, error),
        may_operate=False,
        may_approve=False,
        code=status,
        phrase=phrase,
        message=str(error),
        hints=hints,
    )
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _principal(request: Request, error: AslError) -> Principal | None:
    """Return the user who meets an error; None for an unknown one."""
    if isinstance(error, Unauthorized):
        return None
    try:
        found: Principal = request.app.state.authenticate(request)
    except Unauthorized:
        return None
    return found


def _answer(request: Request, template: str, http_status: int, **values: Any) -> Response:
    ui = ui_path(request)
    below = f"/projects/{quoted(values['project'])}/ui"
    text = (
        templates()
        .get_template(template)
        .render(
            ui=ui,
            path=request.url.path,
            projects=f"{ui.removesuffix(below)}/" if ui.endswith(below) else None,
            **values,
        )
    )
    return HTMLResponse(text, http_status, _HEADERS)


@cache
def templates() -> Environment:
    """Return the templates; every value is escaped, and shows the characters that hide."""
    environment = Environment(
        loader=PackageLoader("asl.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "plain": _plain,
        "exact": escape,
        "blank": lambda text: "".join("\t" if each == "\t" else " " for each in text),
        "time": _time,
        "stamp": lambda stamp: _time(seconds_of(parse_timestamp(stamp))),
        "compactly": compact,
        "duration": format_duration,
        "pretty": pretty,
        "money": format_money,
        "grouped": lambda number: f"{number:,}",
        "word": lambda status: WORDS.get(status, str(status)),
        "key": execution_key,
        "request_key": request_key,
        "short": short_name,
        "segment": lambda text: quoted(str(text)),
        "query": lambda pairs: urlencode({k: v for k, v in pairs.items() if v not in (None, "")}),
    }
    environment.globals |= {
        "static": versioned,
        "notes": NOTES,
        "place_of": path_text,
        "step_of": step_text,
    }
    return environment


def _visible(value: object) -> object:
    """Return what a template writes, without characters that hide or reorder others."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(str(value), lines=True) if is_text else value


def _plain(text: object) -> Markup:
    """Return a text that has a direction of its own, whatever is around it."""
    return Markup("<bdi>{}</bdi>").format(printable(str(text), lines=True))


def _time(seconds: float | None) -> Markup:
    """Return a time in UTC; a script of the page shows it in the zone of the reader."""
    if seconds is None:
        return Markup("–")
    stamp = format_timestamp(seconds)
    shown = f"{stamp[:10]} {stamp[11:19]} UTC"
    return Markup('<time datetime="{}">{}</time>').format(stamp, shown)


def format_duration(seconds: float | None) -> str:
    """Return seconds for people: `40 ms`, `3.2 s`, `2 min 05 s`, `3 h 20 min`, `12 d 3 h`."""
    if seconds is None:
        return "–"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def format_money(amount: float, currency: str = "") -> str:
    """Return an amount with as many decimals as it needs, two to six."""
    text = f"{amount:,.6f}".rstrip("0")
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals:0<2}{f' {currency}' if currency else ''}"


def pretty(value: Json) -> Markup:
    """Return a value as indented JSON, shortened if it is very long."""
    text = printable_json(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n… {len(text) - LONGEST} more characters"
    return escape(text)
