"""Expressions: what a dynamic value may be, a path of any kind or an intrinsic call.

Specification 3.4.
"""

from collections.abc import Iterator
from typing import TypeAlias

from asl.core.errors import ExpressionFault
from asl.expr import intrinsics
from asl.expr.intrinsics import Call
from asl.expr.paths import Path, parse_path

__all__ = ["Parsed", "parse_expression", "paths_in"]

Parsed: TypeAlias = Path | Call


def parse_expression(text: str, aws: bool = False) -> Parsed:
    """Parse an expression and the paths within it, as `parse_path` does; raises ExpressionFault."""
    if text.startswith("$"):
        return parse_path(text, aws)
    if "(" not in text:
        raise ExpressionFault(
            f"{text!r} is neither a path nor an intrinsic function",
            0,
            "V-ST-09",
            f"write '$.{text}' for a field of the data" if text.isidentifier() else None,
        )
    call = intrinsics.parse(text)
    for _ in paths_in(call):  # raises for a path that cannot be read
        pass
    return call


def paths_in(parsed: Parsed) -> Iterator[Path]:
    """Yield every path that an expression reads; raises ExpressionFault for a malformed one."""
    if isinstance(parsed, Path):
        yield parsed
        return
    for argument in parsed.arguments:
        if isinstance(argument, Call):
            yield from paths_in(argument)
        elif isinstance(argument, intrinsics.Path):
            try:
                yield parse_path(argument.text)
            except ExpressionFault as fault:
                offset = argument.offset + fault.offset
                raise ExpressionFault(fault.message, offset, fault.code, fault.hint) from None
