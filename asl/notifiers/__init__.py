"""Layer 7: channels that notify approvers of requests.

A channel is a function in `asl.notifiers.channels` and a row of `CHANNELS`. It takes an address
and returns a function `(kind, request, details)`, which may be async: *kind* is `request`,
`reminder` or `escalation`, *request* the request as approvers see it, and *details* has `time`,
`workflow`, `execution`, `link` if one is configured, and `actions` with `option` and `link` of each
option if the notice is for one person.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from string import Formatter
from typing import Any, TypeAlias
from urllib.parse import quote

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.values import Json

__all__ = ["CHANNELS", "Notify", "bind_channels", "request_link"]

Notify: TypeAlias = Callable[[str, dict[str, Json], dict[str, Json]], object]
"""Function `(kind, request, details)`; an exception in it is recorded and fails nothing."""

CHANNELS = {
    "console": "console",
    "jsonl": "jsonl:FILE",
    "apprise": "apprise:URL",
}
"""The form of each channel's text, by the name of its function."""


def bind_channels(notify: Any) -> list[Notify]:
    """Return the functions that notify approvers.

    Args:
        notify: A function, the text of a channel, or a list of them; None for no notifications.

    Raises:
        AslError: There is no such channel, or its library is not installed.
    """
    if notify is None:
        return []
    if callable(notify):
        return [notify]
    if isinstance(notify, str):
        return [_channel(notify)]
    if not isinstance(notify, Iterable):
        raise AslError(f"'notify' must be a function, a channel or a list of them, got {notify!r}")
    return [channel for each in notify for channel in bind_channels(each)]


def request_link(template: Any) -> Callable[[str], str]:
    """Return a function that maps the id of a request to the URL of its page.

    Args:
        template: A URL with `{request}` as the placeholder of the id.

    Raises:
        AslError: The template is no such URL.
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
        raise AslError(f"unknown channel {text!r} in 'notify' ({hint})")
    if bool(address) is not (":" in CHANNELS[name]):
        raise AslError(f"invalid channel {text!r}; its form is {CHANNELS[name]!r}")
    found: Notify = getattr(import_module("asl.notifiers.channels"), name)(address)
    return found
