"""What a notification says, as text."""

from asl.core.printable import printable
from asl.core.values import Json, compact

__all__ = ["title", "told"]

_TITLES = {
    "request": "A decision is needed",
    "reminder": "A decision is still needed",
    "escalation": "A decision is overdue",
}


def title(kind: str, details: dict[str, Json]) -> str:
    """Return one line that says why somebody is told."""
    whom = details.get("notify")
    return printable(_TITLES[kind] + ("" if whom is None else f", {_listed(whom)}"))


def told(request: dict[str, Json], details: dict[str, Json]) -> str:
    """Return what is asked, by when, in which execution, and how to name the request."""
    until = f" until {request['expiresAt']}" if "expiresAt" in request else ""
    lines = [
        _quoted(details.get("message") or ""),
        _quoted(request["promptText"] or compact(request["prompt"])),
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


def _quoted(text: str) -> str:
    """Return printable text; several lines are quoted, so that none passes for one of ours."""
    shown = printable(text, lines=True)
    return "\n".join(f"> {line}" for line in shown.split("\n")) if "\n" in shown else shown


def _listed(whom: Json) -> str:
    names = whom if type(whom) is list else [whom]
    return ", ".join(name if type(name) is str else compact(name) for name in names)
