"""Paths as Jayway JsonPath 2.0.0 parses and evaluates them, the engine that AWS's answers match.

`syntax` parses a path and `filters` its filters, `evaluation` compiles and evaluates them. The
engine was measured, not copied: `tests/expr/paths` holds a table of its answers. Deviations of AWS
are in `asl.expr.paths.amazon`.
"""

from asl.expr.paths.jayway.evaluation import Find, compile_segments, explain
from asl.expr.paths.jayway.failures import PathFailure, PathInvalid, PathNotFound
from asl.expr.paths.jayway.filters import JAVA_BLANKS
from asl.expr.paths.jayway.syntax import is_definite, parse_segments

__all__ = [
    "JAVA_BLANKS",
    "Find",
    "PathFailure",
    "PathInvalid",
    "PathNotFound",
    "compile_segments",
    "explain",
    "is_definite",
    "parse_segments",
]
