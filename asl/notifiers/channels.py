"""The channels `console`, `jsonl` and `apprise`, and the text of their notifications."""

import sys
from html import escape

from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.core.printable import printable
from asl.core.private_files import private_opener
from asl.core.values import Json, compact
from asl.notifiers import Notify

__all__ = ["apprise", "console", "jsonl"]

_TITLES = {
    "request": "A decision is needed",
    "reminder": "A decision is still needed",
    "escalation": "A decision is overdue",
}


def console(address: str) -> Notify:
    """Return the channel that prints to standard error; *address* is empty."""
    return _print


def _print(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
    body = _body(request, details).replace("\n", "\n  ")
    print(f"asl: {_title(kind, details)}\n  {body}", file=sys.stderr, flush=True)


def jsonl(address: str) -> Notify:
    """Return the channel that appends one line of JSON per notification to a file.

    Args:
        address: Path of the file.
    """

    def notify(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        line = compact({"kind": kind, "request": request, "details": details})
        # One write, since other processes append to the file as well.
        with open(address, "ab", buffering=0, opener=private_opener) as file:
            file.write(f"{line}\n".encode())

    return notify


def apprise(address: str) -> Notify:
    """Return the channel that sends mail, chat or text messages through the library Apprise.

    Args:
        address: URL of a service, in Apprise's form.

    Raises:
        AslError: Apprise is not installed or does not know the URL.
    """
    require_extra("apprise", "apprise", "the channel apprise")
    from apprise import Apprise

    client = Apprise()
    if not client.add(address):
        service = address.partition("://")[0]
        raise AslError(f"Apprise does not support the address 'apprise:{service}://...'")

    async def notify(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        message = {"title": _title(kind, details), "body": _body(request, details)}
        if "actions" in details:  # apprise turns it into text for services without markup
            message |= {"body": _html(request, details), "body_format": "html"}
        if not await client.async_notify(**message):
            raise OSError("Apprise could not deliver the notification")

    return notify


def _html(request: dict[str, Json], details: dict[str, Json]) -> str:
    """Return the body with a button for each option, which leads to the page of the request."""
    lines = [escape(line) for line in _body(request, details).split("\n")]
    buttons = [
        f'<a href="{escape(each["link"])}">[{escape(printable(each["option"]))}]</a>'
        for each in details["actions"]
    ]
    return f"<p>{'<br>'.join(lines)}</p><p>{' &nbsp; '.join(buttons)}</p>"


def _title(kind: str, details: dict[str, Json]) -> str:
    """Return the subject line: why a decision is needed, and from whom."""
    recipients = details.get("notify")
    return printable(_TITLES[kind] + ("" if recipients is None else f", {_join(recipients)}"))


def _body(request: dict[str, Json], details: dict[str, Json]) -> str:
    """Return the prompt, the options, the deadline, and the origin of a request."""
    until = f" until {request['expiresAt']}" if "expiresAt" in request else ""
    lines = [
        _quote(details.get("message") or ""),
        _quote(request["promptText"] or compact(request["prompt"])),
        printable(f"{' | '.join(request['options'])}{until}"),
        printable(_origin(request, details)),
        printable(details.get("link", "")),
    ]
    return "\n".join(line for line in lines if line)


def _origin(request: dict[str, Json], details: dict[str, Json]) -> str:
    """Return the names of the workflow and the execution, and the end of the request's id."""
    workflow, execution = details["workflow"], details["execution"]
    key = request["requestId"].partition(f":{execution}:/")[2]
    return f"workflow {workflow}, execution {execution}, request /{key}"


def _quote(text: str) -> str:
    """Return printable text; several lines are quoted, so that none can imitate one of ours."""
    shown = printable(text, lines=True)
    return "\n".join(f"> {line}" for line in shown.split("\n")) if "\n" in shown else shown


def _join(recipients: Json) -> str:
    names = recipients if type(recipients) is list else [recipients]
    return ", ".join(name if type(name) is str else compact(name) for name in names)
