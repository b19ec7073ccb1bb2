"""Intrinsic functions, parsed, checked and compiled: `States.Format('{}', $.x)`.

Specification 5.
"""

from asl.expr.intrinsics.checks import CallFinding, check
from asl.expr.intrinsics.closures import CompilePath, compile
from asl.expr.intrinsics.grammar import (
    Argument,
    IntrinsicCall,
    LiteralArgument,
    PathArgument,
    TextArgument,
    parse,
)
from asl.expr.intrinsics.table import ALLOWED_IN_ERROR_PATH, FUNCTIONS, IntrinsicFunction

__all__ = [
    "ALLOWED_IN_ERROR_PATH",
    "FUNCTIONS",
    "Argument",
    "CallFinding",
    "CompilePath",
    "IntrinsicCall",
    "IntrinsicFunction",
    "LiteralArgument",
    "PathArgument",
    "TextArgument",
    "check",
    "compile",
    "parse",
]
