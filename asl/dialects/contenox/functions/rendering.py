"""Render templates with the variables of a chain, the values of the caller and the time."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json
from asl.core.work import WorkMeter, count_values, fail_beyond_limits
from asl.dialects.contenox.functions.chain_data import (
    open_data,
    runtime_error,
    transition_count,
    variables,
)
from asl.dialects.contenox.functions.sprig import SPRIG
from asl.dialects.contenox.functions.templates import (
    Macro,
    Node,
    ShowAction,
    TemplateBlock,
    TemplateCall,
    TemplateConstant,
    TemplateField,
    find_macros,
    parse,
)
from asl.dialects.contenox.functions.texts import template_text, to_json

__all__ = ["expand_macros", "render", "render_result", "require_caller_values"]

MAX_LENGTH: Final = 1_000_000
"""Characters of a rendered text."""
NODE: Final = 10
"""Steps of work for each node of a template."""
COSTLY: Final = frozenset(
    ("title", "untitle", "snakecase", "kebabcase", "initials", "sortAlpha", "uniq", "without")
)
"""Functions whose work on each character or item counts as a step."""
MISSING: Final = object()


def render(data: Json, text: str, now: str | None = None) -> str:
    """Render a template with the variables of a chain.

    Args:
        data: The data of the execution.
        text: The template.
        now: The time in RFC 3339; None without macros of the time.

    Raises:
        StateError: States.Runtime if it cannot be rendered.
    """
    return _Rendering(variables(data), data, now).text(text)


def render_result(result: Json, text: str) -> str:
    """Render a template with the members of a tool's result; raises as `render` does."""
    return _Rendering(result, None, None).text(text)


def expand_macros(data: Json, text: str, now: str | None = None) -> str:
    """Expand the macros of a text that is no template; unknown ones are left as they are."""
    rendering = _Rendering({}, data, now)
    parts, at = [], 0
    for start, end, macro in find_macros(text):
        parts += [text[at:start], rendering.macro(macro)]
        at = end
    return "".join([*parts, text[at:]])


def require_caller_values(data: Json, needed: list[str], given: Json) -> Json:
    """Return the input of the first task.

    Args:
        data: The data of the execution.
        needed: The payloads of `{{var:...}}` macros.
        given: The input.

    Raises:
        StateError: States.Runtime if the caller gives no value for one of them.
    """
    rendering = _Rendering({}, data, None)
    for each in needed:
        rendering.given(each)
    return given


class _Rendering:
    def __init__(self, root: Json, data: Json, now: str | None) -> None:
        self.root = root
        self.data = data
        self.now = now
        self.meter = WorkMeter()
        self.length = 0
        self.parts: list[str] = []

    def text(self, template: str) -> str:
        try:
            nodes = parse(template)
        except ExpressionFault as fault:
            raise runtime_error(f"the template is malformed: {fault}") from None
        with fail_beyond_limits():
            self.nodes(nodes, self.root)
        return "".join(self.parts)

    def put(self, text: str) -> None:
        self.length += len(text)
        if self.length > MAX_LENGTH:
            raise runtime_error(f"a rendered template exceeds {MAX_LENGTH} characters")
        self.parts.append(text)

    def nodes(self, nodes: tuple[Node, ...], dot: Any) -> None:
        for node in nodes:
            self.meter.spend(NODE)
            if isinstance(node, str):
                self.put(node)
            elif isinstance(node, ShowAction):
                found = self.value(node.value, dot)
                self.put(self.shown(found))
            elif isinstance(node, Macro):
                self.put(self.macro(node))
            else:
                self.block(node, dot)

    def shown(self, value: Any) -> str:
        """Return a value as text; raises StateError for one that is too large."""
        self.count(value)
        return template_text(None if value is MISSING else value)

    def count(self, value: Any) -> None:
        """Count the work on a value; raises StateError for one that is too large."""
        if isinstance(value, str):
            self.meter.spend(1 + (len(value) >> 5))
        elif isinstance(value, dict | list):
            count_values(value, self.meter)
        if isinstance(value, str) and len(value) > MAX_LENGTH:
            raise runtime_error(f"a rendered template exceeds {MAX_LENGTH} characters")

    def block(self, block: TemplateBlock, dot: Any) -> None:
        value = self.value(block.value, dot)
        if block.kind == "range":
            items = self.items(value)
            for item in items:
                self.meter.spend(NODE)
                self.nodes(block.body, item)
            if not items:
                self.nodes(block.otherwise, dot)
        elif is_truthy(value):
            self.nodes(block.body, value if block.kind == "with" else dot)
        else:
            self.nodes(block.otherwise, dot)

    def items(self, value: Any) -> list[Json]:
        if value is MISSING or value is None:
            return []
        if isinstance(value, dict):
            self.meter.spend(2 * len(value))
            return [value[key] for key in sorted(value)]
        if isinstance(value, list):
            return value
        raise runtime_error(f"range needs a list or an object, not {template_text(value)[:40]!r}")

    def value(self, expression: TemplateConstant | TemplateField | TemplateCall, dot: Any) -> Any:
        if isinstance(expression, TemplateConstant):
            return expression.value
        if isinstance(expression, TemplateField):
            return _field(self.root if expression.root else dot, expression.names)
        if expression.name in ("and", "or"):
            return self.joined(expression, dot)
        arguments = [self.value(each, dot) for each in expression.arguments]
        given = [None if each is MISSING else each for each in arguments]
        for each in given:
            self.count(each)
            if expression.name in COSTLY and isinstance(each, str | list):
                self.meter.spend(len(each))
        if expression.name == "join" and isinstance(given[0], str) and isinstance(given[1], list):
            self.meter.spend_bytes(len(given[0]) * len(given[1]))
        try:
            return _CALLS[expression.name](*given)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
            raise runtime_error(f"{expression.name!r} got arguments of the wrong type") from None

    def joined(self, expression: TemplateCall, dot: Any) -> Any:
        """Return the argument that decides `and` or `or`; those behind it are not evaluated."""
        found: Any = None
        for each in expression.arguments:
            found = self.value(each, dot)
            self.count(found)
            if is_truthy(found) is (expression.name == "or"):
                break
        return None if found is MISSING else found

    def macro(self, macro: Macro) -> str:
        name, payload = macro.name, macro.payload
        if name == "var":
            return self.given(payload)
        if name == "edge_count":
            edge = "->".join(each.strip() for each in payload.split("->", 1))
            return str(transition_count(self.data, edge))
        if name in ("now", "date") and self.now is not None:
            return format_time(self.now, payload or ("" if name == "now" else "2006-01-02"))
        return macro.written

    def given(self, payload: str) -> str:
        """Return the first value that the caller gives for these names, else the text after `|`."""
        named = open_data(self.data).get("vars", {})
        first, *others = (each.strip() for each in payload.split("|"))
        if first in named:
            return template_text(named[first])
        for other in others:
            if not other.startswith("var:"):
                return other
            if other[4:].strip() in named:
                return template_text(named[other[4:].strip()])
        raise runtime_error(f"{{{{var:{first}}}}} has no value; add it to 'vars' of the input")


def is_truthy(value: Any) -> bool:
    """Return whether a value is true in a template: not absent, false, zero or empty."""
    return value is not MISSING and bool(value)


def _field(value: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if value is MISSING:
            return MISSING
        if not isinstance(value, dict):
            raise runtime_error(f"{template_text(value)[:40]!r} has no field {name!r}")
        value = value.get(name, MISSING)
    return value


def _compare_ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Json, Json], bool]:
    def ordered(left: Json, right: Json) -> bool:
        numbers = all(type(each) in (int, float) for each in (left, right))
        if not numbers and not (isinstance(left, str) and isinstance(right, str)):
            raise TypeError
        return compare(left, right)

    return ordered


def _same(left: Json, right: Json) -> bool:
    numbers = all(type(each) in (int, float) for each in (left, right))
    return (numbers or type(left) is type(right)) and left == right


def _index(value: Any, *keys: Json) -> Any:
    for key in keys:
        if isinstance(value, list) and type(key) is int and 0 <= key < len(value):
            value = value[key]
        elif isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        else:
            raise LookupError
    return value


def _print(*values: Json) -> str:
    """Return values as text, with a blank between two that are no strings."""
    parts: list[str] = []
    for index, each in enumerate(values):
        if index and not isinstance(each, str) and not isinstance(values[index - 1], str):
            parts.append(" ")
        parts.append(template_text(each))
    return "".join(parts)


_VERB: Final = re.compile(r"%(\.[0-9])?([a-zA-Z%])")


def _printf(form: Any, *values: Json) -> str:
    """Return values as text in the places of %s, %v, %q, %t, %d, %f or %.2f."""
    coming = iter(values)

    def verb(match: re.Match[str]) -> str:
        digits, kind = match[1], match[2]
        if kind == "%":
            return "%"
        value = next(coming, MISSING)
        if kind == "f" and type(value) in (int, float):
            return f"{value:{digits or '.6'}f}"
        kinds = {"s": object, "v": object, "q": str, "t": bool, "d": int}
        wanted = None if digits or value is MISSING else kinds.get(kind)
        if wanted is None or (wanted is not object and type(value) is not wanted):
            raise ValueError
        return to_json(value) if kind == "q" else template_text(value)

    told = _VERB.sub(verb, form)
    if next(coming, MISSING) is not MISSING:
        raise ValueError
    return told


def _truncate(length: Any, text: Any) -> str:
    return str.__getitem__(text, slice(length) if length >= 0 else slice(length, None))


_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "float64": (int, float),
    "bool": bool,
    "slice": list,
    "map": dict,
    "invalid": type(None),
}
"""The kinds of Go by the types of values."""


def _kind_is(kind: Any, value: Json) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "bool" or type(value) is not bool)


def _dict(*pairs: Any) -> dict[str, Json]:
    if len(pairs) % 2:
        raise ValueError
    return {template_text(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    "eq": lambda first, *others: any(_same(first, each) for each in others),
    "ne": lambda first, other: not _same(first, other),
    "lt": _compare_ordered(lambda left, right: left < right),
    "le": _compare_ordered(lambda left, right: left <= right),
    "gt": _compare_ordered(lambda left, right: left > right),
    "ge": _compare_ordered(lambda left, right: left >= right),
    "not": lambda value: not is_truthy(value),
    "len": len,
    "index": _index,
    "print": _print,
    "printf": _printf,
    "default": lambda fallback, value: value if is_truthy(value) else fallback,
    "coalesce": lambda *values: next((each for each in values if is_truthy(each)), None),
    "empty": lambda value: not is_truthy(value),
    "ternary": lambda one, other, value: one if is_truthy(value) else other,
    "toJson": lambda value: to_json(value, ordered=True),
    "trunc": _truncate,
    "upper": lambda text: str.upper(text),
    "lower": lambda text: str.lower(text),
    "trim": lambda text: str.strip(text),
    "quote": lambda value: to_json(template_text(value)),
    "join": lambda mark, values: str.join(mark, [template_text(each) for each in list(values)]),
    "contains": lambda part, text: str.__contains__(text, part),
    "hasPrefix": lambda part, text: str.startswith(text, part),
    "hasSuffix": lambda part, text: str.endswith(text, part),
    "kindIs": _kind_is,
    "has": lambda value, values: any(_same(value, each) for each in list.copy(values)),
    "dict": _dict,
    **{name: function for name, (function, *_) in SPRIG.items()},
}

# --------------------------------------------------------------------------------------------
# Times

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LAYOUT: Final = re.compile(
    r"January|Jan|Monday|Mon|2006|Z07:00|-07:00|MST|\.0+|01|02|03|04|05|06|15|PM|1|2|3"
)
_PARTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "January": lambda at: _MONTHS[at.month - 1],
    "Jan": lambda at: _MONTHS[at.month - 1][:3],
    "Monday": lambda at: _DAYS[at.weekday()],
    "Mon": lambda at: _DAYS[at.weekday()][:3],
    "2006": lambda at: f"{at.year:04}",
    "06": lambda at: f"{at.year % 100:02}",
    "01": lambda at: f"{at.month:02}",
    "1": lambda at: str(at.month),
    "02": lambda at: f"{at.day:02}",
    "2": lambda at: str(at.day),
    "15": lambda at: f"{at.hour:02}",
    "03": lambda at: f"{(at.hour + 11) % 12 + 1:02}",
    "3": lambda at: str((at.hour + 11) % 12 + 1),
    "04": lambda at: f"{at.minute:02}",
    "05": lambda at: f"{at.second:02}",
    "PM": lambda at: "AM" if at.hour < 12 else "PM",
    "Z07:00": lambda at: "Z",
    "-07:00": lambda at: "+00:00",
    "MST": lambda at: "UTC",
}


def format_time(now: str, layout: str) -> str:
    """Return a time (RFC 3339, UTC) in a layout of Go; without one in RFC 3339 with seconds."""
    at = datetime.fromisoformat(now.replace("Z", "+00:00"))

    def part(match: re.Match[str]) -> str:
        written = match[0]
        if written.startswith(".0"):
            return f".{at.microsecond:06}"[: len(written)].ljust(len(written), "0")
        return _PARTS[written](at)

    return _LAYOUT.sub(part, layout or "2006-01-02T15:04:05Z07:00")
