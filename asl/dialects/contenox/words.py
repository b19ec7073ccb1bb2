"""What a drawing of a chain says: handlers, and branches as they are written."""

from collections.abc import Mapping
from typing import Final

from asl.core.values import Json

__all__ = ["words"]

_OWN: Final = {
    "{% $not($exists($states.input.eval)) %}": "on_failure",
    "{% $contenox_asked": "calls what is asked about",
}
"""Conditions that no branch says, by how they begin."""


def words(part: Mapping[str, Json], written: Json) -> str | None:
    """Return when a choice rule is taken, or what a state does, as the chain says it."""
    if "Condition" in part:
        if isinstance(written, dict) and "operator" in written:
            said = (written["operator"], written.get("edge"), str(written.get("when", "")))
            return " ".join(filter(None, said))
        condition = str(part["Condition"])
        return next((said for begun, said in _OWN.items() if condition.startswith(begun)), None)
    if isinstance(written, dict) and part.get("Type") in ("Task", "Pass", "Fail"):
        handler = written.get("handler", written.get("type"))
        return handler if isinstance(handler, str) else None
    return None
