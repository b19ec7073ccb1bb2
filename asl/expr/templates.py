"""Templates of JSONPath: payload templates, and text with expressions.

In a payload template keys ending in `.$` are dynamic; their values are paths of any kind or
intrinsic calls (Specification 3.4). A text such as `Review {{ $.title }}` is scanned once; inserted
values are not scanned again, so data cannot add expressions (Specification 3.8).
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from asl.core.errors import ExpressionFault
from asl.core.lazy import lazy_pattern
from asl.core.pointers import escape
from asl.core.values import Json, compact
from asl.expr import intrinsics
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.expr.intrinsics import IntrinsicCall
from asl.expr.paths import Path, parse_path
from asl.expr.paths.jayway import JAVA_BLANKS

__all__ = [
    "SUFFIX",
    "Insertion",
    "InterpolationPart",
    "ParsedExpression",
    "check_text",
    "compile_template",
    "compile_text",
    "dynamic_fields",
    "is_dynamic",
    "is_path",
    "parse_expression",
    "parse_text",
    "paths_in",
    "template_faults",
]

SUFFIX = ".$"


def compile_template(template: Json, expression: Callable[[str, str], Evaluate]) -> Evaluate:
    """Compile a payload template.

    Parts without dynamic values are shared between evaluations: data is never edited in place.

    Args:
        template: The template.
        expression: Compiles one dynamic value: `(field name with suffix, text) -> Evaluate`.
    """
    if not is_dynamic(template):
        return constant(template)
    if type(template) is list:
        parts = [compile_template(part, expression) for part in template]
        return lambda data, frame: [part(data, frame) for part in parts]
    fields = [
        (key[: -len(SUFFIX)], expression(key, value))
        if key.endswith(SUFFIX)
        else (key, compile_template(value, expression))
        for key, value in template.items()
    ]
    if len(fields) == 1:
        ((only, value),) = fields
        return lambda data, frame: {only: value(data, frame)}
    if len(fields) == 2:
        (first, one), (second, two) = fields
        return lambda data, frame: {first: one(data, frame), second: two(data, frame)}

    def evaluate(data: Json, frame: ExpressionFrame) -> Json:
        return {key: value(data, frame) for key, value in fields}

    return evaluate


def is_dynamic(template: Json) -> bool:
    """Return whether a template has a dynamic field at any depth."""
    todo = [template]
    while todo:
        part = todo.pop()
        if type(part) is dict:
            for key in part:
                if key.endswith(SUFFIX):
                    return True
            todo += part.values()
        elif type(part) is list:
            todo += part
    return False


def dynamic_fields(template: Json, pointer: str = "") -> Iterator[tuple[str, str, Json]]:
    """Yield `(pointer, key, value)` of every dynamic field at any depth, in document order."""
    if type(template) is dict:
        for key, value in template.items():
            here = f"{pointer}/{escape(key)}"
            if key.endswith(SUFFIX):
                yield here, key, value
            else:
                yield from dynamic_fields(value, here)
    elif type(template) is list:
        for index, part in enumerate(template):
            yield from dynamic_fields(part, f"{pointer}/{index}")


def template_faults(template: Json, pointer: str = "") -> Iterator[tuple[str, ExpressionFault]]:
    """Yield `(pointer, fault)` for malformed dynamic fields (V-ST-09)."""
    if type(template) is dict:
        for key, value in template.items():
            here = f"{pointer}/{escape(key)}"
            if not key.endswith(SUFFIX):
                yield from template_faults(value, here)
            elif key == SUFFIX:
                yield here, ExpressionFault("a field named '.$' has no name", 0, "V-ST-09")
            elif type(value) is not str:
                yield (
                    here,
                    ExpressionFault(
                        f"the value of {key!r} must be a string: a path or an intrinsic call",
                        0,
                        "V-ST-09",
                        hint=_computed(value)
                        or f"write {key[: -len(SUFFIX)]!r} for a literal value",
                    ),
                )
            elif key[: -len(SUFFIX)] in template:
                yield (
                    here,
                    ExpressionFault(
                        f"both {key[: -len(SUFFIX)]!r} and {key!r} are present", 0, "V-ST-09"
                    ),
                )
    elif type(template) is list:
        for index, part in enumerate(template):
            yield from template_faults(part, f"{pointer}/{index}")


def _computed(value: Json) -> str | None:
    """Return the hint for a container with expressions, None for any other value."""
    if type(value) is list and any(map(_seems_expression, value)):
        flat = all(type(part) is not dict and type(part) is not list for part in value)
        return f"write States.Array({', '.join(map(_argument, value))})" if flat else None
    if type(value) is dict and any(map(_seems_expression, value.values())):
        return "remove .$ from this key, and add it to the keys of dynamic values"
    return None


def _seems_expression(value: Json) -> bool:
    return type(value) is str and value.startswith(("$.", "$[", "$$", "States."))


def _argument(value: Json) -> str:
    """Return a scalar as an argument of an intrinsic function."""
    if type(value) is not str:
        return compact(value)
    if _seems_expression(value):
        return value
    return "'" + re.sub(r"([\\'{}])", r"\\\1", value) + "'"


ParsedExpression: TypeAlias = Path | IntrinsicCall


def parse_expression(text: str, aws: bool = False) -> ParsedExpression:
    """Parse an expression and the paths within it.

    Args:
        text: The expression.
        aws: Whether to parse paths as AWS does.

    Raises:
        ExpressionFault: The text is neither a path nor an intrinsic call.
    """
    if is_path(text, aws):
        return parse_path(text, aws)
    if "(" not in text:
        raise ExpressionFault(
            f"{text!r} is neither a path nor an intrinsic function",
            0,
            "V-ST-09",
            f"write '$.{text}' for a field of the data" if text.isidentifier() else None,
        )
    call = intrinsics.parse(text)
    for _ in paths_in(call, aws):  # raises for a path that cannot be read
        pass
    return call


def is_path(text: str, aws: bool = False) -> bool:
    """Return whether an expression is a path; on AWS it may have blanks around it."""
    return (text.strip(JAVA_BLANKS) if aws else text).startswith("$")


def paths_in(parsed: ParsedExpression, aws: bool = False) -> Iterator[Path]:
    """Yield every path that an expression reads.

    Raises:
        ExpressionFault: A path is malformed.
    """
    if isinstance(parsed, Path):
        yield parsed
        return
    for argument in parsed.arguments:
        if isinstance(argument, IntrinsicCall):
            yield from paths_in(argument, aws)
        elif isinstance(argument, intrinsics.PathArgument):
            try:
                yield parse_path(argument.text, aws)
            except ExpressionFault as fault:
                offset = argument.offset + fault.offset
                raise ExpressionFault(fault.message, offset, fault.code, fault.hint) from None


RULE = "V-TXT-01"
_MARK = lazy_pattern(r"\\\{\{|\{\{|\}\}")
_TOKEN = lazy_pattern(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|\}\}|(?P<open>['"])|.""", re.DOTALL)


class Insertion(NamedTuple):
    """An expression between braces; `offset` is the start of its text."""

    text: str
    offset: int


InterpolationPart: TypeAlias = str | Insertion


def parse_text(text: str) -> tuple[InterpolationPart, ...]:
    """Split a text into literal strings and insertions.

    Raises:
        ExpressionFault: V-TXT-01 for malformed braces.
    """
    parts: list[InterpolationPart] = []
    literal = ""
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        literal += text[at : mark.start()]
        at = mark.end()
        if mark.group() == r"\{{":
            literal += "{{"
        elif mark.group() == "}}":
            raise ExpressionFault("'}}' without '{{' before it", mark.start(), RULE)
        else:
            insertion, at = _insertion(text, mark.end())
            parts += [literal, insertion] if literal else [insertion]
            literal = ""
    literal += text[at:]
    return (*parts, literal) if literal else tuple(parts)


def _insertion(text: str, start: int) -> tuple[Insertion, int]:
    """Read up to the closing braces, ignoring those within quotes."""
    for token in _TOKEN.finditer(text, start):
        if token.group() == "}}":
            inner = text[start : token.start()]
            stripped = inner.strip()
            offset = start + len(inner) - len(inner.lstrip())
            if not stripped:
                raise ExpressionFault("the braces are empty", start - 2, RULE)
            return Insertion(stripped, offset), token.end()
        if token["open"]:
            raise ExpressionFault("the quote is never closed", token.start(), RULE)
    raise ExpressionFault("'{{' is never closed", start - 2, RULE, r"write \{{ for braces in text")


def check_text(text: str) -> None:
    """Check a text for `compile_text`.

    Raises:
        ExpressionFault: V-TXT-01 for malformed braces or expressions.
    """
    for part in parse_text(text):
        if isinstance(part, Insertion):
            _check_expression(part)


def _check_expression(part: Insertion) -> None:
    try:
        parse_expression(part.text)
    except ExpressionFault as fault:
        offset = part.offset + fault.offset
        raise ExpressionFault(fault.message, offset, RULE, fault.hint) from None


def compile_text(text: str, expression: Callable[[str], Evaluate]) -> Evaluate:
    """Compile a text to a closure that returns a string.

    Strings are inserted as they are, other values as compact JSON.

    Args:
        text: The text.
        expression: Compiles the path or intrinsic call between two braces.

    Raises:
        ExpressionFault: V-TXT-01. The closure raises the errors of its expressions.
    """
    parts = parse_text(text)
    if all(type(part) is str for part in parts):
        return constant("".join(part for part in parts if type(part) is str))
    pieces = [
        expression(part.text) if isinstance(part, Insertion) else constant(part) for part in parts
    ]

    def evaluate(data: Json, frame: ExpressionFrame) -> Json:
        return "".join([_text(piece(data, frame)) for piece in pieces])

    return evaluate


def _text(value: Json) -> str:
    return value if type(value) is str else compact(value)
