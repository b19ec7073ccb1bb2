"""Overrides: a merge patch on a template (RFC 7396; Specification 9.5)."""

from collections.abc import Iterator, Mapping
from typing import Final

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.pointers import escape
from asl.core.values import Json

__all__ = ["apply_patch", "check", "filter_patch"]

_SETTLED: Final = ("Parameters", "Imports", "_lock")
"""Fields of a template that are applied before a patch."""
_NEEDED: Final = ("StartAt", "States")
"""Fields of a machine that a patch must not remove."""


def apply_patch(value: Json, patch: Json, pointer: str = "") -> tuple[Json, list[str]]:
    """Return the patched value and the JSON Pointers of the new parts."""
    if type(patch) is not dict:
        return patch, [pointer]
    changed = [] if type(value) is dict else [pointer]
    merged = dict(value) if type(value) is dict else {}
    for key, part in patch.items():
        if part is None:
            merged.pop(key, None)
        else:
            merged[key], inner = apply_patch(merged.get(key), part, f"{pointer}/{escape(key)}")
            changed += inner
    return merged, changed


def filter_patch(states: Json, patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return the allowed part of a patch: no parameters or imports, and no new states."""
    own = {
        key: part
        for key, part in patch.items()
        if key not in _SETTLED and not (part is None and key in _NEEDED)
    }
    if type(states) is dict and type(own.get("States")) is dict:
        own["States"] = {name: part for name, part in own["States"].items() if name in states}
    return own


def check(states: Json, patch: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    """Yield unknown states and removed required fields (V-OVR-01), and late settings (V-INC-07)."""
    for key in _SETTLED:
        if key in patch:
            message = f"{key!r} of a template is settled before the override applies"
            place = f"{pointer}/{key}"
            yield Finding("V-INC-07", message, place, "change it in the template", at_key=True)
    for key in _NEEDED:
        if key in patch and patch[key] is None:
            message = f"without {key!r} the template is no machine"
            hint = "null removes it: set a value, or leave it out"
            yield Finding("V-OVR-01", message, f"{pointer}/{key}", hint, at_key=True)
    named = patch.get("States")
    known = states if type(states) is dict else {}
    for name in named if type(named) is dict else ():
        if name not in known:
            yield Finding(
                "V-OVR-01",
                f"the template has no state {name!r}",
                f"{pointer}/States/{escape(name)}",
                did_you_mean(name, known) or "an override cannot add states",
                at_key=True,
            )
