"""Forms of the pages: who sends one, and that a page of this server has made it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import orjson
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from asl.core.errors import AslError
from asl.core.values import Json
from asl.server.access.authorization import access_of
from asl.server.access.cross_site import check_csrf
from asl.server.pages.rendering import ui_path
from asl.server.projects import Access

__all__ = [
    "field",
    "go_to",
    "json_field",
    "optional_field",
    "posted_form",
    "reason_in",
    "upload_or_field",
]

LARGEST_PART: Final = 8 * 1024 * 1024
"""Bytes of the largest field of a form."""
MOST_FIELDS: Final = 2_000
LONGEST_REASON: Final = 10_000


@asynccontextmanager
async def posted_form(request: Request, role: str) -> AsyncIterator[tuple[Access, FormData]]:
    """Yield the project, the user and the form of a request that changes something.

    Raises:
        Unauthorized: The request has no valid credentials.
        Forbidden: The user lacks the role, or no page of this session has made the form.
    """
    access = access_of(request, role)
    async with request.form(max_fields=MOST_FIELDS, max_part_size=LARGEST_PART) as form:
        check_csrf(request, form, access.principal)
        yield access, form


def optional_field(form: FormData, name: str) -> str | None:
    """Return the text of a field, None for an empty or absent one."""
    value = form.get(name)
    return value if isinstance(value, str) and value.strip() else None


def field(form: FormData, name: str) -> str:
    """Return the text of a field.

    Raises:
        AslError: It is empty or absent.
    """
    found = optional_field(form, name)
    if found is None:
        raise AslError(f"the field {name!r} is empty")
    return found


def reason_in(form: FormData) -> str | None:
    """Return the reason in a form, None without one.

    Raises:
        AslError: It is too long.
    """
    reason = optional_field(form, "reason")
    if reason is not None and len(reason) > LONGEST_REASON:
        raise AslError(f"a reason has at most {LONGEST_REASON} characters")
    return reason


def json_field(text: str, name: str) -> Json:
    """Return the value of a field in JSON.

    Raises:
        AslError: It is no JSON; the message names line and column.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise AslError(
            f"the field {name!r} is not JSON: {error.msg} at line {error.lineno}, "
            f"column {error.colno}"
        ) from None


async def upload_or_field(form: FormData, upload: str, name: str) -> tuple[str, str | None]:
    """Return the text of an uploaded file with its name, else that of a field.

    Raises:
        AslError: There is neither, or the file is not text.
    """
    file = form.get(upload)
    if isinstance(file, UploadFile) and file.filename:
        try:
            return (await file.read()).decode("utf-8-sig"), file.filename
        except UnicodeDecodeError:
            raise AslError(f"the file {file.filename!r} is not text in UTF-8") from None
    return field(form, name), None


def go_to(request: Request, place: str) -> Response:
    """Lead the browser to a page after a form."""
    return RedirectResponse(f"{ui_path(request)}/{place}", 303)
