"""Placeholders in texts: `{{ name }}`, `{{ name.key[0] }}`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from asl.core.values import Json
from asl.expr.codemie.outputs import NOTHING, as_text, walked

__all__ = ["Placeholder", "argument", "filled", "looked_up", "placeholders"]

MAX_DEPTH: Final = 10
"""How often what a placeholder stands for may hold further ones."""
MAX_LENGTH: Final = 1_000_000
"""Characters that a filled text may have before its placeholders stay as they are."""

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
    """One `{{...}}` of a text; `steps` is None for what is not understood and stays as it is."""

    start: int
    end: int
    steps: Steps | None

    @property
    def name(self) -> str | None:
        """The name in scope that it begins with."""
        return None if self.steps is None else self.steps[0]


def placeholders(text: str) -> Iterator[Placeholder]:
    """Yield the placeholders of a text."""
    for match in _BRACES.finditer(text, 0, text.rfind("}}") + 2):  # none is closed behind that
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


def looked_up(steps: Steps, scope: Scope) -> Json:
    """Return what steps lead to, else NOTHING; a text on the way is parsed."""
    if steps[0] not in scope:
        return NOTHING
    return walked(scope[steps[0]], steps[1:])


def filled(text: str, scope: Scope, *, deep: bool = True) -> str:
    """Return a text with its placeholders resolved; what leads nowhere stays as it is.

    With *deep* those within what they stand for are resolved, too.
    """
    return _filled(text, scope, frozenset(), _Room(MAX_DEPTH if deep else 0))


class _Room:
    """How much text may still be put in, and how deep."""

    def __init__(self, depth: int) -> None:
        self.left = MAX_LENGTH
        self.depth = depth


def _filled(text: str, scope: Scope, open_: frozenset[str], room: _Room) -> str:
    if "{{" not in text:
        return text
    parts, at = [], 0
    for each in placeholders(text):
        parts.append(text[at : each.start])
        parts.append(_resolved(text[each.start : each.end], each, scope, open_, room))
        at = each.end
    parts.append(text[at:])
    return "".join(parts)


def _resolved(
    written: str, place: Placeholder, scope: Scope, open_: frozenset[str], room: _Room
) -> str:
    value = NOTHING if place.steps is None else looked_up(place.steps, scope)
    if value is NOTHING or room.left <= 0:
        return written
    assert place.steps is not None
    name = place.steps[0]
    shown = as_text(value)
    if isinstance(value, str) and name not in open_ and len(open_) < room.depth:
        shown = _filled(value, scope, open_ | {name}, room)
    room.left -= len(shown)
    return shown


def argument(value: Json, scope: Scope, *, deep: bool = True) -> Json:
    """Return an argument with its placeholders resolved, at any depth.

    A text that is one placeholder becomes what that stands for, of whatever type.
    """
    if isinstance(value, dict):
        return {key: argument(each, scope, deep=deep) for key, each in value.items()}
    if isinstance(value, list):
        return [argument(each, scope, deep=deep) for each in value]
    if not isinstance(value, str):
        return value
    found = list(placeholders(value))
    if len(found) == 1 and found[0].steps and value.strip() == value[found[0].start : found[0].end]:
        meant = looked_up(found[0].steps, scope)
        if meant is not NOTHING and not isinstance(meant, str):
            return meant
    return filled(value, scope, deep=deep)
