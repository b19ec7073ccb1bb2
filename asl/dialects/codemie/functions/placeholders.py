"""Placeholders in texts: `{{ name }}`, `{{ name.key[0] }}`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from asl.core.values import Json
from asl.core.work import WorkMeter
from asl.dialects.codemie.functions.outputs import NOTHING, as_bounded_text, follow_steps

__all__ = ["Placeholder", "fill", "find_placeholders", "look_up", "resolve_argument"]

MAX_DEPTH: Final = 10
"""Levels of placeholders within the values of placeholders."""
PLACEHOLDER: Final = 10
"""Steps of work for each placeholder."""
MAX_LENGTH: Final = 1_000_000
"""Characters of inserted values; further placeholders are not resolved."""

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(
    r"\.(?P<key>[A-Za-z_][A-Za-z0-9_]*|[0-9]+)|\[\s*(?:(?P<index>[0-9]{1,9})"
    r"|'(?P<single>[^'\\]*)'|\"(?P<double>[^\"\\]*)\")\s*\]"
)

Steps: TypeAlias = tuple[str, ...]
Scope: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A `{{...}}` in a text; `steps` is None if it is malformed, so it is left as it is."""

    start: int
    end: int
    steps: Steps | None

    @property
    def name(self) -> str | None:
        """The first name of the placeholder, None if it is malformed."""
        return None if self.steps is None else self.steps[0]


def find_placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders of a text."""
    for match in _BRACES.finditer(text, 0, text.rfind("}}") + 2):  # none is closed after that
        yield Placeholder(match.start(), match.end(), _steps(match[1].strip()))


def _steps(text: str) -> Steps | None:
    name = _NAME.match(text)
    if name is None:
        return None
    steps, at = [name[0]], name.end()
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        steps.append(next(each for each in step.groups() if each is not None))
        at = step.end()
    return tuple(steps)


def look_up(steps: Steps, scope: Scope, meter: WorkMeter) -> Json:
    """Return the value at some steps, else NOTHING; texts along them are parsed."""
    if steps[0] not in scope:
        return NOTHING
    return follow_steps(scope[steps[0]], steps[1:], meter)


def fill(text: str, scope: Scope, *, deep: bool = False, meter: WorkMeter | None = None) -> str:
    """Return a text with its placeholders resolved; unresolvable ones are left as they are.

    Args:
        text: The text.
        scope: The values by name.
        deep: Whether to resolve placeholders within inserted values.
        meter: Counts the work; None for a new one.

    Raises:
        WorkExceeded: The values are too large.
    """
    return _Filling(scope, MAX_DEPTH if deep else 0, meter or WorkMeter()).text(text, frozenset())


class _Filling:
    """One text while its placeholders are resolved."""

    def __init__(self, scope: Scope, depth: int, meter: WorkMeter) -> None:
        self.scope = scope
        self.depth = depth
        self.meter = meter
        self.left = MAX_LENGTH
        """Characters that may still be inserted."""

    def text(self, text: str, within: frozenset[str]) -> str:
        if "{{" not in text:
            return text
        self.meter.spend(len(text) >> 3)
        parts, at = [], 0
        for each in find_placeholders(text):
            self.meter.spend(PLACEHOLDER)
            parts.append(text[at : each.start])
            parts.append(self.resolved(text[each.start : each.end], each, within))
            at = each.end
        parts.append(text[at:])
        return "".join(parts)

    def resolved(self, written: str, place: Placeholder, within: frozenset[str]) -> str:
        if place.steps is None or self.left <= 0:
            return written
        value = look_up(place.steps, self.scope, self.meter)
        if value is NOTHING:
            return written
        name = place.steps[0]
        if isinstance(value, str) and name not in within and len(within) < self.depth:
            shown = self.text(value, within | {name})
        else:
            shown = as_bounded_text(value, self.meter)
        self.left -= len(shown)
        self.meter.spend_bytes(len(shown))
        return shown


def resolve_argument(value: Json, scope: Scope, meter: WorkMeter, *, deep: bool = False) -> Json:
    """Return an argument with its placeholders resolved, at any depth.

    A text that consists of one placeholder becomes the value of any type.
    """
    meter.spend()
    if isinstance(value, dict):
        return {key: resolve_argument(each, scope, meter, deep=deep) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve_argument(each, scope, meter, deep=deep) for each in value]
    if not isinstance(value, str):
        return value
    found = list(find_placeholders(value))
    if len(found) == 1 and found[0].steps and value.strip() == value[found[0].start : found[0].end]:
        meant = look_up(found[0].steps, scope, meter)
        if meant is not NOTHING and not isinstance(meant, str):
            return meant
    return fill(value, scope, deep=deep, meter=meter)
