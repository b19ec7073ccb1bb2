"""Intrinsic functions, parsed, checked and compiled: `States.Format('{}', $.x)`.

Specification 5.
"""

from asl.expr.intrinsics.checks import Remark, check
from asl.expr.intrinsics.closures import CompilePath, compile
from asl.expr.intrinsics.grammar import Argument, Call, Literal, Path, Text, parse
from asl.expr.intrinsics.table import ALLOWED_IN_ERROR_PATH, FUNCTIONS, Function

__all__ = [
    "ALLOWED_IN_ERROR_PATH",
    "FUNCTIONS",
    "Argument",
    "Call",
    "CompilePath",
    "Function",
    "Literal",
    "Path",
    "Remark",
    "Text",
    "check",
    "compile",
    "parse",
]
