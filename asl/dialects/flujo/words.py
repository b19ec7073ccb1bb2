"""What a drawing of a blueprint says: conditions as they are written."""

import re
from collections.abc import Mapping
from typing import Final

from asl.core.values import Json

__all__ = ["words"]

_OWN: Final = tuple(
    (re.compile(pattern, re.DOTALL), said)
    for pattern, said in (
        (r"\$flujo_(?:key|until)\(.*\) = null", "it fails"),
        (r"\$flujo_key\(.*\) = '(.*)'", r"\1"),
        (r"\$flujo_rounds\(.*\) < (.*)", r"fewer than \1 rounds"),
        (r"\$flujo_following\(.*\) = null", "no next_state"),
        (r"\$states\.input\.machine\.hops >= (.*)", r"\1 hops"),
        (r"\$states\.input\.(?:context\.current_state|decision) = '(.*)'", r"\1"),
        (r"'(.*)' in \$states\.input\.routes", r"\1"),
    )
)
"""Conditions that no expression of the blueprint says."""


def words(part: Mapping[str, Json], written: Json) -> str | None:
    """Return when a choice rule is taken, as the blueprint says it."""
    if "Condition" not in part:
        return None
    if isinstance(written, dict) and isinstance(written.get("when"), str):
        return " ".join(written["when"].split())
    if isinstance(written, str):
        return " ".join(written.split())
    condition = str(part["Condition"]).removeprefix("{%").removesuffix("%}").strip()
    for pattern, said in _OWN:
        match = pattern.fullmatch(condition)
        if match is not None:
            return match.expand(said)
    return None
