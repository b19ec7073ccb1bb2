"""What a notification says, as text."""

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
    return _TITLES[kind] + ("" if whom is None else f", {_listed(whom)}")


def told(request: dict[str, Json], details: dict[str, Json]) -> str:
    """Return what is asked, by when, and how to name the request."""
    until = f" until {request['expiresAt']}" if "expiresAt" in request else ""
    lines = [
        details.get("message"),
        request["promptText"] or compact(request["prompt"]),
        f"{' | '.join(request['options'])}{until}",
        request["requestId"],
    ]
    return "\n".join(line for line in lines if line)


def _listed(whom: Json) -> str:
    names = whom if type(whom) is list else [whom]
    return ", ".join(name if type(name) is str else compact(name) for name in names)
