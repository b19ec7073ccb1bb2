"""Options of the reader for cases where the documentation and the engines differ."""

from dataclasses import dataclass, fields
from typing import Any, Final

from asl.core.errors import AslError
from asl.core.values import Json
from asl.dialects.base import parse_names

__all__ = ["NAMES", "FlujoOptions", "parse_options"]


@dataclass(frozen=True)
class FlujoOptions:
    """The options of the reader; the first value of each is the default."""

    pause: str = "main"
    """Context of the rules of a pause: that before the state, or (runtime) the current one."""
    next_state: str = "fresh"
    """Whether a `next_state` counts in its own hop only, or until another is written."""
    event: str = "last-step"
    """Whether the last step decides between success and failure, or the first that fails."""
    hop_cap: str = "stop"
    """What a machine does at its maximum of hops: stop or fail."""
    expressions: str = ""
    """How values compare (`asl.dialects.flujo.functions.conditions.MODES`)."""
    fail_states: tuple[str, ...] = ()
    """End states that fail the run."""

    def said(self) -> dict[str, Json]:
        """Return the options that differ from the defaults."""
        usual = FlujoOptions()
        found: dict[str, Json] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != getattr(usual, each.name):
                found[each.name] = [*value] if isinstance(value, tuple) else value
        return found


NAMES: Final = frozenset(each.name for each in fields(FlujoOptions))
_WORDS: Final = {
    "pause": ("main", "runtime"),
    "next_state": ("fresh", "engine"),
    "event": ("last-step", "fail-fast"),
    "hop_cap": ("stop", "fail"),
    "expressions": ("", "strict", "engine"),
}


def parse_options(**given: Any) -> FlujoOptions:
    """Return the options; raises AslError for an invalid value."""
    for name, words in _WORDS.items():
        if name in given and given[name] not in words:
            known = ", ".join(word or "''" for word in words)
            raise AslError(f"{name} is one of {known}, not {given[name]!r}")
    if "fail_states" in given:
        given["fail_states"] = parse_names("fail_states", given["fail_states"])
    return FlujoOptions(**given)
