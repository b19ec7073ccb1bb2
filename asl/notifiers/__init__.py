"""Layer 6: channels by which people hear what they are asked.

A channel is one module with a function `channel(address)`, and one row of the table. What it
returns is called with what happened (`request`, `reminder` or `escalation`), the request as people
see it, and details (`time`, `workflow`, `execution`, and `link` where one is configured); it may be
async.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import isawaitable
from string import Formatter
from typing import Any, TypeAlias
from urllib.parse import quote

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json

__all__ = ["CHANNELS", "Notify", "bound", "request_link"]

Notify: TypeAlias = Callable[[str, dict[str, Json], dict[str, Json]], object]
"""Takes `(kind, request, details)`; what it raises is recorded and does no harm."""

CHANNELS = {
    "console": "console",
    "jsonl": "jsonl:FILE",
    "apprise": "apprise:URL",
}
"""The channels by their names, which are those of their modules, and how they are written."""


def bound(notify: Any) -> Notify | None:
    """Return what tells people: a function, a channel by its text, or all of several.

    Raises AslError for what is no channel, and for one that lacks a library.
    """
    if notify is None or callable(notify):
        return notify  # type: ignore[no-any-return]  # its arguments are the caller's business
    if isinstance(notify, str):
        return _channel(notify)
    if not isinstance(notify, Iterable):
        raise AslError(f"notify is a function, a channel or a list of them, not {notify!r}")
    each = [found for one in notify if (found := bound(one)) is not None]
    return each[0] if len(each) == 1 else _all(each) if each else None


def request_link(template: Any) -> Callable[[str], str]:
    """Return a function that returns the address of the page of a request.

    Args:
        template: A URL in which `{request}` stands for the id of the request.

    Raises:
        AslError: It is no such URL.
    """
    try:
        fields = {field for _, field, *_ in Formatter().parse(template) if field is not None}
    except (TypeError, ValueError):
        fields = set()
    if fields != {"request"} or not template.startswith(("https://", "http://")):
        raise AslError(
            f"'request_link' must be a URL with '{{request}}' for the id of the request, as in "
            f"'https://host/requests/{{request}}', got {template!r}"
        )
    return lambda request: template.replace("{request}", quote(request, safe=""))


def _channel(text: str) -> Notify:
    name, _, address = text.partition(":")
    if name not in CHANNELS:
        hint = did_you_mean(name, CHANNELS) or f"there are {', '.join(CHANNELS.values())}"
        raise AslError(f"there is no channel {text!r} to notify people ({hint})")
    if bool(address) is not (":" in CHANNELS[name]):
        raise AslError(f"{text!r} is no channel: it is written {CHANNELS[name]}")
    found: Notify = import_module(f"asl.notifiers.{name}").channel(address)
    return found


def _all(channels: list[Notify]) -> Notify:
    async def tell(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        failures = []
        for channel in channels:
            try:
                said = channel(kind, request, details)
                if isawaitable(said):
                    await said
            except Exception as error:  # foreign code: the others are told all the same
                failures.append(error)
        if failures:
            raise failures[0] if len(failures) == 1 else ExceptionGroup("channels", failures)

    return tell
