"""Templates: `{{ path or 'text' | filter }}`, `{{#if path}}`, `{{#each path}}`.

They have no arithmetic and no calls; a missing value is the empty text. The length of the result is
limited.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from asl.core.diagnostics import did_you_mean
from asl.core.errors import ExpressionFault, StateError
from asl.core.values import Json, compact, index_of, measure
from asl.core.work import WorkMeter, count_values, fail_beyond_limits
from asl.dialects.flujo.functions.conditions import OUTPUT

__all__ = ["CODE", "FILTERS", "TemplateScope", "parse", "paths_in", "render", "text_of"]

CODE: Final = "FL-TEMPLATE"
MAX_LENGTH: Final = 1_000_000
"""Characters of a rendered template."""
MAX_DEPTH: Final = 50
"""Levels of nested blocks."""
PART: Final = 10
"""Steps of work for each part of a template."""

_TAG = re.compile(r"\\?\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(
    r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"(?P<rest>(?:\.[A-Za-z_0-9-]+|\[\s*(?:'[^'\\]*'|\"[^\"\\]*\"|[0-9]{1,9})\s*\])*)\s*"
)
_STEP = re.compile(r"\.([A-Za-z_0-9-]+)|\[\s*(?:'([^']*)'|\"([^\"]*)\"|([0-9]+))\s*\]")
_TEXT = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*")
_OR = re.compile(r"(?<!\s)\s+or\s+")
_FILTER = re.compile(
    r"(?P<name>[A-Za-z_]\w*)"
    r"(?:\s*\((?:\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*|([^'\"()|]*))\))?"
)
FILTERS: Final = ("upper", "lower", "length", "join", "default", "tojson")
_ROOTS: Final = ("context", "previous_step", "steps", "resume_input", "this")


class TemplateScope(NamedTuple):
    """The values that a template may read."""

    context: Mapping[str, Json]
    previous_step: Json
    steps: Mapping[str, Json]
    resume_input: Json = None
    this: Json = None


Steps: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class ValuePart:
    """The first of some values that is not empty, with its filters."""

    choices: tuple[Steps | TextPart, ...]
    filters: tuple[tuple[str, str | None], ...]
    start: int


@dataclass(frozen=True, slots=True)
class BlockPart:
    """`{{#if}}` or `{{#each}}` around parts."""

    kind: str
    value: ValuePart
    parts: "tuple[Part, ...]"


Part: TypeAlias = "TextPart | ValuePart | BlockPart"


# --------------------------------------------------------------------------------------------
# Reading


@lru_cache(maxsize=512)
def parse(text: str) -> tuple[Part, ...]:
    """Parse a template.

    Raises:
        ExpressionFault: FL-TEMPLATE for a malformed template.
    """
    open_: list[tuple[str, ValuePart, int]] = []
    levels: list[list[Part]] = [[]]
    at = 0
    for match in _TAG.finditer(text, 0, text.rfind("}}") + 2):  # none is closed after that
        levels[-1].append(TextPart(text[at : match.start()]))
        at = match.end()
        if match[0][0] == "\\":
            levels[-1].append(TextPart(match[0][1:]))
            continue
        inner, start = match[1].strip(), match.start()
        if inner.startswith(("#if", "#each")):
            kind = "if" if inner.startswith("#if") else "each"
            value = _value(inner[len(kind) + 1 :], start)
            open_.append((kind, value, start))
            levels.append([])
            if len(levels) > MAX_DEPTH:
                message = f"blocks are nested deeper than {MAX_DEPTH} levels"
                raise ExpressionFault(message, start, CODE, "compute a part in an earlier step")
        elif inner.startswith("/"):
            if not open_ or open_[-1][0] != inner[1:].strip():
                hint = f"close {{{{#{open_[-1][0]}}}}} first" if open_ else "remove it"
                raise ExpressionFault(f"{{{{{inner}}}}} closes no block", start, CODE, hint)
            kind, value, _ = open_.pop()
            parts = tuple(levels.pop())
            levels[-1].append(BlockPart(kind, value, parts))
        elif inner.startswith("#"):
            hint = "use {{#if}} or {{#each}}"
            raise ExpressionFault(f"{{{{{inner}}}}} is not supported", start, CODE, hint)
        else:
            levels[-1].append(_value(inner, start))
    if open_:
        kind, _, start = open_[-1]
        raise ExpressionFault(f"{{{{#{kind}}}}} is not closed", start, CODE, f"add {{{{/{kind}}}}}")
    levels[0].append(TextPart(text[at:]))
    return tuple(part for part in levels[0] if part != TextPart(""))


def _value(text: str, start: int) -> ValuePart:
    head, *filters = _split(text, "|")
    choices = tuple(_choice(each, start) for each in _OR.split(head.strip()))
    return ValuePart(choices, tuple(_filter(each, start) for each in filters), start)


def _split(text: str, mark: str) -> list[str]:
    """Split at a mark outside of quotes."""
    parts, quote, begin = [], "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == mark:
            parts.append(text[begin:index])
            begin = index + 1
    return [*parts, text[begin:]]


def _choice(text: str, start: int) -> Steps | TextPart:
    if match := _TEXT.fullmatch(text):
        return TextPart(_unquote(match[1], match[2]))
    match = _PATH.fullmatch(text)
    if match is None or match["name"] not in _ROOTS:
        near = did_you_mean(re.split(r"[.\[]", text.strip())[0], _ROOTS)
        hint = near or f"start a path with {', '.join(_ROOTS)}"
        raise ExpressionFault(f"{text.strip()[:60]!r} is not a path", start, CODE, hint)
    steps = (next(each for each in one if each) for one in _STEP.findall(match["rest"]))
    return (match["name"], *steps)


def _filter(text: str, start: int) -> tuple[str, str | None]:
    match = _FILTER.fullmatch(text.strip())
    name = match["name"].lower() if match else None
    if match is None or name not in FILTERS:
        near = did_you_mean(re.split(r"\W", text.strip())[0], FILTERS)
        hint = near or f"the filters are {', '.join(FILTERS)}"
        raise ExpressionFault(f"there is no filter {text.strip()[:60]!r}", start, CODE, hint)
    if match[2] is not None or match[3] is not None:
        return name, _unquote(match[2], match[3])
    return name, (match[4] or "").strip() or None


def _unquote(single: str | None, double: str | None) -> str:
    return re.sub(r"\\(.)", r"\1", single if single is not None else double or "")


def paths_in(parts: tuple[Part, ...]) -> Iterator[tuple[Steps, int]]:
    """Yield the paths of a template with their offsets."""
    for part in parts:
        if isinstance(part, BlockPart):
            yield from paths_in((part.value, *part.parts))
        elif isinstance(part, ValuePart):
            yield from ((each, part.start) for each in part.choices if isinstance(each, tuple))


# --------------------------------------------------------------------------------------------
# Filling in


def render(text: str, scope: TemplateScope) -> str | None:
    """Return a rendered template, None for a malformed one.

    Raises:
        StateError: States.Runtime if it exceeds a limit.
    """
    if "{{" not in text:
        return text
    try:
        parts = parse(text)
    except ExpressionFault:
        return None
    with fail_beyond_limits():
        return _Filling().text(parts, scope)


class _Filling:
    """One template while it is rendered."""

    def __init__(self) -> None:
        self.length = 0
        self.meter = WorkMeter()

    def text(self, parts: tuple[Part, ...], scope: TemplateScope) -> str:
        return "".join(self.each(parts, scope))

    def each(self, parts: tuple[Part, ...], scope: TemplateScope) -> Iterator[str]:
        for part in parts:
            if isinstance(part, BlockPart):
                yield from self.block(part, scope)
                continue
            shown = part.text if isinstance(part, TextPart) else self.shown(self.found(part, scope))
            self.length += len(shown)
            self.meter.spend(PART)
            self.fits(self.length)
            yield shown

    def fits(self, length: int) -> None:
        """Raise StateError (States.Runtime) for a text that is too long."""
        if length > MAX_LENGTH:
            cause = f"a rendered template exceeds {MAX_LENGTH} characters"
            raise StateError("States.Runtime", cause)

    def shown(self, value: Json) -> str:
        """Return a value as text; raises StateError for one that is too long."""
        if isinstance(value, str):
            self.fits(len(value))
            self.meter.spend(len(value) >> 5)
        elif isinstance(value, list | dict):
            self.fits(measure(value, MAX_LENGTH))
            count_values(value, self.meter)
        return text_of(value)

    def found(self, value: ValuePart, scope: TemplateScope) -> Json:
        """Return the first value that is not empty, filtered."""
        found: Json = None
        for choice in value.choices:
            self.meter.spend(PART)
            found = choice.text if isinstance(choice, TextPart) else _look_up(choice, scope)
            if found not in (None, ""):
                break
        for name, argument in value.filters:
            found = self.filtered(name, argument, found)
        return found

    def filtered(self, name: str, argument: str | None, value: Json) -> Json:
        self.meter.spend(PART)
        match name:
            case "upper":
                return self.shown(value).upper()
            case "lower":
                return self.shown(value).lower()
            case "length":
                return len(value) if isinstance(value, str | list | dict) else 0
            case "join":
                listed, between = value if isinstance(value, list) else [value], argument or ""
                self.fits(len(listed) * len(between))
                self.meter.spend(2 * len(listed))
                parts = [self.shown(each) for each in listed]
                self.fits(sum(map(len, parts)))
                return between.join(parts)
            case "default":
                return (argument or "") if value in (None, "", []) else value
        self.shown(value)
        return compact(value)

    def block(self, block: BlockPart, scope: TemplateScope) -> Iterator[str]:
        value = self.found(block.value, scope)
        if block.kind == "if":
            if value:
                yield from self.each(block.parts, scope)
            return
        for item in value if isinstance(value, list) else ():
            self.meter.spend(PART)
            yield from self.each(block.parts, scope._replace(this=item))


def _look_up(steps: Steps, scope: TemplateScope) -> Json:
    root, *rest = steps
    value: Any = getattr(scope, root)
    if root == "context" and rest and value.get(rest[0]) is None and rest[0] in scope.steps:
        root, value = "steps", scope.steps
    for index, step in enumerate(rest):
        if root == "steps" and index == 1 and step in OUTPUT:
            continue
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (at := index_of(step, value)) is not None:
            value = value[at]
        else:
            return None
    return value


def text_of(value: Json) -> str:
    """Return a value as text: containers as compact JSON, null as the empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else compact(value)
