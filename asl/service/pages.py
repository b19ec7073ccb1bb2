"""Pages of lists: an opaque token names the position of the next page."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson

from asl.core.values import Json
from asl.service.errors import ServiceError
from asl.stores.executions import LARGEST_NUMBER

__all__ = ["DEFAULT_SIZE", "next_token", "page_of", "page_size", "token_position"]

DEFAULT_SIZE: Final = 100
"""Elements of a page if the request does not say."""
_PAGING: Final = ("nextToken", "maxResults")
T = TypeVar("T")


def page_size(request: Mapping[str, Any]) -> int:
    """Return the largest number of elements of the requested page."""
    return request.get("maxResults") or DEFAULT_SIZE


def page_of(request: Mapping[str, Any], elements: Sequence[T]) -> tuple[Sequence[T], Json]:
    """Return the requested page of a list, and the token of the next one, None for the last.

    Raises:
        ServiceError: InvalidToken.
    """
    begin, size = token_position(request) or 0, page_size(request)
    end = begin + size
    return elements[begin:end], next_token(request, end) if end < len(elements) else None


def next_token(request: Mapping[str, Any], position: int) -> str:
    """Return the token of a position in the list of a request."""
    body = orjson.dumps([position, _digest(request)])
    return base64.urlsafe_b64encode(body).decode()


def token_position(request: Mapping[str, Any]) -> int | None:
    """Return the position that the token of a request names, None without a token.

    Raises:
        ServiceError: InvalidToken: the token is not one for the list of this request.
    """
    token = request.get("nextToken")
    if token is None:
        return None
    try:
        position, digest = orjson.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError, TypeError):
        position, digest = None, None
    is_own = digest == _digest(request)
    if is_own and isinstance(position, int) and 0 <= position < LARGEST_NUMBER:
        return position
    raise ServiceError("InvalidToken", "Invalid Token: 'Invalid token'")


def _digest(request: Mapping[str, Any]) -> str:
    """Return a digest of what a request lists."""
    listed = {name: value for name, value in request.items() if name not in _PAGING}
    return hashlib.sha256(orjson.dumps(listed, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
