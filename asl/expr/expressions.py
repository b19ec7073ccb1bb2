"""Dynamic values: paths of any kind and intrinsic calls (Specification 3.4)."""

from collections.abc import Iterator
from typing import TypeAlias

from asl.core.errors import ExpressionFault
from asl.expr import intrinsics
from asl.expr.intrinsics import Call
from asl.expr.paths import Path, parse_path
from asl.expr.paths.jayway import JAVA_BLANKS

__all__ = ["Parsed", "is_path", "parse_expression", "paths_in"]

Parsed: TypeAlias = Path | Call


def parse_expression(text: str, aws: bool = False) -> Parsed:
    """Parse an expression and the paths within it; raises ExpressionFault."""
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


def paths_in(parsed: Parsed, aws: bool = False) -> Iterator[Path]:
    """Yield every path that an expression reads; raises ExpressionFault for a malformed one."""
    if isinstance(parsed, Path):
        yield parsed
        return
    for argument in parsed.arguments:
        if isinstance(argument, Call):
            yield from paths_in(argument, aws)
        elif isinstance(argument, intrinsics.Path):
            try:
                yield parse_path(argument.text, aws)
            except ExpressionFault as fault:
                offset = argument.offset + fault.offset
                raise ExpressionFault(fault.message, offset, fault.code, fault.hint) from None
